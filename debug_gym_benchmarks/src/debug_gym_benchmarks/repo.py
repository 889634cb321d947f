"""A person's own repository as a benchmark of one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from debug_gym_core import Benchmark, BenchmarkSettings, Task, UsageError
from debug_gym_core.names import nearest
from debug_gym_core.places import expanded


class RepoSettings(BenchmarkSettings):
    """What the `benchmark` section says of your repository.

    Attributes:
        path: where it is
        mode: visible: the tests are in the workspace
    """

    path: Path | None = None
    mode: Literal["visible"] = "visible"


class Repo(Benchmark):
    """Your own repository, named by `path`; how its tests run is `env.entrypoint`."""

    name = "repo"
    Settings: ClassVar[type[BenchmarkSettings]] = RepoSettings
    settings: RepoSettings

    def names(self) -> Sequence[str]:
        """The repository's name, its one task."""
        return [self._directory().name]

    def titles(self) -> Mapping[str, str]:
        """Where the repository is."""
        return {name: f"the repository {self._directory()}" for name in self.names()}

    def load(self, name: str) -> Task:
        """Make the repository a task; what it counts is found by running its tests."""
        if name not in self.names():
            raise UsageError(f"{self.name} has no task {name!r}{nearest(name, self.names())}")
        return Task(benchmark=self.name, name=name, repository=self._directory())

    def _directory(self) -> Path:
        path = self.settings.path
        if path is None:
            raise UsageError("benchmark repo needs the repository: say benchmark.path (path= in Python)")
        path = expanded(path)
        if not path.is_dir():
            more = "; variables are filled in in an llm.yaml only" if "${" in str(path) else ""
            raise UsageError(f"benchmark.path: there is no directory {path}{more}")
        return path.resolve()
