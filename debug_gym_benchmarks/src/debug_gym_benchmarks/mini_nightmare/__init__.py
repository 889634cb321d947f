"""Ten small bugs that are hard without a debugger."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from debug_gym_core import Benchmark, Task, UsageError
from debug_gym_core.names import nearest

TASKS = Path(__file__).parent


class MiniNightmare(Benchmark):
    """Ten small hand-made bugs that are hard to find without a debugger; works offline."""

    name = "mini_nightmare"

    def names(self) -> Sequence[str]:
        """The ten tasks in alphabetical order."""
        return sorted(path.parent.name for path in TASKS.glob("*/task.yaml"))

    def load(self, name: str) -> Task:
        """Load a task from the package's data."""
        directory = TASKS / name
        if name not in self.names():
            raise UsageError(f"{self.name} has no task {name!r}{nearest(name, self.names())}")
        facts = yaml.safe_load((directory / "task.yaml").read_text(encoding="utf-8"))
        return Task(
            benchmark=self.name,
            name=name,
            repository=directory / "repo",
            entrypoint=facts["entrypoint"],
            description=facts["description"],
            tests=tuple(facts["tests"]),
            max_score=facts["max_score"],
            stops=tuple(facts["stops"]),
            gold_patch=(directory / "gold.patch").read_bytes(),
            requires=tuple(facts["requires"]),
            time_limit=float(facts["time_limit"]),
        )
