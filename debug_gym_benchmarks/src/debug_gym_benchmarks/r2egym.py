"""R2E-Gym: commits of Python projects with tests made for them, in the published images."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from debug_gym_benchmarks import left_in_images
from debug_gym_benchmarks.row_fields import Field
from debug_gym_benchmarks.rows import Rows
from debug_gym_core import Benchmark, Task, UsageError
from debug_gym_core.names import nearest
from debug_gym_core.tasks.judge import Judge, Twinned
from debug_gym_core.tasks.task import BenchmarkSettings

if TYPE_CHECKING:
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.tasks.results import Measurement

HUBS = {"lite": "R2E-Gym/R2E-Gym-Lite", "subset": "R2E-Gym/R2E-Gym-Subset", "full": "R2E-Gym/R2E-Gym-V1"}
"""The published data sets."""

REPOSITORY = "/testbed"
VENV = f"{REPOSITORY}/.venv"
TESTS = ("/r2e_tests", "r2e_tests")
"""The directory of the published images with the tests that count, and where they lie when they run."""

BESIDE = (
    "run_tests.sh",
    "expected_test_output.json",
    "execution_result.json",
    "parsed_commit.json",
    "modified_files.json",
    "modified_entities.json",
    "syn_issue.json",
)
"""What images have in the repository that is not the agent's to see."""

TIME_LIMIT = 300.0
"""Seconds for a run of the tests, as published."""

COMMAND = "PYTHONWARNINGS=ignore::UserWarning,ignore::SyntaxWarning python -W ignore -m pytest -q r2e_tests"
"""As the images' own run_tests.sh has it; orange3's starts a display before."""

FIELDS = {
    "repo_name": Field(),
    "docker_image": Field(),
    "commit_hash": Field(),
    "problem_statement": Field(),
    "expected_output_json": Field(dict),
    "parsed_commit_content": Field(dict),
    "execution_result_content": Field(dict, required=False),
}
BEFORE = "old_commit_res_stdout"
"""What pytest printed before the commit, in `execution_result_content`."""
OTHERWISE = {"orange3": "its tests need a display of the image (xvfb-run), which reports no single tests"}
"""Projects whose tests run otherwise, and why they are left out."""

_LISTING = 60.0
_MODULES = f"import pathlib; print(*pathlib.Path({TESTS[1]!r}).rglob('*.py'), sep='\\n')"

_ISSUE = re.compile(r"\[ISSUE\](.*)\[/ISSUE\]", re.DOTALL)
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_SUMMARY = "short test summary info"
_STATUS = {"passed": "PASSED", "failed": "FAILED", "error": "ERROR"}


class R2EGymSettings(BenchmarkSettings):
    """What the `benchmark` section says of R2E-Gym.

    Attributes:
        source: a .json, .jsonl or .parquet file with the rows or a directory of them; `hub:OWNER/NAME`: another data
            set
        split: lite, subset or full, and after a slash a split of that data set (train); null: lite
        revision: branch, tag or commit of the data set on the hub; null: the newest when it is fetched
        mode: hidden, as published: the tests that count are not in the workspace; debug: they are, in `r2e_tests`
    """

    source: str | None = None
    split: str | None = None
    revision: str | None = None
    mode: Literal["hidden", "debug"] = "hidden"


