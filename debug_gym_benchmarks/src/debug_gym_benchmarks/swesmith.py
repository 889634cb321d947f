"""SWE-smith: synthetic bugs in Python repositories, in the published images."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from debug_gym_benchmarks import left_in_images
from debug_gym_benchmarks.reversal import reverse
from debug_gym_benchmarks.row_fields import Field
from debug_gym_benchmarks.rows import Rows
from debug_gym_core import Benchmark, Task, UsageError
from debug_gym_core.names import nearest
from debug_gym_core.tasks.task import BenchmarkSettings

HUB = "SWE-bench/SWE-smith"
PYTHON = "/opt/miniconda3/envs/testbed/bin/python"
"""The interpreter of the published images."""
ENVIRONMENT = "/opt/miniconda3/envs/testbed/lib/python3.10/site-packages"

MODULES = {"pyca__pyopenssl": "OpenSSL"}
"""Directories of packages by repository, where the repository's name does not say."""

TIME_LIMIT = 900.0
"""Seconds for a run of the test files of a bug; the published limit of a whole suite."""

FIELDS = {
    "repo": Field(),
    "patch": Field(),
    "FAIL_TO_PASS": Field(list),
    "PASS_TO_PASS": Field(list),
    "image_name": Field(),
    "problem_statement": Field(required=False),
}

OPTIONS = {"mido__mido": "-c /dev/null"}
"""What the published test command of a repository gives pytest beside the files."""

UNUSUAL = {
    "gin-gonic__gin": "its tests are Go's (go test), not Python's",
    "pydantic__pydantic": "its interpreter lies in the repository's own directory of the image (uv run), not in conda",
    "python__mypy": "its tests are published as names of cases (pytest -k), not as pytest's node ids",
    "tornadoweb__tornado": "its tests are published as tornado.test prints them, not as pytest's node ids",
    "un33k__python-slugify": "its tests are published as unittest prints them (test.py), not as pytest's node ids",
}
"""Repositories whose tests run otherwise than with pytest in the conda environment, and why they are left out."""

_TOLD = "A change broke this repository: some of its tests fail. Find the bug and fix it."


class SWESmithSettings(BenchmarkSettings):
    """What the `benchmark` section says of SWE-smith.

    Attributes:
        source: a .json, .jsonl or .parquet file with the rows or a directory of them; `hub:OWNER/NAME`: another data
            set
        split: a split of the data set; null: train
        revision: branch, tag or commit of the data set on the hub; null: the newest when it is fetched
        mode: hidden, as published: the files of the tests that show the bug are not in the workspace; debug: they are
    """

    source: str | None = None
    split: str | None = None
    revision: str | None = None
    mode: Literal["hidden", "debug"] = "hidden"


class SWESmith(Benchmark):
    """SWE-smith's synthetic bugs in its images, from the hub or a local file; files of the failing tests are hidden."""

    name = "swesmith"
    Settings: ClassVar[type[BenchmarkSettings]] = SWESmithSettings
    settings: SWESmithSettings
    config: ClassVar[Mapping[str, Any]] = {"benchmark": {"mode": "hidden"}, "terminal": {"name": "docker"}}

    def unavailable(self) -> str | None:
        """The package that fetches the data set."""
        return self._rows.unavailable()

    def names(self) -> Sequence[str]:
        """The instances in the order of the data set."""
        return [name for name in self._ids if _repository(name) not in UNUSUAL]

    def excluded(self) -> dict[str, str]:
        """Instances of repositories whose tests are not pytest's."""
        return {name: reason for name in self._ids if (reason := UNUSUAL.get(_repository(name)))}

    def titles(self) -> Mapping[str, str]:
        """The repository and how the bug was made, which the name says."""
        return {name: _title(name) for name in self.names()}

    def load(self, name: str) -> Task:
        """Make a row a task: its patch is the bug, the reverse of it the fix."""
        if name not in self._known:
            raise UsageError(f"{self.name} has no task {name!r}{nearest(name, self._ids)}")
        row = self._rows.row(name)
        failing = tuple(dict.fromkeys(row["FAIL_TO_PASS"]))
        kept = tuple(one for one in dict.fromkeys(row["PASS_TO_PASS"]) if one not in failing)
        tests = (*failing, *kept)
        if not failing:
            raise UsageError(f"{self._rows.where(name)}: the field 'FAIL_TO_PASS' is empty: no test shows the bug")
        if wrong := next((one for one in tests if "::" not in one and _repository(name) not in UNUSUAL), None):
            raise UsageError(
                f"{self._rows.where(name)}: the test {wrong!r} is not one of pytest's node ids (file::test)"
            )
        bug = _ended(row["patch"])
        try:
            gold = reverse(bug)
        except ValueError as error:
            raise UsageError(f"{self._rows.where(name)}: the field 'patch' cannot be reversed: {error}") from None
        options = OPTIONS.get(_repository(name))
        command = ["python -m pytest -q", *([options] if options else []), *map(shlex.quote, files_of(tests))]
        return Task(
            benchmark=self.name,
            name=name,
            image=row["image_name"],
            entrypoint=" ".join(command),
            description=row["problem_statement"] or _TOLD,
            tests=failing,
            pass_to_pass=kept,
            max_score=len(failing),
            gold_patch=gold,
            time_limit=TIME_LIMIT,
            python=PYTHON,
            mode=self.settings.mode,
            patches=(bug,),
            test_files=tuple(files_of(tests)),
            hidden_files=tuple(files_of(failing)),
            git=True,
            masked=(*left_in_images.CONDA_CACHES, *left_in_images.copies(_module(name), [ENVIRONMENT])),
        )

    def prediction(self, name: str, patch: bytes, model: str) -> Mapping[str, Any] | None:
        """As `swesmith.harness.eval` takes it."""
        return {"instance_id": name, "model_name_or_path": model, "model_patch": patch.decode("utf-8", "replace")}

    @functools.cached_property
    def _rows(self) -> Rows:
        asked = self.settings
        return Rows(
            asked.source,
            hub=HUB,
            split=asked.split,
            usual="train",
            revision=asked.revision,
            fields=FIELDS,
            key="instance_id",
        )

    @functools.cached_property
    def _ids(self) -> list[str]:
        return self._rows.ids()

    @functools.cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._ids)


def files_of(tests: Sequence[str]) -> list[str]:
    """The files of pytest's node ids, each once."""
    return list(dict.fromkeys(test.partition("::")[0] for test in tests))


def _repository(name: str) -> str:
    """`owner__repository` of an instance: `owner__repository.commit.bug`."""
    return name.rsplit(".", 2)[0]


def _module(name: str) -> str:
    """The directory that the package of an instance's repository most likely has."""
    repository = _repository(name)
    project = repository.partition("__")[2].lower().removeprefix("python-")
    return MODULES.get(repository, project.replace("-", "_").replace(".", "_"))


def _title(name: str) -> str:
    repository, _, bug = name.rpartition(".")
    return f"{repository.replace('__', '/', 1).replace('.', ' at ')}: {bug.partition('__')[0].replace('_', ' ')}"


def _ended(patch: str) -> bytes:
    """A patch's bytes with the line end that git wants at its end."""
    return patch.encode() if patch.endswith("\n") else f"{patch}\n".encode()
