"""A person's own repository as a benchmark of one task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from debug_gym_core import Benchmark, Task, UsageError
from debug_gym_core.names import nearest


class Repo(Benchmark):
    """Your own repository, named by `path`; how its tests run is `env.entrypoint`."""

    name = "repo"

    def names(self) -> Sequence[str]:
        """The repository's name, its one task."""
        return [self._directory().name]

    def load(self, name: str) -> Task:
        """Make the repository a task; what it counts is found by running its tests."""
        if name not in self.names():
            raise UsageError(f"{self.name} has no task {name!r}{nearest(name, self.names())}")
        return Task(benchmark=self.name, name=name, repository=self._directory())

    def _directory(self) -> Path:
        path = self.settings.path
        if path is None:
            raise UsageError("benchmark repo needs the repository: say benchmark.path (path= in Python)")
        if not path.is_dir():
            raise UsageError(f"benchmark.path: there is no directory {path}")
        return path.expanduser().resolve()
