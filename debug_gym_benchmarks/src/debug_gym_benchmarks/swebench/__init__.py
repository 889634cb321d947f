"""SWE-bench: issues of twelve well-known projects, in their official images, judged by the official evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from debug_gym_benchmarks import left_in_images
from debug_gym_benchmarks.row_fields import Field
from debug_gym_benchmarks.rows import Rows
from debug_gym_benchmarks.swebench import official
from debug_gym_benchmarks.swebench.judge import SWEBenchJudge
from debug_gym_core import Benchmark, Task, UsageError
from debug_gym_core.components.component import Settings
from debug_gym_core.names import nearest
from debug_gym_core.tasks.task import BenchmarkSettings

DATA_SETS = {
    "lite": "SWE-bench/SWE-bench_Lite",
    "verified": "SWE-bench/SWE-bench_Verified",
    "full": "SWE-bench/SWE-bench",
}
"""The published data sets on the hub."""

IMAGE = "swebench/sweb.eval.x86_64.{name}:latest"
PYTHON = "/opt/miniconda3/envs/testbed/bin/python"
REQUESTS_ENVIRONMENT = "/opt/miniconda3/envs/testbed/lib/python3.9/site-packages"
TIME_LIMIT = 1800.0
"""Seconds that the official harness gives an evaluation."""

FIELDS = {
    "repo": Field(),
    "base_commit": Field(),
    "problem_statement": Field(),
    "patch": Field(),
    "test_patch": Field(),
    "FAIL_TO_PASS": Field(list),
    "PASS_TO_PASS": Field(list),
    # Each of these is in some of the publications; `official.evaluation` says what is missing.
    "version": Field(required=False),
    "eval_script": Field(required=False),
    "log_parser": Field(required=False),
    "image": Field(required=False),
}


def masked(repository: str) -> tuple[str, ...]:
    """Directories of the official images where later releases may lie: caches, and requests in conda and pip.

    Args:
        repository: `owner/name`
    """
    if repository != "psf/requests":
        return left_in_images.CONDA_CACHES
    return (*left_in_images.CONDA_CACHES, *left_in_images.copies("requests", [REQUESTS_ENVIRONMENT]))


class SWEBenchSettings(BenchmarkSettings):
    """What the `benchmark` section says of SWE-bench.

    Attributes:
        source: a .json, .jsonl or .parquet file with the rows or a directory of them; `hub:OWNER/NAME`: another data
            set
        split: lite, verified or full, and after a slash a split of that data set (test); or only a split of lite
        revision: branch, tag or commit of the data set on the hub; null: the newest when it is fetched
        mode: hidden: only grading has the tests that count; `swebench-debug` is the benchmark that shows them
        image: the name of an instance's image; `{id}` is its id, `{name}` the id as the official images have it (lower
            case, `_1776_` for `__`); null: what the row says, else the official name
    """

    source: str | None = None
    split: str | None = None
    revision: str | None = None
    mode: Literal["hidden", "debug"] = "hidden"
    image: str | None = None

    @field_validator("image")
    @classmethod
    def _check_image(cls, value: str | None) -> str | None:
        if value is not None and (_image(value, "a") == _image(value, "b") or set("{}") & set(_image(value, "a"))):
            raise ValueError("say a name with {id} or {name} in it, and no other braces")
        return value


class SWEBench(Benchmark):
    """Issues of twelve Python projects in the official images, judged by the official evaluation; tests are hidden."""

    name = "swebench"
    Settings: ClassVar[type[Settings]] = SWEBenchSettings
    settings: SWEBenchSettings
    config: ClassVar[Mapping[str, Any]] = {"benchmark": {"mode": "hidden"}, "terminal": {"name": "docker"}}
    mode: ClassVar[Literal["hidden", "debug"]] = "hidden"

    def __init__(self, **settings: Any) -> None:
        """Check the settings; nothing is read.

        Raises:
            UsageError: a setting is wrong, or the mode is the other benchmark's
        """
        super().__init__(**{"mode": self.mode, **settings})
        if self.settings.mode != self.mode:
            other = "swebench-debug" if self.mode == "hidden" else "swebench"
            raise UsageError(
                f"benchmark.mode: {self.name} is {self.mode}; {self.settings.mode} is the benchmark {other}"
            )
        first, _, second = (self.settings.split or "lite").partition("/")
        if second and first not in DATA_SETS:
            raise UsageError(f"benchmark.split: {self.name} has no {first!r}{nearest(first, DATA_SETS)}")
        hub, split = (DATA_SETS[first], second) if first in DATA_SETS else (DATA_SETS["lite"], first)
        self._rows = Rows(
            self.settings.source,
            hub=hub,
            split=split,
            revision=self.settings.revision,
            fields=FIELDS,
            key="instance_id",
        )

    def unavailable(self) -> str | None:
        """The packages that fetch the data set, and that run and read the tests."""
        return "; ".join(filter(None, (self._rows.unavailable(), official.unavailable()))) or None

    def names(self) -> Sequence[str]:
        """The instances, as published."""
        return self._rows.ids()

    def load(self, name: str) -> Task:
        """Make an instance a task."""
        if name not in self._rows.ids():
            raise UsageError(f"{self.name} has no task {name!r}{nearest(name, self._rows.ids())}")
        row = self._rows.row(name)
        evaluation = official.evaluation(row, self._rows.where(name))
        failing = tuple(dict.fromkeys(row["FAIL_TO_PASS"]))
        kept = tuple(one for one in dict.fromkeys(row["PASS_TO_PASS"]) if one not in failing)
        if not failing:
            raise UsageError(f"{self._rows.where(name)}: the field 'FAIL_TO_PASS' names no test")
        files = official.files_of(row["test_patch"])
        return Task(
            benchmark=self.name,
            name=name,
            entrypoint=evaluation.entrypoint,
            debug_entrypoint=evaluation.debug_entrypoint,
            description=row["problem_statement"],
            tests=failing,
            pass_to_pass=kept,
            max_score=len(failing),
            gold_patch=row["patch"].encode(),
            time_limit=TIME_LIMIT,
            python=PYTHON,
            image=self._image(name, row),
            masked=masked(row["repo"]),
            mode=self.mode,
            tests_patch=row["test_patch"].encode(),
            test_files=files,
            git=True,
            judge=SWEBenchJudge(
                evaluation=evaluation,
                base_commit=row["base_commit"],
                fail_to_pass=failing,
                tests=(*failing, *kept),
                tests_patch=row["test_patch"],
                test_files=files,
            ),
        )

    def titles(self) -> Mapping[str, str]:
        """The first line of each issue."""
        lines = {name: self._rows.row(name)["problem_statement"].strip().partition("\n")[0] for name in self.names()}
        return {name: line.strip() for name, line in lines.items() if line.strip()}

    def prediction(self, name: str, patch: bytes, model: str) -> Mapping[str, Any] | None:
        """A line that `python -m swebench.harness.run_evaluation --predictions_path` takes."""
        return {"instance_id": name, "model_name_or_path": model, "model_patch": patch.decode("utf-8", "replace")}

    def _image(self, name: str, row: Mapping[str, Any]) -> str:
        template: str = self.settings.image or row["image"] or IMAGE
        return _image(template, name)


def _image(template: str, name: str) -> str:
    """The name of an instance's image."""
    return template.replace("{id}", name).replace("{name}", name.lower().replace("__", "_1776_"))


class SWEBenchDebug(SWEBench):
    """SWE-bench with the tests that count already in place, so that the agent can run and debug them."""

    name = "swebench-debug"
    config: ClassVar[Mapping[str, Any]] = {"benchmark": {"mode": "debug"}, "terminal": {"name": "docker"}}
    mode: ClassVar[Literal["hidden", "debug"]] = "debug"
