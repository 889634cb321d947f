"""Components that break promises, each with the tests of its contract that must see it.

Not collected by itself: `test_contracts.py` runs it.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

from debug_gym_core import LLM, Agent, Benchmark, Completion, Message, Task, Tool, Usage, hookimpl, hookspec
from debug_gym_core.runs.jobs import Executor, Exporter
from debug_gym_core.testing import (
    AgentContract,
    BenchmarkContract,
    ExecutorContract,
    ExporterContract,
    LLMContract,
    TerminalContract,
    ToolContract,
    write_sample,
)
from debug_gym_terminal_local import LocalTerminal


class Base(ToolContract):
    registered = False
    calls = ({"path": "hello.txt"},)
    tries = 20


def broken_tool(use: Any, **more: Any) -> type[Tool]:
    members = {"name": "broken", "__doc__": "Break a promise.", "__module__": __name__, "use": use}
    return type("Broken", (Tool,), {**members, **more})


def undocumented(self: Any, env: Any, path: str) -> str:
    return str(len(env.workspace.read_bytes(path)))


def raises(self: Any, env: Any, path: str) -> str:
    """Args:
    path: the file
    """
    return str(len(env.session.read(env.workspace.resolve(path))))


def leaves(self: Any, env: Any, path: str) -> str:
    """Args:
    path: the file
    """
    try:
        return env.session.read(path).decode()
    except (OSError, ValueError):
        return "no"


def unbounded(self: Any, env: Any, path: str) -> str:
    """Args:
    path: the file
    """
    return f"{env.workspace.read_text(path)} {'x' * 30_000}"


def of_the_moment(self: Any, env: Any, path: str) -> str:
    """Args:
    path: the file
    """
    env.workspace.read_text(path)
    return f"at {time.monotonic_ns()}"


def remembers(self: Any, env: Any, path: str) -> str:
    """Args:
    path: the file
    """
    env.workspace.read_text(path)
    self.count = getattr(self, "count", 0) + 1
    return f"call {self.count}"


def names_the_place(self: Any, env: Any, path: str) -> str:
    """Args:
    path: the file
    """
    env.workspace.read_text(path)
    return str(env.session.root)


def writes(self: Any, env: Any, path: str) -> str:
    """Args:
    path: the file
    """
    real = env.workspace.resolve(path)
    env.workspace.read_bytes(real)
    env.session.write(real, b"written")
    return "written"


def leaves_a_thread(self: Any, env: Any, path: str) -> str:
    """Args:
    path: the file
    """
    env.workspace.read_text(path)
    threading.Thread(target=time.sleep, args=(6,), daemon=True).start()
    return "started"


def no_json(self: Any, env: Any, path: str) -> Any:
    """Args:
    path: the file
    """
    from debug_gym_core import Observation

    env.workspace.read_text(path)
    return Observation("broken", "fine", {"value": float("nan")})


class TestUndocumented(Base):
    tool = broken_tool(undocumented)
    broken = ("test_schema_is_json_schema_and_every_argument_is_explained",)


class TestRaises(Base):
    tool = broken_tool(raises)
    broken = ("test_wrong_arguments_are_answered_with_what_is_wrong_and_an_example",)  # a missing file


class TestLeaves(Base):
    tool = broken_tool(leaves)
    broken = ("test_paths_out_of_the_workspace_are_refused", "test_ignored_files_are_refused")


class TestUnbounded(Base):
    tool = broken_tool(unbounded)
    broken = ("test_calls_work",)


class TestOfTheMoment(Base):
    tool = broken_tool(of_the_moment)
    broken = ("test_the_same_episode_twice_reads_the_same",)


class TestRemembers(Base):
    tool = broken_tool(remembers)
    broken = ("test_the_same_episode_twice_reads_the_same",)


class TestNamesThePlace(Base):
    tool = broken_tool(names_the_place)
    broken = ("test_the_same_episode_twice_reads_the_same",)


class TestWrites(Base):
    tool = broken_tool(writes)
    writes = True
    broken = ("test_readonly_files_are_not_changed",)


class TestLeavesAThread(Base):
    tool = broken_tool(leaves_a_thread)
    broken = ("test_nothing_is_left_when_the_environment_is_closed",)


class TestNoJson(Base):
    tool = broken_tool(no_json)
    broken = ("test_calls_work",)


class TestExampleIsWrong(Base):
    tool = broken_tool(of_the_moment, examples=({"file": "hello.txt"},))
    broken = ("test_examples_are_right",)


class TestNotRegistered(Base):
    registered = True
    tool = broken_tool(of_the_moment)
    broken = ("test_a_plugin_registers_it_under_its_name",)


class TestName(Base):
    tool = broken_tool(of_the_moment, name="two words")
    broken = ("test_name_and_help_are_fit",)


def steady(self: Any, env: Any, path: str) -> str:
    """Args:
    path: the file
    """
    return str(len(env.workspace.read_bytes(path)))


class Specified:
    """An event that tools of this module may answer."""

    @staticmethod
    @hookspec
    def on_file_opened(env: Any, path: str) -> None:
        """A file was opened."""


def fail(self: Any) -> None:
    raise LookupError("of the event")


def answer_a_number(self: Any, env: Any, call: Any) -> Any:
    return 5


def read_again(self: Any, env: Any, path: str) -> str:
    return str(len(env.workspace.read_bytes(path)))


def decode_it(self: Any, env: Any, path: str) -> None:
    if path == "by a command.txt":
        env.session.read(path).decode()


class TestFailsOnReset(Base):
    tool = broken_tool(steady, on_reset=hookimpl(fail))
    broken = ("test_events_are_answered",)


class TestFailsOnStep(Base):
    tool = broken_tool(steady, on_step=hookimpl(answer_a_number))
    broken = ("test_events_are_answered", "test_calls_work")


class TestFailsOnDeletedFiles(Base):
    tool = broken_tool(steady, on_file_changed=hookimpl(read_again))
    broken = ("test_events_are_answered",)


class TestFailsOnFilesOfCommands(Base):
    tool = broken_tool(steady, on_file_changed=hookimpl(decode_it))
    broken = ("test_events_are_answered",)


class TestFailsOnEvaluated(Base):
    tool = broken_tool(steady, on_evaluated=hookimpl(fail))
    broken = ("test_events_are_answered",)


class TestFailsOnSubmitted(Base):
    tool = broken_tool(steady, on_submitted=hookimpl(fail))
    broken = ("test_events_are_answered",)


class TestUnmarked(Base):
    tool = broken_tool(steady, on_reset=lambda self: None)
    broken = ("test_events_are_known_and_marked",)


class TestNoTool(Base):
    broken = ("test_calls_work", "test_ignored_files_are_refused")


class TestInstance(Base):
    tool: ClassVar[Any] = broken_tool(steady)()
    broken = ("test_calls_work",)


class TestOneCall(Base):
    tool = broken_tool(steady)
    calls: ClassVar[Any] = {"path": "hello.txt"}
    broken = ("test_calls_work",)


class TestMisspelled(Base):
    tool = broken_tool(steady, on_file_change=hookimpl(fail))
    broken = ("test_events_are_known_and_marked",)


class TestMisnamedArgument(Base):
    tool = broken_tool(steady, on_file_opened=hookimpl(lambda self, env, file: None))
    broken = ("test_events_are_known_and_marked",)


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
