"""A benchmark of three tiny bugs, in the package's own data."""

import json
from pathlib import Path

from debug_gym_core import Benchmark, Task, UsageError, hookimpl
from debug_gym_core.names import nearest

TASKS = Path(__file__).parent / "tasks"


class Pocket(Benchmark):
    """Three tiny bugs that are found in a minute."""

    name = "pocket"
    config = {"agent": {"max_steps": 20}, "env": {"run_timeout": 30}}

    def names(self):
        return sorted(path.parent.name for path in TASKS.glob("*/task.json"))

    def load(self, name):
        if name not in self.names():
            raise UsageError(f"{self.name} has no task {name!r}{nearest(name, self.names())}")
        facts = json.loads((TASKS / name / "task.json").read_text(encoding="utf-8"))
        return Task(
            benchmark=self.name,
            name=name,
            repository=TASKS / name / "repo",
            entrypoint="python -m pytest -q",
            description=facts["description"],
            tests=tuple(facts["tests"]),
            stops=tuple(facts["stops"]),
            gold_patch=(TASKS / name / "gold.patch").read_bytes(),
            requires=("pytest",),
            readonly=("test_*.py",),
        )


@hookimpl
def debug_gym_register_benchmarks():
    return [Pocket]
