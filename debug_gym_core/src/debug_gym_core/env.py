"""The environment: one task made live in a sandbox, with tools; a real `gymnasium.Env`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import gymnasium
import pluggy

from debug_gym_core import action as actions
from debug_gym_core import grading, tool
from debug_gym_core.action import ToolCall
from debug_gym_core.assembly import bare_call, checked_settings, make_tools, one_choice, with_settings
from debug_gym_core.breakpoints import Breakpoints, edits_between
from debug_gym_core.choice import choose_terminal
from debug_gym_core.errors import ActionError, SandboxError, SandboxLost, UsageError
from debug_gym_core.event_queue import EventQueue
from debug_gym_core.observation import Observation, render
from debug_gym_core.plugins import Plugins, default_plugins
from debug_gym_core.rules import Rules
from debug_gym_core.sandbox import SandboxFactory
from debug_gym_core.snapshot import Snapshot
from debug_gym_core.spaces import ActionSpace, TextSpace
from debug_gym_core.workspace import Workspace

if TYPE_CHECKING:
    from debug_gym_core.grading import Grade, Measurement
    from debug_gym_core.session import Session
    from debug_gym_core.task import Task

DEFAULT_TOOLS: tuple[str, ...] = ("view", "listdir", "rewrite", "eval", "pdb")

log = logging.getLogger("debug_gym")


class RepoEnv(gymnasium.Env[dict[str, str], Any]):
    """A repository with a bug, live in a sandbox.

    Observations are a dict of `text` (what a model reads) and `json` (a JSON list of `{source, text, data}`, one per
    tool that spoke). Actions are `ToolCall`s, or their JSON or text form. The reward is the change of the score,
    measured when the tests ran.

    Attributes:
        task: what is worked on
        settings: the `env` settings
        tools: the tools by name
        workspace: the files, once the environment was reset
        session: the live sandbox, once the environment was reset
        breakpoints: the debugger's breakpoints, kept over its restarts
        score: tests that count and pass, as last measured
        max_score: tests that count; fixed by the task
        steps: steps since the last reset
        rewrites: steps since the last reset that changed files
        failure: why the sandbox is gone for good, else None
        final_grade: the clean grade that `submit` made, else None
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}  # noqa: RUF012 (gymnasium's declaration)

    def __init__(
        self,
        task: Task,
        tools: Sequence[Any] | None = None,
        terminal: str | Mapping[str, Mapping[str, Any] | None] = "auto",
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
            tools: names, `{name: settings}` or Tool instances; None: view, listdir, rewrite, eval, pdb
            terminal: a backend's name, `auto`, or `{name: settings}`
            plugins: where names are looked up; None: what is installed
            trusted: the actions come from a person or from code of ours, not from a model
            allow_unsandboxed: do without a sandbox where none can be had, whoever acts
            max_steps: steps after which the episode is truncated
            max_rewrites: steps that change files after which it is
            max_seconds: wall-clock time after which it is
            run: id of the run that this belongs to, for the sandbox's labels
            render_mode: `ansi`, or None
            notify: is told, in a line, what a person should know (running without a sandbox)
            settings: fields of `EnvSection`

        Raises:
            UsageError: an unknown name or a wrong setting
            PluginError: a plugin that is needed failed
            RequirementError: there is no sandbox, or something else is missing
        """
        self.render_mode = render_mode
        self.settings = checked_settings(settings)
        self.plugins = plugins or default_plugins()
        self.task = with_settings(task, self.settings)
        self.tools = make_tools(DEFAULT_TOOLS if tools is None else tools, self.plugins)
        self.max_steps, self.max_rewrites, self.max_seconds = max_steps, max_rewrites, max_seconds
        name, backend_settings = one_choice(terminal)
        if allow_unsandboxed:
            backend_settings = {**backend_settings, "allow_unsandboxed": True}
        backend, note = choose_terminal(name, self.task, trusted, self.plugins, backend_settings)
        if note:
            (notify or log.warning)(note)
        if self.task.image and backend.runs_images:
            backend_settings.setdefault("image", self.task.image)
        self._backend, self._backend_settings, self._run = backend, backend_settings, run
        self._snapshot: Snapshot | None = None
        self._factory: SandboxFactory | None = None
        self._session: Session | None = None
        self._workspace: Workspace | None = None
        self._rules: Rules | None = None
        self._tests: tuple[str, ...] = self.task.tests
        self._counted = False
        self._max_score: int | None = self.task.max_score or len(self.task.tests) or None
        self._seed = 0
        self._events = EventQueue(self.tools, self._failed)
        self.failure: SandboxError | None = None
        self.final_grade: Grade | None = None
        self.last_call: ToolCall | None = None
        self.last_observations: tuple[Observation, ...] = ()
        self._restored: list[str] = []
        self._clear()
        self.observation_space = cast(
            "gymnasium.Space[dict[str, str]]", gymnasium.spaces.Dict({"text": TextSpace(), "json": TextSpace()})
        )
        self.action_space = ActionSpace(
            [(name, one) for name, made in self.tools.items() for one in (made.examples or bare_call(made))]
        )

    # Gymnasium's interface

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """Start an episode: a fresh sandbox with the pristine repository.

        Args:
            seed: seeds everything of ours, and PYTHONHASHSEED in the sandbox; None keeps the last one
            options: none exist

        Raises:
            RequirementError: something is missing on this machine
            SandboxError: the sandbox did not start
        """
        super().reset(seed=seed)
        if seed is not None:
            self._seed = seed
        self._end_session()
        self._clear()
        if self._snapshot is None:
            self._snapshot = Snapshot.take(self.task.repository)
        if self._factory is None:
            self._factory = SandboxFactory(
                self._backend,
                self._backend_settings,
                self.task,
                self._snapshot,
                python=self.settings.python,
                run=self._run,
            )
        self._session = self._factory.open(self._seed)
        self._rules = Rules.of(self._snapshot, ignore=self.task.ignore, readonly=self.task.readonly)
        self._workspace = Workspace(self._session, self._snapshot, self._rules, self._file_changed)
        if not (self._tests or self._counted):
            self._tests = grading.collect(self._session, self.task.entrypoint, timeout=self.run_timeout)
            self._max_score = self._max_score or max(1, len(self._tests))
            self._counted = True
        self._started = time.monotonic()
        observations = [Observation("env", self.instructions())]
        self._events.emit("on_reset")
        observations += self._events.drain(self)
        return self._observe(observations), self._info()

    def step(self, action: Any) -> tuple[dict[str, str], float, bool, bool, dict[str, Any]]:
        """Carry out one action.

        Whatever is wrong with the action comes back as an observation; a tool that fails never ends the episode.

        Args:
            action: a ToolCall, its JSON form, or its text form

        Returns:
            observation, reward, terminated, truncated, info

        Raises:
            gymnasium.error.ResetNeeded: the environment was not reset
        """
        if self._session is None and self.failure is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        before = self.score
        self.steps += 1
        observations: list[Observation] = []
        call = None
        try:
            if self.failure is not None:
                raise self.failure
            try:
                call = actions.parse(action, {name: type(made) for name, made in self.tools.items()})
                observations.append(self._use(call))
            except ActionError as error:
                observations.append(Observation(call.name if call else "env", str(error), error=True))
            if self._events.waiting("on_file_changed"):
                self.rewrites += 1
            if call is not None:
                self._events.emit("on_step", call=call)
            observations += self._events.drain(self)
            if self._restored:
                observations.append(self._restoration())
        except SandboxLost as error:
            observations.append(self._lost(error))
        self.last_call = call
        reward = float(self.score - before)
        return self._observe(observations), reward, self._terminated(), self._truncated(), self._info()

    def render(self) -> str | None:
        """The last observation's text, for render mode `ansi`."""
        return self._last_text if self.render_mode == "ansi" else None

    def close(self) -> None:
        """End the sandbox and remove everything of it; may be called twice."""
        try:
            self._end_session()
        finally:
            if self._factory is not None:
                self._factory.close()
            if self._snapshot is not None:
                self._snapshot.close()
                self._snapshot = self._factory = None

    # What tools and callers use

    @property
    def session(self) -> Session:
        """The live sandbox."""
        if self._session is None:
            raise UsageError("the environment is not live; call reset() first")
        return self._session

    @property
    def terminal(self) -> Session:
        """The live sandbox, under the name that users know: `env.terminal.run(...)`."""
        return self.session

    @property
    def workspace(self) -> Workspace:
        """The files of the task in the sandbox."""
        if self._workspace is None:
            raise UsageError("the environment is not live; call reset() first")
        return self._workspace

    @property
    def patch(self) -> bytes:
        """What the agent changed, as a `git apply`-able diff."""
        return self.workspace.patch()

    @property
    def max_score(self) -> int:
        """How many tests count."""
        return self._max_score or 0

    @property
    def entrypoint(self) -> str:
        """The command that runs the tests."""
        return self.task.entrypoint

    @property
    def debug_entrypoint(self) -> str:
        """The command that the debugger starts."""
        return self.task.debug_entrypoint or self.task.entrypoint

    @property
    def run_timeout(self) -> float:
        """Seconds that one run of the task's code may take."""
        return self.task.time_limit or self.settings.run_timeout

    @property
    def seed(self) -> int:
        """The seed of the episode."""
        return self._seed

    @property
    def hook(self) -> pluggy.HookRelay:
        """The events of this environment."""
        return self._events.hook

    @property
    def last_text(self) -> str:
        """The text of the last observation."""
        return self._last_text

    @property
    def notes(self) -> tuple[str, ...]:
        """What the sandbox could not do on this machine."""
        return self._factory.notes if self._factory else ()

    @property
    def terminal_name(self) -> str:
        """Name of the backend."""
        return str(self._backend.name)

    def add_event_specs(self, specs: Any) -> None:
        """Let a tool add events of its own: a module or object with `@hookspec` functions."""
        self._events.add_specs(specs)

    def emit(self, event: str, **arguments: Any) -> None:
        """Queue an event; its answers join the step's observation after what is queued already."""
        self._events.emit(event, **arguments)

    def measure(self) -> Measurement:
        """Run the tests in place, for the agent's information; sets the score.

        Raises:
            SandboxLost: the sandbox went away
        """
        measurement = grading.measure(self.session, self.task.entrypoint, timeout=self.run_timeout)
        self.score, _ = grading.score(measurement, self._tests, self.max_score)
        self.resolved = grading.is_resolved(measurement, self._tests, self.max_score)
        self._events.emit("on_evaluated", measurement=measurement)
        self._restored += self.workspace.restore_readonly()
        return measurement

    def submit(self, message: str | None = None) -> Grade:
        """End the episode and grade it."""
        try:
            grade = self.grade()
        except SandboxError as error:
            self.failure = error
            raise
        self.submitted, self.final_grade = True, grade
        self.score, self.resolved = grade.score, grade.resolved
        self._events.emit("on_submitted", message=message)
        return grade

    def grade(self) -> Grade:
        """Grade the workspace as it stands in a fresh sandbox.

        Raises:
            SandboxError: no sandbox could be had for it
        """
        if self._factory is None or self._snapshot is None or self._rules is None:
            raise UsageError("the environment is not live; call reset() first")
        factory, seed = self._factory, self._seed
        return grading.grade(
            self.task,
            self._snapshot,
            self.workspace.changes(),
            lambda: factory.fresh(seed),
            tests=self._tests,
            max_score=self.max_score,
            timeout=self.run_timeout,
            rules=self._rules,
        )

    def instructions(self) -> str:
        """What the agent is told at the start: the task, how it is run, the tools."""
        lines = [f"Task {self.task.id}"]
        if self.task.description:
            lines += ["", self.task.description.strip()]
        lines += [
            "",
            f"The repository is in /testbed. Its tests run with: {self.task.entrypoint}",
            f"{self.max_score} tests count; all must pass.",
            "",
            "Tools:",
        ]
        for name, made in self.tools.items():
            lines.append(
                f"- {tool.usage(type(made))}: {type(made).help().splitlines()[0] if type(made).help() else name}"
            )
        return "\n".join(lines)

    # Parts of a step

    def _file_changed(self, path: str, before: bytes | None, after: bytes | None) -> None:
        edits = edits_between(before, after)
        if edits or before is None or after is None:
            self._events.emit("on_file_changed", path=path, edits=edits)

    def _use(self, call: ToolCall) -> Observation:
        made = self.tools[call.name]
        arguments = type(made).check(call.arguments)
        try:
            return tool.as_observation(call.name, made.use(self, **arguments))
        except (ActionError, SandboxLost):
            raise
        except (Exception, SystemExit) as error:
            return Observation(call.name, self._failed(call.name, error), error=True)

    def _failed(self, what: str, error: BaseException) -> str:
        """A tool's own exception as words for the agent; the traceback goes to the log only."""
        log.debug("%s failed", what, exc_info=error)
        text = " ".join(str(error).split())[:500]
        return f"{what} failed: {type(error).__name__}: {text}" if text else f"{what} failed: {type(error).__name__}"

    def _lost(self, error: SandboxLost) -> Observation:
        """The sandbox, or the guest in it, went away during a step."""
        self._events.clear()
        if self.failure is None and self._session is not None:
            try:
                self._session.guest()  # connects anew
                for made in self.tools.values():
                    made.close()
                text = "The sandbox's processes were lost and are started again; files are as they were. Try again."
                return Observation("env", text, error=True)
            except SandboxError as gone:
                log.debug("no new guest", exc_info=gone)
        self.failure = self.failure or error
        return Observation("env", "The sandbox is gone; the episode cannot go on.", error=True)

    def _restoration(self) -> Observation:
        """Say which read-only files the program changed; they are put back."""
        paths, self._restored = sorted(set(self._restored)), []
        shown = ", ".join(paths[:10]) + (f" and {len(paths) - 10} more" if len(paths) > 10 else "")
        return Observation("env", f"Read-only files were changed and are put back: {shown}", {"restored": paths})

    def _terminated(self) -> bool:
        ends = self.settings.end_on_resolved is not False
        return self.submitted or (self.resolved and ends) or self.failure is not None

    def _truncated(self) -> bool:
        return (
            (self.max_steps is not None and self.steps >= self.max_steps)
            or (self.max_rewrites is not None and self.rewrites >= self.max_rewrites)
            or (self.max_seconds is not None and time.monotonic() - self._started >= self.max_seconds)
        )

    def _observe(self, observations: Sequence[Observation]) -> dict[str, str]:
        self.last_observations = tuple(observations)
        observation = render(observations)
        self._last_text = observation["text"]
        return observation

    def _info(self) -> dict[str, Any]:
        return {
            "score": self.score,
            "max_score": self.max_score,
            "resolved": self.resolved,
            "breakpoints": [str(one) for one in self.breakpoints],
            "step": self.steps,
            "tools": list(self.tools),
        }

    def _clear(self) -> None:
        self._events.clear()
        self.breakpoints = Breakpoints()
        self.score = 0
        self.steps = 0
        self.rewrites = 0
        self.resolved = False
        self.submitted = False
        self.failure = self.final_grade = self.last_call = None
        self.last_observations = ()
        self._restored = []
        self._last_text = ""
        self._started = time.monotonic()

    def _end_session(self) -> None:
        session, self._session, self._workspace = self._session, None, None
        for made in self.tools.values():
            try:
                made.close()
            except Exception as error:
                self._failed(f"{made.name} at its end", error)
        if session is not None:
            session.close()
