"""A task made live: a sandbox, the files in it, tools and tests, as the tools see them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

from debug_gym_core.debugging.breakpoints import Breakpoints
from debug_gym_core.environment.counted_tests import CountedTests
from debug_gym_core.environment.dropped_changes import DroppedChanges
from debug_gym_core.environment.file_events import FileEvents
from debug_gym_core.environment.instructions import instructions
from debug_gym_core.environment.live_sandbox import LiveSandbox
from debug_gym_core.environment.settings import RUN_TIMEOUT
from debug_gym_core.errors import NO_FAULT, ActionError, GradingInterrupted, SandboxError, cause_of
from debug_gym_core.grading.anyway import forgiven
from debug_gym_core.sandbox.interruption import Interruption
from debug_gym_core.tools.queue import EventQueue

if TYPE_CHECKING:
    from debug_gym_core.environment.settings import EnvSection
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.sandbox.terminal import Terminal
    from debug_gym_core.tasks.results import Grade, Measurement
    from debug_gym_core.tasks.task import Task
    from debug_gym_core.tools.observation import Observation
    from debug_gym_core.tools.tool import Tool
    from debug_gym_core.workspace.files import Workspace

log = logging.getLogger("debug_gym")


class LiveTask:
    """What tools work with: `debug_gym_core.tools.environment.Environment`, without steps and rewards.

    Its attributes are described where it is put to use, in `RepoEnv`.
    """

    breakpoints: Breakpoints
    score: int
    resolved: bool
    broken: tuple[str, ...]
    dropped: Mapping[str, str]
    unconfirmed: str
    measured: bool
    submitted: bool
    rewritten: bool
    final_grade: Grade | None
    steps: int
    last_observations: tuple[Observation, ...]

    def __init__(
        self,
        task: Task,
        tools: dict[str, Tool],
        settings: EnvSection,
        backend: type[Terminal],
        backend_settings: dict[str, Any],
        *,
        run: str,
        notify: Callable[[str], None] | None,
    ) -> None:
        """Start nothing yet.

        Args:
            task: what is worked on
            tools: by name, in the order in which they are told of events
            settings: of the environment
            backend: what makes sandboxes
            backend_settings: its settings
            run: id of the run, for labels
            notify: is told, in a line, what a person should know

        Raises:
            PluginError: a tool's method does not fit the event that it answers
        """
        self.task = task
        self.tools = tools
        self.settings = settings
        self._all_tools = dict(tools)
        self.interruption = Interruption()
        self._notify = notify
        self._tests = CountedTests(task, settings.twins)
        self._events = EventQueue(tools, self._failed)
        self._files = FileEvents(self, self._events)
        self._sandbox = LiveSandbox(
            task,
            backend,
            backend_settings,
            python=settings.python,
            run=run,
            tell=self._takes_long,
            opened=self._opened,
            changed=self._files.changed,
            free=self._free_tools,
        )
        self._dropped = DroppedChanges(task, self._tests, self._sandbox)
        self._clear()

    def _clear(self) -> None:
        """Know nothing of an earlier episode."""
        self._events.clear()
        self._dropped.forget()
        self._files.tests_ran = False
        self.breakpoints = Breakpoints()
        self.score = self.steps = 0
        self.resolved = self.measured = self.submitted = self.rewritten = False
        self.broken, self.dropped, self.unconfirmed = (), {}, ""
        self.final_grade = None

    # The sandbox and what is in it

    @property
    def session(self) -> Session:
        """The live sandbox."""
        return self._sandbox.session

    @property
    def terminal(self) -> Session:
        """The live sandbox under the name that users know, as in `env.terminal.run(...)`."""
        return self.session

    @property
    def terminal_name(self) -> str:
        """Name of the backend."""
        return str(self._sandbox.backend.name)

    @property
    def workspace(self) -> Workspace:
        """The files of the task in the sandbox."""
        return self._sandbox.workspace

    @property
    def patch(self) -> bytes:
        """What the agent changed, as a `git apply`-able diff."""
        return self._sandbox.patch()

    @property
    def failure(self) -> SandboxError | None:
        """Why the sandbox is gone for good, else None."""
        return self._sandbox.failure

    @failure.setter
    def failure(self, error: SandboxError | None) -> None:
        self._sandbox.failure = error

    @property
    def seed(self) -> int:
        """The seed of the episode."""
        return self._sandbox.seed

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know: what the sandbox could not do here, what is odd about the task or the settings."""
        return (*self._without_effect, *self._sandbox.notes, *self._tests.notes)

    @property
    def _without_effect(self) -> tuple[str, ...]:
        """Settings that do nothing here, a line each."""
        if not self.settings.auto_eval_on_rewrite or "eval" in self._all_tools:
            return ()
        return ("env.auto_eval_on_rewrite has no effect: the tool eval, which runs the tests, is not among the tools",)

    def _opened(self, session: Session) -> None:
        """The sandbox of an episode stands; for those who record it."""

    def _takes_long(self, text: str) -> None:
        """Tell a person, in a line, what is waited for."""
        (self._notify or log.warning)(text)

    # What is run

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
        chosen = self.settings.run_timeout
        return self.task.time_limit or chosen if chosen == RUN_TIMEOUT else chosen

    @property
    def auto_eval_on_rewrite(self) -> bool:
        """Whether the tests are run at the end of a step that changed files."""
        return self.settings.auto_eval_on_rewrite

    # Tools and their events

    def withhold(self, *names: str) -> None:
        """Take tools away until `give_back`, also over resets.

        They are not among `tools`, a call of one is answered as that of an unknown tool, and no event reaches them.
        What one holds is freed.

        Args:
            names: tools of this environment; others are passed over
        """
        taken = [name for name in names if name in self.tools]
        for name in taken:
            self._free(self.tools.pop(name))
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

    def _failed(self, what: str, error: BaseException) -> str:
        """A tool raised what no tool may: words for the agent; the traceback goes to the log only.

        Args:
            what: the tool, or a method of it
            error: what it raised
        """
        log.debug("%s failed", what, exc_info=error)
        return f"{what} failed: {cause_of(error):.500}"

    def _free_tools(self) -> None:
        """Have all tools free what they hold, since their sandbox ends."""
        for made in self.tools.values():
            self._free(made)

    def _free(self, tool: Tool) -> None:
        """Have a tool free what it holds; one that fails keeps nobody from going on."""
        try:
            tool.close()
        except SandboxError as error:  # which has taken with it what the tool held
            log.debug("%s could not free what it held", tool.name, exc_info=error)
        except NO_FAULT:
            raise
        except BaseException as error:
            self._failed(f"{tool.name}'s close", error)

    @property
    def hook(self) -> pluggy.HookRelay:
        """The events of this environment."""
        return self._events.hook

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

    # Tests and grades

    @property
    def max_score(self) -> int:
        """How many tests count."""
        return self._tests.max_score

    @property
    def grading(self) -> bool:
        """Whether a clean grade is under way."""
        return self._tests.grading

    def measure(self, *, warm: bool = False) -> Measurement:
        """Run the tests in place, for the agent's information; sets the score.

        Where all that count pass, a clean grade decides.

        Args:
            warm: the run may start from an interpreter that has installed modules loaded

        Raises:
            SandboxLost: the sandbox went away
        """
        timeout, interruption = self.run_timeout, self.interruption
        measurement = self._tests.measure(self.session, self.workspace, timeout, interruption, warm=warm)
        standing = self._tests.standing(measurement)
        confirmed = self._dropped.confirm(standing, self.score, self.seed, timeout, interruption)
        self.dropped, self.unconfirmed, standing = confirmed.dropped, confirmed.unconfirmed, confirmed.standing
        self.score, self.resolved, self.broken = standing.score, standing.resolved, standing.broken
        self.measured = True
        if measurement.undecided and self.resolved:
            measurement = forgiven(measurement)
        self._events.emit("on_evaluated", result=measurement)
        self._files.tests_ran = True
        return measurement

    def submit(self, message: str | None = None) -> Grade:
        """End the episode and grade it, once: of one that is over the same grade again.

        Raises:
            ActionError: the grading was interrupted, so that the episode goes on
            SandboxError: as `grade`
        """
        if self.final_grade is not None:
            return self.final_grade
        try:
            grade = self.grade(self.interruption)
        except GradingInterrupted as error:
            raise ActionError(f"{error}: nothing is submitted, and the episode goes on") from error
        except SandboxError as error:
            self.failure = error
            raise
        self.submitted, self.measured, self.final_grade = True, True, grade
        self._set_grade(grade)
        self._events.emit("on_submitted", message=message)
        return grade

    def _set_grade(self, grade: Grade) -> None:
        """Have what a clean grade says stand."""
        self.score, self.resolved, self.broken = grade.score, grade.resolved, grade.broken
        self.dropped, self.unconfirmed = grade.dropped, ""

    def grade(self, interruption: Interruption | None = None) -> Grade:
        """Grade the workspace as it stands in a fresh sandbox, again in another one when that is lost.

        A grade that resolved, or confirmed what was measured in place, is taken where nothing has changed since.

        Args:
            interruption: by which another thread may end it; None: nobody may

        Raises:
            GradingInterrupted: another thread did
            SandboxError: no sandbox could be had for it, or none lasted
        """
        changes, interruption = self._sandbox.changes(), interruption or Interruption()
        return self._dropped.grade(changes, self.seed, self.run_timeout, interruption)

    def instructions(self) -> str:
        """What the agent is told at the start: the task, how it is run, the tools."""
        return instructions(self.task, self._tests, self.tools)
