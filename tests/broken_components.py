"""Components other than tools that break promises, each with the tests of its contract that must see it.

Not collected by itself: `test_contracts.py` runs it.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any, ClassVar

from debug_gym_core import LLM, Agent, Benchmark, Completion, Message, Task, Usage
from debug_gym_core.runs.jobs import Executor, Exporter
from debug_gym_core.testing import (
    AgentContract,
    BenchmarkContract,
    ExecutorContract,
    ExporterContract,
    LLMContract,
    TerminalContract,
    write_sample,
)
from debug_gym_terminal_local import LocalTerminal

# Terminals


class Leaky(LocalTerminal):
    """Passes the host's environment on, and leaves its directory behind."""

    name = "leaky"

    def start(self, spec: Any) -> None:
        super().start(spec)
        self._environment |= os.environ


class Forgetful(LocalTerminal):
    """Does not stop."""

    name = "forgetful"
    made: ClassVar[list[LocalTerminal]] = []

    def stop(self) -> None:
        self.made.append(self)


class TestLeaky(TerminalContract):
    terminal = Leaky
    registered = False
    broken = ("test_environment_is_the_sandboxs_own",)


class TestForgetful(TerminalContract):
    terminal = Forgetful
    registered = False
    broken = ("test_it_starts_empty_and_stops_twice",)


def teardown_module() -> None:
    for terminal in Forgetful.made:
        LocalTerminal.stop(terminal)


# Models, agents, benchmarks, and what belongs to runs


class Miscounting(LLM):
    """Adds to the conversation that it is given, and has used fewer tokens than none."""

    name = "miscounting"

    def complete(self, messages: Any, tools: Any) -> Completion:
        messages.append(Message("assistant", ""))
        return Completion(Message("assistant", "Hello."), Usage(prompt=-1))


class TestMiscounting(LLMContract):
    llm = Miscounting
    registered = False
    broken = ("test_what_it_is_given_stays_as_it_is", "test_an_answer_is_a_message_with_its_cost")


class Stubborn(Agent):
    """Takes three steps, whatever happens."""

    name = "stubborn"
    needs_llm = False

    def play(self, env: Any, llm: Any) -> None:
        for _ in range(3):
            env.step("fix")


class TestStubborn(AgentContract):
    agent = Stubborn
    registered = False
    broken = ("test_it_plays_to_the_end", "test_it_ends_when_the_episode_is_truncated")


class Hopeful(Agent):
    """Does nothing, and needs a model for it."""

    name = "hopeful"

    def play(self, env: Any, llm: Any) -> None: ...


class TestHopeful(AgentContract):
    agent = Hopeful
    registered = False
    broken = ("test_it_plays_to_the_end", "test_a_model_that_is_missing_is_missed")


class Modest(Agent):
    """Mends the bug, which its contract class does not expect."""

    name = "modest"
    needs_llm = False

    def play(self, env: Any, llm: Any) -> None:
        env.step("fix")


class TestModest(AgentContract):
    agent = Modest
    resolves = False
    registered = False
    broken = ("test_it_plays_to_the_end",)


class Careless(Benchmark):
    """Knows its tasks as a dict does, lists one twice, and ships its solution."""

    name = "careless"

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.places = {"a": Path("/nowhere")}

    def names(self) -> list[str]:
        return ["a", "a"]

    def load(self, name: str) -> Task:
        return Task(self.name, name, self.places[name])


class TestCareless(BenchmarkContract):
    benchmark = Careless
    registered = False
    broken = (
        "test_names_are_stable_unique_and_cheap",
        "test_unknown_tasks_are_refused_with_the_nearest",
        "test_tasks_are_whole",
    )


class Solved(Benchmark):
    """A bug that is none, with a patch that does not help, in the open."""

    name = "solved"

    def names(self) -> list[str]:
        return ["a"]

    def load(self, name: str) -> Task:
        directory = write_sample(Path(f"/tmp/debug-gym-solved-{os.getpid()}"), {"a.py": "1\n", "fix.patch": "--- a\n"})
        return Task(self.name, name, directory, "true", max_score=1, gold_patch=b"--- a\n")


class TestSolved(BenchmarkContract):
    benchmark = Solved
    registered = False
    validated = ("a",)
    broken = ("test_solutions_are_not_in_the_repository", "test_gold_patches_make_the_tests_pass")

    def teardown_method(self) -> None:
        directory = Path(f"/tmp/debug-gym-solved-{os.getpid()}")
        for path in directory.glob("*"):
            path.unlink()
        if directory.is_dir():
            directory.rmdir()


class Generous(Benchmark):
    """Counts a test that passes before the fix, though it knows that such tests are no points."""

    name = "generous"

    def names(self) -> list[str]:
        return ["a"]

    def load(self, name: str) -> Task:
        files = {"a.py": "x = 1\n", "test_a.py": "import a\ndef test_x(): assert a.x == 2\n"}
        files["test_a.py"] += "def test_b(): pass\ndef test_c(): pass\n"
        directory = write_sample(Path(f"/tmp/debug-gym-generous-{os.getpid()}"), files)
        gold = b"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
        tests = ("test_a.py::test_x", "test_a.py::test_b")
        return Task(self.name, name, directory, tests=tests, pass_to_pass=("test_a.py::test_c",), gold_patch=gold)


class TestGenerous(BenchmarkContract):
    benchmark = Generous
    registered = False
    validated = ("a",)
    broken = ("test_gold_patches_make_the_tests_pass",)

    def teardown_method(self) -> None:
        shutil.rmtree(f"/tmp/debug-gym-generous-{os.getpid()}", ignore_errors=True)


class Eager(Executor):
    """Plays everything twice, whatever anybody says."""

    name = "eager"

    def execute(self, jobs: Any, play: Any, finished: Any, *, workers: int, stop: Any) -> None:
        for job in [*jobs, *jobs]:
            try:
                finished(job, play(job))
            except OSError:
                continue


class TestEager(ExecutorContract):
    executor = Eager
    registered = False
    broken = (
        "test_every_job_is_played_once",
        "test_nothing_begins_after_the_stop",
        "test_a_result_that_cannot_be_kept_is_raised",
    )


class Dated(Exporter):
    """Writes when it was made, and does not look whether there is a run."""

    name = "dated"

    def export(self, run: Path, target: Path) -> None:
        target.write_text(f"{time.monotonic_ns()}")


class TestDated(ExporterContract):
    exporter = Dated
    registered = False
    broken = (
        "test_exporting_twice_gives_the_same",
        "test_what_is_no_run_is_refused",
        "test_a_target_that_cannot_be_written_is_refused",
    )
