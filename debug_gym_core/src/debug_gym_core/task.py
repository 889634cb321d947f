"""Tasks and where they come from."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from debug_gym_core.component import Component, Settings


@dataclass(frozen=True)
class Task:
    """One bug to fix: a repository, how to run it, what counts as fixed.

    Attributes:
        benchmark: name of the benchmark
        name: name within the benchmark
        repository: directory on the host; read, never written
        entrypoint: command that runs the tests
        debug_entrypoint: command that the debugger starts; None: the entrypoint
        description: what the agent is told about the task
        tests: ids of the tests that count (pytest node ids); empty: every test that the pristine repository collects
        max_score: number of tests that count; None: counted on the pristine repository
        stops: places (`file:line`) where a debugger shows the bug; empty: the first line that the gold patch changes
        gold_patch: a right fix, `git apply`-able; None: unknown
        requires: names of distributions that the interpreter must have
        ignore: patterns of files that the agent never sees, with .gitignore's syntax
        readonly: patterns of files that the agent may read only
        allowed: test infrastructure that the agent may change without grading dropping it
        time_limit: seconds that one run of the entrypoint may take; None: `env.run_timeout`
        python: the interpreter; None: found from the repository
        image: image for container terminals; None: no image of its own
    """

    benchmark: str
    name: str
    repository: Path
    entrypoint: str = "python -m pytest -q"
    debug_entrypoint: str | None = None
    description: str = ""
    tests: tuple[str, ...] = ()
    max_score: int | None = None
    stops: tuple[str, ...] = ()
    gold_patch: bytes | None = None
    requires: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    readonly: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    time_limit: float | None = None
    python: str | None = None
    image: str | None = None

    @property
    def id(self) -> str:
        """`benchmark/name`, as results and commands call it."""
        return f"{self.benchmark}/{self.name}"


class BenchmarkSettings(Settings):
    """What the `benchmark` section of a config says beyond the name and the choice of tasks.

    Attributes:
        source: a local file or checkout instead of the published one
        split: a named part of the benchmark
        revision: version of the published data
        mode: `visible`: the failing tests are in the workspace; `hidden`: only grading has them
        path: the repository, for the benchmark `repo`
    """

    source: str | None = None
    split: str | None = None
    revision: str | None = None
    mode: str = "visible"
    path: Path | None = None


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

    def excluded(self) -> dict[str, str]:
        """Tasks left out of `all` because they cannot be solved as published: name and reason."""
        return {}
