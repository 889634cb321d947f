"""How a tool answers events: what else happens in an episode."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.errors import ActionError
from debug_gym_core.plugins import default_plugins
from debug_gym_core.testing.tool_calls import ToolTests
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.event_checks import examine, methods
from debug_gym_core.workspace.files import Workspace


@dataclass(frozen=True)
class Change:
    """A change of a file of the sample, in two ways; `what` says which, after who did it."""

    what: str
    by_tool: Callable[[Workspace], object]
    by_command: str


CHANGES = (
    Change("changed a file", lambda files: files.write_text("hello.txt", "hello\n"), "printf 'again\\n' >> hello.txt"),
    Change(
        "made a file that is not UTF-8",
        lambda files: files.write_bytes("by a tool.txt", b"caf\xe9\n"),
        r"printf 'caf\351\n' > 'by a command.txt'",
    ),
    Change("deleted a file", lambda files: files.remove("hello.txt"), "rm docs/guide.md"),
)


class EventTests(ToolTests):
    """Events are those that exist, and none is answered with an exception."""

    def test_events_are_known_and_marked(self) -> None:
        """Its methods `on_*` are called: each is marked `@hookimpl`, of an event that exists, with its arguments."""
        found = examine(self.tool, [module.__name__ for module in default_plugins().manager.get_plugins()])
        assert not found.wrong + found.misspelled, "; ".join(found.wrong + found.misspelled)
        assert not found.doubtful, "; ".join(found.doubtful)

    def test_events_are_answered(self, env: RepoEnv) -> None:
        """It raises on no event that it answers: each is caused, and changes of files in every way."""
        answered = {one.event for one in methods(self.tool) if one.marked}
        if not answered:
            pytest.skip("answers no event")
        self.events_work(env, "the episode began")
        if answered & {"on_step", "on_file_changed"}:
            for number, change in enumerate(CHANGES):
                with contextlib.suppress(ActionError):  # a task may protect any file
                    change.by_tool(env.workspace)
                env.step("")
                self.events_work(env, f"a tool {change.what}")
                env.session.run(["sh", "-c", change.by_command], timeout=60)
                env.step(ToolCall(self.tool.name, self.good() if number else {"no_such_argument": 1}))
                self.events_work(env, f"a command {change.what}")
        if "on_evaluated" in answered:
            env.measure()
            env.step("")
            self.events_work(env, "the tests were run")
        if "on_submitted" in answered:
            for message in ("The first price was left out.", None):
                env.submit(message)
                env.step("")
                self.events_work(env, "the episode was submitted")
                env.reset(seed=0)
