"""Tasks and where they come from."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from debug_gym_core.components.component import Component, Settings

if TYPE_CHECKING:
    from debug_gym_core.tasks.judge import Judge

Mode = Literal["visible", "hidden", "debug"]
"""Who sees the tests that count: the agent too; grading alone; the agent, of a benchmark that publishes them hidden."""


@dataclass(frozen=True)
class Task:
    """One bug to fix: a repository, how to run it, what counts as fixed.

    Attributes:
        benchmark: name of the benchmark
        name: name within the benchmark
        repository: directory on the host; read, never written; None: it is in the image, at `image_directory`
        entrypoint: command that runs the tests
        debug_entrypoint: command that the debugger starts; None: the entrypoint
        description: what the agent is told about the task
        tests: ids of the tests that count (pytest node ids; a file, a class or a parametrized test counts as one);
            empty: every test that the pristine repository collects. Best those that fail without a fix
        pass_to_pass: ids of tests that pass without a fix and must still pass: they give no points, and the score is 0
            unless every one of them passes; only beside `tests`, and none of them
        max_score: number of tests that count; None: counted on the pristine repository
        known_to_fail: somebody has seen its tests fail where nothing is changed, so that no run looks whether they do;
            it looks all the same when the user names another entrypoint
        stops: places (`file:line`) where a debugger shows the bug; empty: the first line that the gold patch changes
        gold_patch: a right fix, `git apply`-able; None: unknown
        environment: variables of every command in the task's sandboxes, unless the user names another entrypoint
        requires: names of distributions that the interpreter must have
        conflicts: names of distributions that an interpreter of this machine must not have: what is worked on, of which
            an installed release may hold the fix
        ignore: patterns of files that the agent never sees, with .gitignore's syntax
        readonly: patterns of files that the agent may read only
        allowed: test infrastructure that the agent may change without grading dropping it
        time_limit: seconds that one run of the entrypoint may take, where `env.run_timeout` is not set; None: 300
        python: the interpreter; None: found from the repository
        image: image for container terminals; None: no image of its own
        image_directory: where the repository is in the image, when `repository` is None; taken without its history
        masked: directories of the image that are empty in the agent's sandbox: they may hold the fix, as caches and
            newer releases do
        image_kept: directories of the image below `image_directory` that are no part of the repository and stay as
            they are in the image, such as a virtual environment; absolute
        image_tests: a directory of the image with the tests that count, and where it goes in the repository; only
            grading has it when the mode is `hidden`
        mode: who sees the tests that count; noted with every result
        patches: applied to the repository, in order, before anything else, `git apply`-able: what makes the bug, say
        tests_patch: puts the tests that count into the repository, `git apply`-able; None: they are there. The agent's
            sandbox has it unless the mode is `hidden`
        test_files: paths of files of the tests, beside those that `tests` names: changes to them are not graded
        hidden_files: paths of files of the repository that only grading has when the mode is `hidden`
        git: whether the sandbox has a git repository of one commit, the pristine files
        judge: how the tests are run and read when pytest's and unittest's own reports cannot be had; None: they can
    """

    benchmark: str
    name: str
    repository: Path | None = None
    entrypoint: str = "python -m pytest -q"
    debug_entrypoint: str | None = None
    description: str = ""
    tests: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    max_score: int | None = None
    known_to_fail: bool = False
    stops: tuple[str, ...] = ()
    gold_patch: bytes | None = None
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    requires: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    readonly: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    time_limit: float | None = None
    python: str | None = None
    image: str | None = None
    image_directory: str = "/testbed"
    masked: tuple[str, ...] = ()
    image_kept: tuple[str, ...] = ()
    image_tests: tuple[str, str] | None = None
    mode: Mode = "visible"
    patches: tuple[bytes, ...] = ()
    tests_patch: bytes | None = None
    test_files: tuple[str, ...] = ()
    hidden_files: tuple[str, ...] = ()
    git: bool = False
    judge: Judge | None = None

    @property
    def id(self) -> str:
        """`benchmark/name`, as results and commands call it."""
        return f"{self.benchmark}/{self.name}"

    @property
    def hides_tests(self) -> bool:
        """Whether the tests that show the bug are kept from the agent."""
        return self.mode == "hidden" and any((self.tests_patch, self.hidden_files, self.image_tests))


class BenchmarkSettings(Settings):
    """What the `benchmark` section of a config says beyond the name and the choice of tasks.

    A benchmark that takes more says so by a field of its own: `source`, `split`, `revision` (texts) or `path`, which
    the section has for all of them, or any other. What it has no field for is refused.

    Attributes:
        mode: visible (the tests that count are in the workspace), hidden (only grading has them), or debug (they are
            in the workspace although the benchmark publishes them hidden); a benchmark may know one only
    """

    mode: Mode = "visible"


class Benchmark(Component, abc.ABC):
    """A named source of tasks.

    Attributes:
        config: the config that it ships, as far as it differs from the defaults: values by section and key
    """

    Settings: ClassVar[type[Settings]] = BenchmarkSettings
    settings: BenchmarkSettings
    config: ClassVar[Mapping[str, Any]] = {}

    @abc.abstractmethod
    def names(self) -> Sequence[str]:
        """The names of all tasks that can be solved, in a fixed order; cheap, loads none of them."""

    @abc.abstractmethod
    def load(self, name: str) -> Task:
        """Load one task.

        Raises:
            UsageError: there is no task of that name
        """

    def requires(self) -> Sequence[str]:
        """What the tasks need of the interpreter, for `debug-gym doctor`: names of distributions; cheap, loads none."""
        return ()

    def unavailable(self) -> str | None:
        """Say what this machine lacks for the tasks to be loaded and graded, for `debug-gym doctor`.

        Cheap: fetches nothing, and imports no other packages.

        Returns:
            what is missing and how to get it; None: nothing that is known
        """
        return None

    def titles(self) -> Mapping[str, str]:
        """A line about each task, by name, for `debug-gym tasks`; those that have none are left out."""
        return {}

    def prediction(self, name: str, patch: bytes, model: str) -> Mapping[str, Any] | None:
        """A line of `predictions.jsonl`, which a run leaves for the benchmark's own harness.

        Args:
            name: the task
            patch: what the agent changed
            model: who it was, agent and LLM

        Returns:
            the line; None when the benchmark's harness takes none
        """
        return None

    def excluded(self) -> dict[str, str]:
        """Tasks left out of `all` because they cannot be solved as published: name and reason."""
        return {}
