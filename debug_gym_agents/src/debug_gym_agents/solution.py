"""The agent that knows the solution: validates a benchmark and the debugger on it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from debug_gym_core import LLM, Agent, Observation, ToolCall
from debug_gym_core.errors import TaskError
from debug_gym_core.workspace.patch import unquoted

if TYPE_CHECKING:
    from debug_gym_core import RepoEnv, Task


class SolutionAgent(Agent):
    """Plays the known solution: the tests fail, the debugger stops at the bug, the gold patch makes them pass.

    Where only grading has the tests there is nothing to see before; it applies the patch.
    """

    name = "solution_agent"
    tools: ClassVar[Sequence[str] | None] = ("eval", "pdb")
    needs_llm = False

    def check(self, task: Task) -> None:
        """Refuse a task that has no gold patch.

        Raises:
            TaskError: it has none
        """
        if task.gold_patch is None:
            raise TaskError(f"{task.id} has no gold patch, so {self.name} cannot play it")

    def play(self, env: RepoEnv, llm: LLM | None) -> None:
        """Play one episode.

        Raises:
            TaskError: the task has no gold patch, passes before it, or its stops are never reached
        """
        self.check(env.task)
        patch = env.task.gold_patch
        assert patch is not None
        if env.task.mode != "hidden":
            self._look(env, patch)
        env.workspace.apply(patch)
        self._step(env, ToolCall("eval"))

    def _look(self, env: RepoEnv, patch: bytes) -> None:
        """See the tests fail, and the debugger stop at the bug."""
        self._step(env, ToolCall("eval"))
        if env.resolved:
            raise TaskError(f"{env.task.id}: the tests pass before the gold patch is applied")
        stops = env.task.stops or (first_change(patch),)
        for stop in stops:
            self._step(env, ToolCall("pdb", {"command": f"b {stop}"}))
        where = self._stop(self._step(env, ToolCall("pdb", {"command": "c"})))
        if where not in stops:
            raise TaskError(
                f"{env.task.id}: the debugger did not stop at {' or '.join(stops)} but at {where or 'none'}"
            )

    def _step(self, env: RepoEnv, call: ToolCall) -> Sequence[Observation]:
        _, _, terminated, truncated, _ = env.step(call)
        spoken = env.last_observations
        if spoken and spoken[0].error:
            raise TaskError(f"{env.task.id}: {call.name} {call.arguments}: {spoken[0].text}")
        if (terminated or truncated) and not env.resolved:
            raise TaskError(f"{env.task.id}: the episode ended early, at step {env.steps}")
        return spoken

    @staticmethod
    def _stop(spoken: Sequence[Observation]) -> str | None:
        """Where the debugger says that it stopped, as `file:line`."""
        stop = spoken[0].data.get("stop") if spoken else None
        return f"{stop['file']}:{stop['line']}" if stop and stop.get("reason") == "breakpoint" else None


def first_change(patch: bytes) -> str:
    """The first line that a patch changes, in the old file's numbering.

    Args:
        patch: a unified diff

    Returns:
        `file:line`

    Raises:
        TaskError: the patch changes no line of an existing file
    """
    path = ""
    line = 0
    for text in patch.decode("utf-8", "surrogateescape").split("\n"):
        if line and path != "/dev/null":
            if text[:1] in ("+", "-"):  # which may look like the header of a file
                return f"{path}:{line}"
            line += 1
        elif text.startswith("--- "):
            path = unquoted(text[4:].split("\t")[0]).removeprefix("a/")
        if match := re.match(r"@@ -(\d+)", text):
            line = int(match[1])
    raise TaskError("the gold patch changes no line of an existing file; the task must name its stops")
