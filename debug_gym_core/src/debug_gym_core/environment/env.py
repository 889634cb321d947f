"""The environment: one task made live in a sandbox, with tools; a real `gymnasium.Env`."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import gymnasium
import pluggy

from debug_gym_core.components.catalogue import Plugins, installed
from debug_gym_core.debugging.breakpoints import Breakpoints
from debug_gym_core.environment.backend import choose_terminal
from debug_gym_core.environment.image_repositories import image_settings, repository_of, tests_of_image
from debug_gym_core.environment.parts import bare_call, checked_settings, make_tools, one_choice, with_settings
from debug_gym_core.environment.recovery import REPLACEMENTS, Kept, insist, with_files
from debug_gym_core.environment.sandboxes import SandboxFactory
from debug_gym_core.environment.spaces import ActionSpace, TextSpace
from debug_gym_core.errors import ActionError, GradingError, RequirementError, SandboxError, SandboxLost, UsageError
from debug_gym_core.grading import grade as clean
from debug_gym_core.grading import measure as in_place
from debug_gym_core.tasks import results
from debug_gym_core.tools import action as actions
from debug_gym_core.tools import tool
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.observation import Observation, render
from debug_gym_core.tools.queue import EventQueue
from debug_gym_core.workspace.changes import Changes, patch_of
from debug_gym_core.workspace.files import Workspace
from debug_gym_core.workspace.lines import shown
from debug_gym_core.workspace.pristine import Pristine
from debug_gym_core.workspace.program_changes import Unknown, edits_of
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import Snapshot

if TYPE_CHECKING:
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.tasks.results import Grade, Measurement
    from debug_gym_core.tasks.task import Task

DEFAULT_TOOLS: tuple[str, ...] = ("view", "listdir", "rewrite", "eval", "pdb")

CHANGES_TOLD = 50
"""Files that a program changed of which the tools are told after one step, those with breakpoints first."""

_REPLACED = (
    "The sandbox was lost ({}). This step was done again in a new one with the files as they were last known. "
    "Programs that ran, and files outside of the repository, are gone."
)

log = logging.getLogger("debug_gym")


class RepoEnv(gymnasium.Env[dict[str, str], Any]):
    """A repository with a bug, live in a sandbox.

    Observations are a dict of `text` (what a model reads) and `json` (a JSON list of `{source, text, data}`, one per
    tool that spoke). An action is a `ToolCall`, its JSON or its text form. The reward is the change of the score,
    measured when the tests ran.

    Attributes:
        task: what is worked on
        settings: the `env` settings
        tools: the tools by name, without those that are withheld
        workspace: the files, once the environment was reset
        session: the live sandbox, once the environment was reset
        breakpoints: the debugger's breakpoints, kept over its restarts
        score: tests that count and pass, as last measured; 0 when one failed that passed before
        broken: ids of tests that passed before and did not when last measured
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
            PluginError: a plugin that is needed failed, or a tool's method does not fit the event that it answers
            RequirementError: there is no sandbox, or something else is missing
        """
        self.render_mode = render_mode
        self.settings = checked_settings(settings)
        self.plugins = plugins or installed()
        self.task = with_settings(task, self.settings)
        self.tools = make_tools(DEFAULT_TOOLS if tools is None else tools, self.plugins)
        self._all_tools = dict(self.tools)
        self.max_steps, self.max_rewrites, self.max_seconds = max_steps, max_rewrites, max_seconds
        name, backend_settings = one_choice(terminal)
        if allow_unsandboxed:
            backend_settings = {**backend_settings, "allow_unsandboxed": True}
        backend, note = choose_terminal(name, self.task, trusted, self.plugins, backend_settings)
        if note:
            (notify or log.warning)(note)
        self._notify = notify
        if self.task.image and backend.runs_images:
            backend_settings.setdefault("image", self.task.image)
            backend_settings = {**backend_settings, **image_settings(self.task, backend_settings)}
        self._backend, self._backend_settings, self._run = backend, backend_settings, run
        self._pristine: Pristine | None = None
        self._factory: SandboxFactory | None = None
        self._session: Session | None = None
        self._workspace: Workspace | None = None
        self._rules: Rules | None = None
        self._kept = Kept()
        self._replaced = 0
        self._stumbled = False
        self._tests: tuple[str, ...] = self.task.tests
        self._counted = False
        self._task_notes: list[str] = []
        self._max_score: int | None = self.task.max_score or len(self.task.tests) or None
        self._seed = 0
        self.broken: tuple[str, ...] = ()
        self._events = EventQueue(self.tools, self._failed)
        self.failure: SandboxError | None = None
        self.final_grade: Grade | None = None
        self.ended: str | None = None
        self.last_call: ToolCall | None = None
        self.rewritten = False
        self._measured = False
        self.last_observations: tuple[Observation, ...] = ()
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
            TaskError: the repository has no test that could pass, or the entrypoint cannot be started in it
            SandboxError: the sandbox did not start
        """
        super().reset(seed=seed)
        if seed is not None:
            self._seed = seed
        self._end_session()
        self._clear()
        if self._pristine is None:
            source = repository_of(self.task, self._backend, self._backend_settings, self._takes_long)
            tests = tests_of_image(self.task, self._backend, self._backend_settings, self._takes_long)
            self._pristine = Pristine.take(self.task, source, tests)
        if self._factory is None:
            self._factory = SandboxFactory(
                self._backend,
                self._backend_settings,
                self.task,
                self._snapshot,
                graded=self._pristine.graded,
                python=self.settings.python,
                run=self._run,
                tell=self._takes_long,
            )
        self._rules = self._factory.rules
        self._workspace = self._attach(self._factory.open(self._seed))
        if not (self._tests or self._counted):
            self._tests = in_place.collect(
                self.session, self.task.entrypoint, timeout=self.run_timeout, notify=self._task_notes.append
            )
            self._max_score = self._max_score or max(1, len(self._tests))
            self._counted = True
            self._workspace.refresh()
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
        self.last_call = None
        try:
            self._keep_files()  # an agent of ours may have changed some since the last step
            known = self._known()
            try:
                self._carry_out(action, observations)
            except SandboxLost as error:
                if not self._replace_sandbox(error):
                    raise
                self._set_known(known)
                observations.clear()
                self._carry_out(action, observations)
                observations.append(Observation("env", _REPLACED.format(_short(error))))
        except SandboxLost as error:
            observations.append(self._lost(error))
            try:
                told = self._see_changes()
                observations += [*self._events.drain(self), *told]
            except SandboxLost as again:
                observations.append(self._unseen(again))
        self.rewrites += self.rewritten
        self.rewritten = self._measured = False
        reward = float(self.score - before)
        terminated, truncated = self._terminated(), self._truncated()
        self.ended = (terminated or truncated) or None
        return self._observe(observations), reward, bool(terminated), bool(truncated), self._info()

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
            if self._pristine is not None:
                self._pristine.close()
                self._pristine = self._factory = None

    # What tools and callers use

    @property
    def session(self) -> Session:
        """The live sandbox."""
        if self._session is None:
            raise UsageError("the environment is not live; call reset() first")
        return self._session

    @property
    def terminal(self) -> Session:
        """The live sandbox under the name that users know, as in `env.terminal.run(...)`."""
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
        changes = self._changes()
        return patch_of(self._snapshot, changes)

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
    def info(self) -> dict[str, Any]:
        """The `info` of the last reset or step, as it is now."""
        return self._info()

    @property
    def last_text(self) -> str:
        """The text of the last observation."""
        return self._last_text

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know: what the sandbox could not do on this machine, what is odd about the task."""
        return (*(self._factory.notes if self._factory else ()), *self._task_notes)

    @property
    def terminal_name(self) -> str:
        """Name of the backend."""
        return str(self._backend.name)

    def withhold(self, *names: str) -> None:
        """Take tools away until `give_back`, also over resets.

        They are not among `tools`, a call of one is answered as that of an unknown tool, and no event reaches them.
        What one holds is freed.

        Args:
            names: tools of this environment; others are passed over
        """
        taken = [name for name in names if name in self.tools]
        for name in taken:
            self.tools.pop(name).close()
        if taken:
            self._events.refresh()

    def give_back(self, *names: str) -> None:
        """Put withheld tools back into their places.

        Args:
            names: tools of this environment; others are passed over
        """
        there = {*self.tools, *names}
        if there & self._all_tools.keys() == self.tools.keys():
            return
        self.tools.clear()
        self.tools.update((name, made) for name, made in self._all_tools.items() if name in there)
        self._events.refresh()

    def add_event_specs(self, specs: Any) -> None:
        """Let a tool add events of its own; adding the same ones again does no harm.

        Args:
            specs: a module or object with `@hookspec` functions

        Raises:
            UsageError: it specifies nothing, or what is specified already
        """
        self._events.add_specs(specs)

    def emit(self, event: str, /, **arguments: Any) -> None:
        """Queue an event; its answers join the step's observation after what is queued already.

        Args:
            event: its name
            arguments: what its specification lists, but for `env`

        Raises:
            UsageError: nobody has specified it, or not with these arguments
        """
        self._events.emit(event, **arguments)

    def measure(self, *, warm: bool = False) -> Measurement:
        """Run the tests in place, for the agent's information; sets the score.

        Args:
            warm: the run may start from an interpreter that has installed modules loaded

        Raises:
            SandboxLost: the sandbox went away
        """
        if self.task.judge is not None:
            measurement = self.task.judge.measure(self.session, timeout=self.run_timeout, clean=False)
        else:
            measurement = in_place.measure(
                self.session,
                self.task.entrypoint,
                timeout=self.run_timeout,
                warm=warm,
                ignored=self.workspace.ignored_files(".py"),
            )
        before = self.task.pass_to_pass
        self.resolved = results.is_resolved(measurement, self._tests, self.max_score, before)
        if self._tests_hidden:  # a test that is not there is not broken
            there = measurement.outcomes
            before = tuple(one for one in before if one in there)
        self.score, _ = results.score(measurement, self._tests, self.max_score, before)
        self.broken = results.broken(measurement, before)
        self.measured = True
        self._events.emit("on_evaluated", measurement=measurement)
        self._measured = True
        return measurement

    def submit(self, message: str | None = None) -> Grade:
        """End the episode and grade it."""
        try:
            grade = self.grade()
        except SandboxError as error:
            self.failure = error
            raise
        self.submitted, self.measured, self.final_grade = True, True, grade
        self.score, self.resolved, self.broken = grade.score, grade.resolved, grade.broken
        self._events.emit("on_submitted", message=message)
        return grade

    def grade(self) -> Grade:
        """Grade the workspace as it stands in a fresh sandbox, again in another one when that is lost.

        Raises:
            SandboxError: no sandbox could be had for it, or none lasted
        """
        if self._factory is None or self._pristine is None or self._rules is None:
            raise UsageError("the environment is not live; call reset() first")
        factory, snapshot, rules, changes = self._factory, self._pristine.graded, self._rules, self._changes()

        def grade() -> Grade:
            return clean.grade(
                self.task,
                snapshot,
                changes,
                lambda: factory.fresh(self._seed),
                tests=self._tests,
                max_score=self.max_score,
                timeout=self.run_timeout,
                rules=rules,
            )

        try:
            return insist(grade, factory.wait)
        except (SandboxLost, RequirementError) as error:
            raise GradingError(f"no sandbox lasted to the end of the grading: {error}") from error

    def instructions(self) -> str:
        """What the agent is told at the start: the task, how it is run, the tools."""
        lines = [f"Task {self.task.id}"]
        if self.task.description:
            lines += ["", self.task.description.strip()]
        lines += [
            "",
            f"The repository is in /testbed. Its tests run with: {self.task.entrypoint}",
            "1 test counts; it must pass." if self.max_score == 1 else f"{self.max_score} tests count; all must pass.",
            *([_must_still_pass(len(self.task.pass_to_pass))] if self.task.pass_to_pass else []),
            *(["The tests that show the bug are not there: the grading has them."] if self._tests_hidden else []),
            "",
            "Tools:",
        ]
        for name, made in self.tools.items():
            lines.append(
                f"- {tool.usage(type(made))}: {type(made).help().splitlines()[0] if type(made).help() else name}"
            )
        return "\n".join(lines)

    # Parts of an episode

    @property
    def _snapshot(self) -> Snapshot:
        """The pristine repository, as the agent got it."""
        assert self._pristine is not None
        return self._pristine.agent

    @property
    def _tests_hidden(self) -> bool:
        return self.task.mode == "hidden" and any(
            (self.task.tests_patch, self.task.hidden_files, self.task.image_tests)
        )

    def _attach(self, session: Session) -> Workspace:
        """Take a new sandbox into use."""
        assert self._rules is not None
        self._session = session
        self._opened(session)
        self._workspace = Workspace(session, self._snapshot, self._rules, self._file_changed)
        return self._workspace

    def _carry_out(self, action: Any, observations: list[Observation]) -> None:
        """Carry out an action, with the events that it causes.

        Raises:
            SandboxLost: the sandbox, or the guest in it, went away
        """
        if self.failure is not None:
            raise self.failure
        call = None
        malformed = {"malformed": True}
        try:
            self.last_call = call = actions.parse(action, {name: type(made) for name, made in self.tools.items()})
            arguments = type(self.tools[call.name]).check(call.arguments)
            malformed = {}
            observations.append(self._use(call.name, arguments))
        except ActionError as error:
            meant = action.name if isinstance(action, ToolCall) else None
            speaker = call.name if call else meant if isinstance(meant, str) and meant in self.tools else "env"
            observations.append(Observation(speaker, str(error), malformed, error=True))
        told = self._see_changes()
        commands = self._commands()
        if call is not None:
            self._events.emit("on_step", call=call)
        observations += [*self._events.drain(self), *told]
        if self._commands() != commands:  # the events ran something
            told = self._see_changes()
            observations += [*self._events.drain(self), *told]
        if not self.submitted:
            self._keep_files()
        self._stumbled = False

    def _keep_files(self) -> None:
        """Have the host know the files as they are, should the sandbox be lost."""
        if self._workspace is None:
            return
        try:
            self._kept.update(self._workspace)
        except SandboxLost:
            raise
        except SandboxError as error:
            log.debug("changes not known", exc_info=error)

    def _changes(self) -> Changes:
        """What the agent changed: as it is, or as it was after the last step when the sandbox is lost."""
        if self._workspace is None and self.failure is not None and self._kept.changes is not None:
            return self._kept.changes
        kept = None if self.workspace.touched else self._kept.changes
        try:
            return self.workspace.changes()
        except SandboxError as error:
            if self._reconnects():
                return self.workspace.changes()
            if kept is None:
                raise
            log.warning("the sandbox was lost after the last step, whose files are known: %s", error)
            return kept

    def _known(self) -> dict[str, Any]:
        """What a step that has to be done again must find as it was."""
        kept = ("breakpoints", "score", "resolved", "broken", "measured", "rewritten", "_measured")
        return {name: copy.deepcopy(getattr(self, name)) for name in kept}

    def _set_known(self, known: Mapping[str, Any]) -> None:
        for name, value in known.items():
            setattr(self, name, value)

    def _replace_sandbox(self, error: SandboxLost) -> bool:
        """Put another sandbox, with the files as they were last known, in the place of one that is gone.

        One that stands keeps its files, and only its guest is started again; not twice in a row, since it may be one
        without memory, in which nothing can be done any more.

        Returns:
            whether there is another one
        """
        factory, changes = self._factory, self._kept.changes
        if self.failure is not None or factory is None or self._session is None or changes is None:
            return False
        if not self._stumbled and self._session.terminal.alive() and self._reconnects():
            return False
        if self._replaced >= REPLACEMENTS:
            return False
        self._replaced += 1
        log.warning("the sandbox was lost, another one takes its place: %s", error)
        self._events.clear()
        self._end_quietly()
        try:
            insist(lambda: with_files(lambda: factory.open(self._seed), self._attach, changes), factory.wait)
        except (SandboxError, RequirementError) as again:
            log.warning("there is no other sandbox: %s", again)
            self._session = self._workspace = None
            self.failure = SandboxLost(f"{error}; there is no other: {again}")
            return False
        self._kept.changes = changes
        return True

    def _reconnects(self) -> bool:
        """Whether the guest answers, or another one can be started over the same files."""
        try:
            self.session.guest()
        except SandboxError as error:
            log.debug("no new guest", exc_info=error)
            return False
        return True

    def _end_quietly(self) -> None:
        """End what may be left of a lost sandbox."""
        try:
            self._end_session()
        except SandboxError as error:  # its engine does not answer; its lease ends
            log.warning("a lost sandbox was not removed: %s", error)

    def _takes_long(self, text: str) -> None:
        """Tell a person, in a line, what is waited for."""
        (self._notify or log.warning)(text)

    def _opened(self, session: Session) -> None:
        """The sandbox of an episode stands; for those who record it."""

    def _file_changed(self, path: str, before: bytes | Unknown | None, after: bytes | None) -> None:
        edits = edits_of(before, after)
        if edits or before is None or after is None:
            self.rewritten = True
            self._events.emit("on_file_changed", path=path, edits=edits)

    def _see_changes(self) -> list[Observation]:
        """Look what programs did to the files: events tell of it; the observations say what could not be let be."""
        if self._workspace is None or self.failure is not None:
            return []
        try:
            found = self._workspace.refresh({one.file for one in self.breakpoints})
        except SandboxLost:
            raise
        except SandboxError as error:  # what was not seen may be seen next time
            return [self._unseen(error)]
        for change in found.changes[:CHANGES_TOLD]:
            self.rewritten = self.rewritten or (change.own and not self._measured)
            self._events.emit("on_file_changed", path=change.path, edits=change.edits)
        said = []
        if found.restored:
            said.append(_list("Read-only files were changed and are put back", found.restored, "restored"))
        if found.failed:
            self.rewritten = True
            said.append(_list("Read-only files were changed and cannot be put back", found.failed, "failed"))
        return said

    def _unseen(self, error: SandboxError) -> Observation:
        """Nobody knows what a step did to the files: that is said, and is not for nothing."""
        log.debug("changes not seen", exc_info=error)
        self.rewritten = True
        why = " ".join(str(error).split())[:300]
        text = f"The files could not be compared, so that this step counts as a rewrite: {why}"
        return Observation("env", text, error=True)

    def _commands(self) -> int:
        """How many commands were started in the sandbox."""
        return self._session.commands if self._session is not None else 0

    def _use(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        try:
            return tool.as_observation(name, self.tools[name].use(self, **arguments))
        except (ActionError, SandboxLost):
            raise
        except (Exception, SystemExit) as error:
            return Observation(name, self._failed(name, error), error=True)

    def _failed(self, what: str, error: BaseException) -> str:
        """A tool's own exception as words for the agent; the traceback goes to the log only."""
        log.debug("%s failed", what, exc_info=error)
        text = " ".join(str(error).split())[:500]
        return f"{what} failed: {type(error).__name__}: {text}" if text else f"{what} failed: {type(error).__name__}"

    def _lost(self, error: SandboxLost) -> Observation:
        """The sandbox, or the guest in it, went away during a step."""
        self._events.clear()
        if self.failure is None and self._session is not None and self._reconnects():
            self._stumbled = True
            for made in self.tools.values():
                made.close()
            text = "The sandbox's processes were lost and are started again; files are as they were. Try again."
            return Observation("env", text, error=True)
        self.failure = self.failure or error
        return Observation("env", "The sandbox is gone; the episode cannot go on.", error=True)

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
        self._kept = Kept()
        self._replaced = 0
        self._stumbled = False
        self.score = 0
        self.steps = 0
        self.rewrites = 0
        self.resolved = False
        self.broken = ()
        self.measured = False
        self.submitted = False
        self.failure = self.final_grade = self.last_call = self.ended = None
        self.last_observations = ()
        self.rewritten = self._measured = False
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


def _must_still_pass(count: int) -> str:
    """What the agent is told of tests that pass before it changes anything."""
    what = (
        "1 other test passes already and must still pass"
        if count == 1
        else (f"{count} other tests pass already and must still pass")
    )
    return f"{what}; else the score is 0."


def _short(error: SandboxError) -> str:
    """The first words of an error, in one line."""
    return " ".join(str(error).split())[:200]


def _list(what: str, paths: Collection[str], key: str) -> Observation:
    """An observation that names paths, the first ones at least."""
    named = sorted(paths)
    text = ", ".join(map(shown, named[:10])) + (f" and {len(named) - 10} more" if len(named) > 10 else "")
    return Observation("env", f"{what}: {text}", {key: named})
