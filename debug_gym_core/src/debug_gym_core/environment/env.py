"""The environment: one task made live in a sandbox, with tools; a real `gymnasium.Env`."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import gymnasium

from debug_gym_core.components.catalogue import Plugins, installed
from debug_gym_core.environment.dispatch import Dispatcher
from debug_gym_core.environment.live_task import LiveTask
from debug_gym_core.environment.parts import (
    check_conditions,
    checked_settings,
    make_tools,
    with_settings,
    with_terminal,
)
from debug_gym_core.environment.settings import default_tools
from debug_gym_core.environment.spaces import ActionSpace, TextSpace
from debug_gym_core.errors import SandboxError, SandboxLost, UsageError
from debug_gym_core.tasks.task import Task
from debug_gym_core.tools.observation import Observation, render
from debug_gym_core.tools.tool import examples

if TYPE_CHECKING:
    from debug_gym_core.tools.action import ToolCall

_REPLACED = (
    "The sandbox was lost ({}). This step was done again in a new one with the files as they were last known. "
    "Programs that ran, and files outside of the repository, are gone."
)

log = logging.getLogger("debug_gym")


class RepoEnv(LiveTask, gymnasium.Env[dict[str, str], Any]):
    """A repository with a bug, live in a sandbox.

    Observations are a dict of `text` (what a model reads) and `json` (a JSON list of `{source, text, data}`, one per
    tool that spoke). An action is a `ToolCall`, its JSON or its text form. The reward is the change of the score,
    measured when the tests ran.

    Attributes:
        task: what is worked on
        settings: the `env` settings
        tools: the tools by name, without those that are withheld
        interruption: by which `interrupt` ends what a tool runs in the sandbox
        workspace: the files, once the environment was reset
        session: the live sandbox, once the environment was reset
        breakpoints: the debugger's breakpoints, kept over its restarts
        score: tests that count and pass, as last measured; 0 when one failed that passed before
        broken: ids of tests that passed before and did not when last measured
        dropped: changes that grading does not take over, and why, by path, as they were when last measured
        unconfirmed: why the task is not resolved though all tests that count passed when last measured in place: what
            they did on a clean copy; empty where nothing contradicts
        measured: whether anything was measured since the last reset: a score of 0 says nothing before
        max_score: tests that count; fixed by the task
        steps: steps since the last reset
        rewrites: steps since the last reset that changed files: through the workspace, or by running what changed or
            removed text files of the repository; what a program makes for itself, or the tests write, does not count;
            a step after which the files could not be compared does
        rewritten: whether the current step is one of these
        failure: why the sandbox is gone for good, else None
        final_grade: the clean grade that `submit` made, else None
        ended: why the episode is over, else None: `submitted`, `resolved`, `max_steps`, `max_rewrites`, `time`, `lost`
        last_observations: what was said at the last reset or step, an Observation for each who spoke: first the tool
            that was called, or `env`
    """

    # gymnasium's declaration; frames a second mean nothing to text, but its checker asks for a number.
    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        task: Task,
        tools: Sequence[Any] | Mapping[str, Mapping[str, Any] | None] | None = None,
        terminal: str | Mapping[str, Any] = "auto",
        *,
        plugins: Plugins | None = None,
        trusted: bool = False,
        allow_unsandboxed: bool = False,
        max_steps: int | None = None,
        max_rewrites: int | None = None,
        max_seconds: float | None = None,
        run: str = "interactive",
        render_mode: str | None = None,
        notify: Callable[[str], None] | None = None,
        **settings: Any,
    ) -> None:
        """Prepare the environment; nothing is started before `reset`.

        Args:
            task: what to work on
            tools: names, `{name: settings}` or Tool instances, or a mapping of names to settings; None: view, listdir,
                rewrite, eval and pdb, and submit if `end_on_resolved` is false
            terminal: a backend's name, `auto`, `{name: settings}`, or name and settings side by side as in a config
            plugins: where names are looked up; None: what is installed
            trusted: the actions come from a person or from code of ours, not from a model
            allow_unsandboxed: do without a sandbox where none can be had, whoever acts
            max_steps: steps after which the episode is truncated, 1 or more
            max_rewrites: steps that change files after which it is, 1 or more
            max_seconds: wall-clock time after which it is
            run: id of the run that this belongs to, for the sandbox's labels
            render_mode: `ansi`, or None
            notify: is told, in a line, what a person should know (running without a sandbox, tests of another copy)
            settings: fields of `EnvSection`

        Raises:
            UsageError: an unknown name or a wrong setting
            PluginError: a plugin that is needed failed, or a tool's method does not fit the event that it answers
            RequirementError: there is no sandbox, or something else is missing
        """
        if not isinstance(task, Task):
            raise UsageError(f"RepoEnv takes a Task, not {task!r:.80}; debug_gym_core.make takes the id of one")
        check_conditions(
            trusted=trusted, allow_unsandboxed=allow_unsandboxed, max_steps=max_steps, max_rewrites=max_rewrites,
            max_seconds=max_seconds, run=run, render_mode=render_mode,
        )  # fmt: skip
        self.render_mode = render_mode
        checked = checked_settings(settings)
        self.plugins = plugins or installed()
        task = with_settings(task, checked)
        made = make_tools(
            default_tools(ends_on_resolved=checked.end_on_resolved is not False) if tools is None else tools,
            self.plugins,
        )
        backend, backend_settings, notes = with_terminal(
            task, terminal, self.plugins, trusted=trusted, allow_unsandboxed=allow_unsandboxed
        )
        super().__init__(task, made, checked, backend, backend_settings, run=run, notify=notify)
        for text in (*notes, *self._without_effect):
            (notify or log.warning)(text)
        self.max_steps, self.max_rewrites, self.max_seconds = max_steps, max_rewrites, max_seconds
        self._dispatcher = Dispatcher(self, self._sandbox, self._events, self._files, self._dropped, self._failed)
        self._start_over()
        self.observation_space = cast(
            "gymnasium.Space[dict[str, str]]", gymnasium.spaces.Dict({"text": TextSpace(), "json": TextSpace()})
        )
        self.action_space = ActionSpace(
            [(name, one) for name, tool in self.tools.items() for one in examples(type(tool))]
        )

    def _start_over(self) -> None:
        """Forget the last episode."""
        self._clear()
        self._dispatcher.call = None
        self.rewrites = 0
        self.ended: str | None = None
        self.last_observations: tuple[Observation, ...] = ()
        self._last_text = ""
        self._started = time.monotonic()

    # Gymnasium's interface

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """Start an episode: a fresh sandbox with the pristine repository.

        Args:
            seed: seeds everything of ours, and PYTHONHASHSEED in the sandbox; None keeps the last one
            options: none exist

        Raises:
            UsageError: there is an option
            RequirementError: something is missing on this machine
            TaskError: the repository has no test that could pass, or the entrypoint cannot be started in it
            SandboxError: the sandbox did not start
        """
        if options:
            given = ", ".join(map(repr, options))
            raise UsageError(f"reset takes no options ({given}): `make` takes the task, and how it is played")
        super().reset(seed=seed)
        if seed is not None:
            self._sandbox.seed = seed
        self._sandbox.end()
        self._start_over()
        try:
            self._open()
        except BaseException:
            self._sandbox.end_quietly()
            raise
        self._started = time.monotonic()
        observations = [Observation("env", self.instructions())]
        self._events.emit("on_reset")
        observations += self._events.drain(self)
        return self._observe(observations), self.info

    def step(self, action: Any) -> tuple[dict[str, str], float, bool, bool, dict[str, Any]]:
        """Carry out one action.

        Whatever is wrong with the action comes back as an observation; a tool that fails never ends the episode.
        Whoever goes on after `submit` changes nothing of what that recorded: the score, `resolved`, `final_grade`.

        Args:
            action: a ToolCall, its JSON form, or its text form

        Returns:
            observation, reward, terminated, truncated, info

        Raises:
            gymnasium.error.ResetNeeded: the environment was not reset
        """
        if not self._sandbox.live and self.failure is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        before = self.score
        self.steps += 1
        observations: list[Observation] = []
        answered: list[Observation] = []
        self._dispatcher.call = None
        try:
            self._sandbox.keep_files()  # an agent of ours may have changed some since the last step
            answered = self._events.drain(self)  # and the tools are told before one of them works on it
            known, files = self._known(), self._sandbox.kept.changes
            try:
                self._dispatcher.carry_out(action, observations)
            except SandboxLost as error:
                if not self._sandbox.replace(error, files):
                    raise
                self._events.clear()
                self._set_known(known)
                observations.clear()
                self._dispatcher.carry_out(action, observations)
                observations.append(Observation("env", _REPLACED.format(_short(error))))
        except SandboxLost as error:
            observations.append(self._lost(error))
            try:
                observations += self._dispatcher.see_files()
            except SandboxLost as again:
                observations.append(self._files.unseen(again))
        observations[1:1] = answered
        self.rewrites += self.rewritten
        self.rewritten = self._files.tests_ran = False
        if self.final_grade is not None:
            self._set_grade(self.final_grade)  # whatever was measured since
        reward = float(self.score - before)
        terminated, truncated = self._terminated(), self._truncated()
        self.ended = (terminated or truncated) or None
        return self._observe(observations), reward, bool(terminated), bool(truncated), self.info

    def __reduce__(self) -> Any:
        """Refuse to be copied or pickled: what is live in the sandbox cannot be."""
        raise TypeError("an environment has a live sandbox and cannot be copied or pickled: make another one")

    def render(self) -> str | None:
        """The last observation's text, for render mode `ansi`."""
        return self._last_text if self.render_mode == "ansi" else None

    def close(self) -> None:
        """End the sandbox and remove everything of it; may be called twice."""
        self._sandbox.close()

    # What was said last

    def interrupt(self) -> bool:
        """End the run of the tests, or have the tool that is at work stop what it runs, as Ctrl-C does.

        Called from another thread than `step`.

        Returns:
            whether there is something that can be stopped
        """
        name = self._dispatcher.at_work
        try:
            return self.interruption.ask() or (name is not None and self.tools[name].interrupt())
        except Exception:
            log.warning("interrupting %s failed", name or "the run of the tests", exc_info=True)
            return False

    @property
    def at_work(self) -> str | None:
        """The name of the tool that is at work; None: none is."""
        return self._dispatcher.at_work

    @property
    def info(self) -> dict[str, Any]:
        """The `info` of the last reset or step, as it is now."""
        return {
            "score": self.score,
            "max_score": self.max_score,
            "resolved": self.resolved,
            "breakpoints": [str(one) for one in self.breakpoints],
            "step": self.steps,
            "tools": list(self.tools),
        }

    @property
    def last_text(self) -> str:
        """The text of the last observation."""
        return self._last_text

    @property
    def last_call(self) -> ToolCall | None:
        """What the action of the last step was understood as; None: as no call."""
        return self._dispatcher.call

    # Parts of an episode

    def _open(self) -> None:
        """Have a sandbox with the pristine repository, and know which tests count."""
        session = self._sandbox.open()
        if self._tests.find(session, self.run_timeout):
            self._sandbox.end()  # what the search left in the repository is no change of the agent's
            self._sandbox.open()
            self._tests.notes += filter(None, [self._dropped.unfixable(), self._dropped.unmendable()])
            for text in self._tests.notes:
                (self._notify or log.warning)(text)

    def _known(self) -> dict[str, Any]:
        """What a step that has to be done again must find as it was."""
        kept = ["breakpoints", "score", "resolved", "broken", "dropped", "unconfirmed", "measured", "rewritten"]
        kept += ["submitted", "final_grade"]
        known = {name: copy.deepcopy(getattr(self, name)) for name in kept}
        return {**known, "tests_ran": self._files.tests_ran}

    def _set_known(self, known: dict[str, Any]) -> None:
        self._files.tests_ran = known.pop("tests_ran")
        for name, value in known.items():
            setattr(self, name, value)

    def _lost(self, error: SandboxLost) -> Observation:
        """The sandbox, or the guest in it, went away during a step, and no other one takes its place."""
        self._events.clear()
        if not self._sandbox.stands(error):
            return Observation("env", "The sandbox is gone; the episode cannot go on.", error=True)
        self._free_tools()
        text = "The sandbox's processes were lost and are started again; files are as they were. Try again."
        return Observation("env", text, error=True)

    def _terminated(self) -> str:
        """Why the episode is terminated; empty when it is not."""
        if self.submitted:
            return "submitted"
        if self.resolved and self.settings.end_on_resolved is not False:
            return "resolved"
        return "lost" if self.failure is not None else ""

    def _truncated(self) -> str:
        """Which limit truncates the episode; empty when none does."""
        if self.max_steps is not None and self.steps >= self.max_steps:
            return "max_steps"
        if self.max_rewrites is not None and self.rewrites >= self.max_rewrites:
            return "max_rewrites"
        if self.max_seconds is not None and time.monotonic() - self._started >= self.max_seconds:
            return "time"
        return ""

    def _observe(self, observations: list[Observation]) -> dict[str, str]:
        """Render what was said; programs are told the breakpoints too where no debugger said them.

        They are told them as by the debugger that was called, else by the first.
        """
        self.last_observations = tuple(observations)
        breakpoints = self.breakpoints.as_json()
        called = self.last_call.name if self.last_call else None
        debuggers = [name for name, tool in self.tools.items() if tool.sets_breakpoints]
        debuggers.sort(key=lambda name: name != called)
        told = any(one.source in debuggers and one.data.get("breakpoints") == breakpoints for one in observations)
        if debuggers and not told:
            observations = [*observations, Observation(debuggers[0], "", {"breakpoints": breakpoints})]
        observation = render(observations)
        self._last_text = observation["text"]
        return observation


def _short(error: SandboxError) -> str:
    """The first words of an error, in one line."""
    return " ".join(str(error).split())[:200]
