"""Ten small bugs that are hard without a debugger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from debug_gym_benchmarks import plain_pytest
from debug_gym_core import Benchmark, BenchmarkSettings, Task, UsageError
from debug_gym_core.config.yaml_types import loaded
from debug_gym_core.names import nearest

TASKS = Path(__file__).parent


class MiniNightmareSettings(BenchmarkSettings):
    """What the `benchmark` section says of mini_nightmare.

    Attributes:
        mode: visible: the tests are in the workspace
    """

    mode: Literal["visible"] = "visible"


class MiniNightmare(Benchmark):
    """Ten small hand-made bugs that are hard to find without a debugger; works offline."""

    name = "mini_nightmare"
    Settings: ClassVar[type[BenchmarkSettings]] = MiniNightmareSettings

    def names(self) -> Sequence[str]:
        """The ten tasks in alphabetical order."""
        return sorted(path.parent.name for path in TASKS.glob("*/task.yaml"))

    def requires(self) -> Sequence[str]:
        """What the ten tasks need together."""
        facts = (loaded(path.read_text(encoding="utf-8")) for path in sorted(TASKS.glob("*/task.yaml")))
        return list(dict.fromkeys(name for one in facts for name in one["requires"]))

    def titles(self) -> Mapping[str, str]:
        """What each task's data says that it is about."""
        files = (TASKS / name / "task.yaml" for name in self.names())
        return {path.parent.name: loaded(path.read_text(encoding="utf-8"))["title"] for path in files}

    def load(self, name: str) -> Task:
        """Load a task from the package's data."""
        directory = TASKS / name
        if name not in self.names():
            raise UsageError(f"{self.name} has no task {name!r}{nearest(name, self.names())}")
        facts = loaded((directory / "task.yaml").read_text(encoding="utf-8"))
        return Task(
            benchmark=self.name,
            name=name,
            repository=directory / "repo",
            entrypoint=facts["entrypoint"],
            description=facts["description"],
            tests=tuple(facts["tests"]),
            pass_to_pass=tuple(facts["pass_to_pass"]),
            max_score=facts["max_score"],
            stops=tuple(facts["stops"]),
            gold_patch=(directory / "gold.patch").read_bytes(),
            environment=plain_pytest.ENVIRONMENT,
            known_to_fail=True,
            requires=tuple(facts["requires"]),
            time_limit=float(facts["time_limit"]),
        )
