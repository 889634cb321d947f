"""Tools that break promises, each with the tests of their contract that must see it.

Not collected by itself: `test_contracts.py` runs it.
"""

from __future__ import annotations

import threading
import time
from typing import Any, ClassVar

from debug_gym_core import Tool, hookimpl, hookspec
from debug_gym_core.testing import (
    ToolContract,
)


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