class R2EGym(Benchmark):
    """Commits of R2E-Gym in its images, by hub id or from a local file, with its tests' published outcome; hidden."""

    name = "r2egym"
    Settings: ClassVar[type[BenchmarkSettings]] = R2EGymSettings
    settings: R2EGymSettings
    # The images' Python lies below root's home directory.
    config: ClassVar[Mapping[str, Any]] = {
        "benchmark": {"mode": "hidden"},
        "terminal": {"name": "docker", "user": "root"},
    }

    def unavailable(self) -> str | None:
        """The package that fetches the data set."""
        return self._rows.unavailable()

    def names(self) -> Sequence[str]:
        """`PROJECT-COMMIT` in the order of the data set."""
        return [name for name in self._ids if _project(name) not in OTHERWISE]

    def excluded(self) -> dict[str, str]:
        """Commits of projects whose tests are not run by pytest alone."""
        return {name: reason for name in self._ids if (reason := OTHERWISE.get(_project(name)))}

    def titles(self) -> Mapping[str, str]:
        """Project and commit, which the name says."""
        return {name: f"{_project(name)} before {name.rpartition('-')[2][:12]}" for name in self.names()}

    def load(self, name: str) -> Task:
        """Make a row a task: solved is what makes every test end as the row says, no other.

        The tests that count are those that ended otherwise, or did not run, before the commit, by the published log;
        without one all count.
        """
        if name not in self._ids:
            raise UsageError(f"{self.name} has no task {name!r}{nearest(name, self._ids)}")
        row = self._rows.row(self._ids[name])
        where = self._rows.where(self._ids[name])
        expected = {plain(test): outcome for test, outcome in row["expected_output_json"].items()}
        if not expected:
            raise UsageError(f"{where}: the field 'expected_output_json' is empty: no test counts")
        for test, outcome in expected.items():
            if outcome not in _STATUS.values():
                raise UsageError(f"{where}: the field 'expected_output_json' has {outcome!r} for {test}")
        before = outcomes_of((row["execution_result_content"] or {}).get(BEFORE))
        failing = tuple(test for test, outcome in expected.items() if before.get(test) != outcome)
        if not failing:
            raise UsageError(f"{where}: by the field 'execution_result_content' no test shows the bug ({BEFORE})")
        statement = row["problem_statement"]
        issue = _ISSUE.search(statement)
        return Task(
            benchmark=self.name,
            name=name,
            image=row["docker_image"],
            image_directory=REPOSITORY,
            image_kept=(VENV,),
            image_tests=TESTS,
            masked=left_in_images.CACHES,
            entrypoint=COMMAND,
            description=issue[1].strip() if issue else statement,
            tests=failing,
            pass_to_pass=tuple(test for test, outcome in expected.items() if before.get(test) == outcome),
            max_score=len(failing),
            gold_patch=patch_of(row["parsed_commit_content"], where),
            ignore=tuple(f"/{path}" for path in BESIDE),
            hidden_files=BESIDE,
            time_limit=TIME_LIMIT,
            python=f"{VENV}/bin/python",
            mode=self.settings.mode,
            git=True,
            judge=Outcomes(tuple(expected.items())),
        )

    @functools.cached_property
    def _rows(self) -> Rows:
        asked = self.settings
        data_set, _, split = (asked.split or "lite").partition("/")
        if data_set not in HUBS:
            raise UsageError(f"benchmark.split: r2egym has no {data_set!r}{nearest(data_set, HUBS)}")
        return Rows(
            asked.source,
            hub=HUBS[data_set],
            split=split,
            usual="train",
            revision=asked.revision,
            fields=FIELDS,
            key="docker_image",
        )

    @functools.cached_property
    def _ids(self) -> dict[str, str]:
        """Images by the names of tasks: `namanjain12/pandas_final:0a1b2c` is `pandas-0a1b2c`."""
        return {_name(image): image for image in self._rows.ids()}


@dataclass(frozen=True)
class Outcomes(Judge):
    """Compares how each test ended with how it has to, test by test, from pytest's own report.

    Attributes:
        expected: `PASSED`, `FAILED` or `ERROR` by a test's name without its file, as published
    """

    expected: tuple[tuple[str, str], ...]

    def measure(self, session: Session, *, timeout: float, clean: bool) -> Measurement:
        """Run the tests; each passes that ended as expected."""
        from debug_gym_core.grading.measure import measure
        from debug_gym_core.tasks.results import TestResult

        measurement = measure(session, COMMAND, timeout=timeout)
        wanted = dict(self.expected)
        ended = {name_of(test.id): test for test in measurement.tests if test.outcome in _STATUS}
        tests = []
        for name, outcome in wanted.items():
            test = ended.get(name)
            if test is not None:
                same = _STATUS[test.outcome] == outcome
                said = test.message or f"it {test.outcome}, and {outcome.lower()} was expected"
                tests.append(TestResult(name, "passed" if same else "failed", "" if same else said))
        more = sorted(ended.keys() - wanted.keys())
        valid, reason = measurement.valid, measurement.reason
        if valid and more:
            valid, reason = False, f"tests ended that the data set does not know: {', '.join(more[:3])}"
        if valid and measurement.exit_status not in (0, 1):
            valid, reason = False, f"pytest ended with status {measurement.exit_status}"
        return dataclasses.replace(
            measurement, tests=tuple(tests), collected=tuple(wanted), kind="log", valid=valid, reason=reason
        )

    def twinned(self, session: Session, measured: Measurement) -> Twinned | None:
        """The same run, of those tests that have to pass."""
        listed = session.run([session.python, "-I", "-c", _MODULES], timeout=_LISTING)
        if listed.exit_status != 0:
            return None
        sources = {path: session.read(path) for path in listed.output.splitlines()}
        tests = frozenset(name for name, outcome in self.expected if outcome == "PASSED")
        return Twinned(COMMAND, sources, tests, lambda test: (name_of(test),))


