"""What a tool may use of the environment that it is in; `RepoEnv` is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pluggy

    from debug_gym_core.debugging.breakpoints import Breakpoints
    from debug_gym_core.sandbox.interruption import Interruption
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.tasks.results import Grade, Measurement
    from debug_gym_core.tasks.task import Task
    from debug_gym_core.tools.observation import Observation
    from debug_gym_core.tools.tool import Tool
    from debug_gym_core.workspace.files import Workspace


class Environment(Protocol):
    """One task made live, as tools see it.

    Attributes:
        task: what is worked on
        interruption: by which Ctrl-C ends what a tool runs: for `terminal.run`, and a tool's own `ending`
        breakpoints: the debugger's breakpoints, kept over its restarts
        score: tests that count and pass, as last measured
        resolved: whether all of them did
        broken: ids of tests that passed before and did not when last measured
        measured: whether anything was measured since the last reset: a score of 0 says nothing before
        dropped: changes that grading does not take over, and why, by path, as they were when last measured
        unconfirmed: why the task is not resolved though all tests passed in place; empty where nothing contradicts
        submitted: whether the agent ended the episode
        rewritten: whether the current step changed files
        final_grade: the clean grade that `submit` made, else None
        steps: steps since the last reset
        last_observations: what was said at the last reset or step, an Observation for each who spoke
    """

    task: Task
    interruption: Interruption
    breakpoints: Breakpoints
    score: int
    resolved: bool
    broken: tuple[str, ...]
    measured: bool
    dropped: Mapping[str, str]
    unconfirmed: str
    submitted: bool
    rewritten: bool
    final_grade: Grade | None
    steps: int
    last_observations: tuple[Observation, ...]

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name, without those that are withheld."""

    @property
    def session(self) -> Session:
        """The live sandbox: files, commands, programs."""

    @property
    def terminal(self) -> Session:
        """The same under the name that users know."""

    @property
    def workspace(self) -> Workspace:
        """The files of the task, under its rules."""

    @property
    def max_score(self) -> int:
        """How many tests count."""

    @property
    def entrypoint(self) -> str:
        """The command that runs the tests."""

    @property
    def debug_entrypoint(self) -> str:
        """The command that the debugger starts."""

    @property
    def run_timeout(self) -> float:
        """Seconds that one run of the task's code may take."""

    @property
    def auto_eval_on_rewrite(self) -> bool:
        """Whether the tests are run at the end of a step that changed files."""

    @property
    def seed(self) -> int:
        """The seed of the episode."""

    @property
    def hook(self) -> pluggy.HookRelay:
        """The events of this environment."""

    def add_event_specs(self, specs: Any) -> None:
        """Add events of a tool's own: a module or object with `@hookspec` functions."""

    def emit(self, event: str, /, **arguments: Any) -> None:
        """Queue an event; its answers join the step's observation."""

    def measure(self, *, warm: bool = False) -> Measurement:
        """Run the tests in place and set the score.

        Where all that count pass, a clean grade decides.

        Raises:
            SandboxLost: the sandbox went away
        """

    def instructions(self) -> str:
        """What the agent is told at the start: the task, how it is run, the tools."""

    def submit(self, message: str | None = None) -> Grade:
        """End the episode and grade it, once: of one that is over the same grade again.

        Raises:
            ActionError: Ctrl-C ended the grading, so that the episode goes on
            SandboxError: it could not be graded
        """