def name_of(test: str) -> str:
    """The name of a test as R2E-Gym's parser has it: a node id's parts after the file, with dots."""
    return plain(".".join(test.split("::")[1:]))


def outcomes_of(log: object) -> dict[str, str]:
    """How each test ended by pytest's summary in a published log (`-rA`); empty without one.

    Args:
        log: the text; whatever else there is says nothing
    """
    summary = log.partition(_SUMMARY)[2] if isinstance(log, str) else ""
    found: dict[str, str] = {}
    for line in _COLOR.sub("", summary).splitlines():
        outcome, _, test = line.partition(" ")
        if outcome in _STATUS.values() and "::" in test:
            found[name_of(test)] = outcome
    return found


def plain(name: str) -> str:
    """A published name without colours and what was said of the test."""
    return _COLOR.sub("", name).split(" - ")[0]


def patch_of(commit: Mapping[str, Any], where: str) -> bytes | None:
    """The change of a commit to what is no test, from its published parts.

    Args:
        commit: `parsed_commit_content`
        where: names the row

    Returns:
        `git apply`-able; None for a commit with a binary file, whose parts do not say how it changed

    Raises:
        UsageError: a part is missing or of another type; the text names the field
    """
    parts: list[str] = []
    try:
        for file in commit["file_diffs"]:
            path = file["header"]["file"]["path"]
            if _is_test(path):
                continue
            if file.get("is_binary_file"):
                return None
            parts.append(f"diff --git a/{path} b/{path}\n")
            if file["header"].get("misc_line"):
                parts.append(f"{file['header']['misc_line']}\n")
            index = file.get("index_line")
            if index:
                mode = f" {index['mode']}" if index.get("mode") else ""
                parts.append(f"index {index['old_commit_hash']}..{index['new_commit_hash']}{mode}\n")
            if file.get("minus_file") and file.get("plus_file"):
                parts.append(f"--- {file['minus_file']['path']}\n+++ {file['plus_file']['path']}\n")
            parts += [text for hunk in file["hunks"] for text in _hunk(hunk)]
    except KeyError as error:
        raise UsageError(f"{where}: the field 'parsed_commit_content' lacks {error} of a file's change") from error
    except (TypeError, AttributeError) as error:
        raise UsageError(
            f"{where}: the field 'parsed_commit_content' has another layout of a file's change: {error}"
        ) from error
    return "".join(parts).encode() or None


def _hunk(hunk: Mapping[str, Any]) -> list[str]:
    kinds = {"context": " ", "added": "+", "deleted": "-", "note": "\\ "}
    about = hunk["descriptor"]
    ranges = [
        str(one["start"]) if one["length"] is None else f"{one['start']},{one['length']}"
        for one in (about["old_range"], about["new_range"])
    ]
    section = f" {about['section']}" if about.get("section") else ""
    lines = [f"{kinds[line['type']]}{line['content']}\n" for line in hunk["line_group"]["all_lines"]]
    return [f"@@ -{ranges[0]} +{ranges[1]} @@{section}\n", *lines]


def _is_test(path: str) -> bool:
    """Whether R2E-Gym takes a file for one of the tests."""
    *directories, file = path.split("/")
    named = file.endswith("_test.py") or file.startswith("test_")
    return named or not {"tests", "Tests", "test", "Test"}.isdisjoint((*directories, file))


def _name(image: str) -> str:
    repository, _, tag = image.rpartition(":")
    return f"{repository.rpartition('/')[2].removesuffix('_final')}-{tag}"


def _project(name: str) -> str:
    return name.partition("-")[0]
