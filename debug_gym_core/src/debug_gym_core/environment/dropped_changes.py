"""What of an agent's changes grading will drop: known, said, and held against tests that pass by it."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from debug_gym_core.environment.counted_tests import Standing
from debug_gym_core.errors import GradingInterrupted, RequirementError, SandboxError, SandboxLost, TaskError
from debug_gym_core.grading.anyway import Unchanged
from debug_gym_core.grading.dropped import about_dropped, infrastructure_of, installed_of, listed
from debug_gym_core.names import some
from debug_gym_core.sandbox.terminal import above_of
from debug_gym_core.tasks.results import about_grade
from debug_gym_core.tools.observation import Observation
from debug_gym_core.workspace.changes import Changes

if TYPE_CHECKING:
    from debug_gym_core.environment.counted_tests import CountedTests
    from debug_gym_core.environment.live_sandbox import LiveSandbox
    from debug_gym_core.grading.infrastructure import Infrastructure
    from debug_gym_core.sandbox.interruption import Interruption
    from debug_gym_core.tasks.results import Grade
    from debug_gym_core.tasks.task import Task
    from debug_gym_core.workspace.snapshot import Snapshot

log = logging.getLogger("debug_gym")


@dataclasses.dataclass(frozen=True)
class Confirmed:
    """How the tests stand, once what grading drops was thought of.

    Attributes:
        standing: as a clean copy has it where that was looked at
        dropped: changes that grading does not take over, and why, by path
        unconfirmed: why the task is not resolved though the tests passed in place; empty where nothing contradicts
    """

    standing: Standing
    dropped: Mapping[str, str]
    unconfirmed: str = ""


NAMED = 3
"""Files that a note names at most."""


class DroppedChanges:
    """Tells what of the changes in one environment the clean grading will not take over.

    It judges as the grading does, but by what the agent may know: where the tests are hidden, by the repository without
    them; and not by the right fix.
    """

    def __init__(self, task: Task, tests: CountedTests, sandbox: LiveSandbox) -> None:
        """Know of no change yet.

        Args:
            task: what is worked on
            tests: those that count
            sandbox: where the changes are made
        """
        self._task = task
        self._tests = tests
        self._sandbox = sandbox
        self._judge: tuple[Snapshot, Infrastructure] | None = None
        self.forget()

    def forget(self) -> None:
        """Know nothing of an earlier episode."""
        self._told = Changes({})
        self._known: tuple[Changes, dict[str, str]] = Changes({}), {}
        self._graded: tuple[Changes, Grade] | None = None
        self._unchanged = Unchanged()

    def among(self, changes: Changes) -> dict[str, str]:
        """Which changes are dropped, and why, by path, those that are no part of the patch among them.

        Costs as much as is different since the last call.

        Args:
            changes: of the agent
        """
        before, dropped = self._known
        if changes is not before:
            new = [one for one in changes if _differs(one, before, changes)]
            # Whether a change is taken over may hang on what becomes of the directories above it, on nothing else.
            part = {path: changes[path] for one in new for path in (*above_of(one), one) if path in changes}
            found = self._infrastructure().filter(part).dropped if part else {}
            kept = {path: why for path, why in dropped.items() if path in changes and path not in part}
            self._known = changes, {**kept, **found}
        return {**changes.left_out, **self._known[1]}

    def unfixable(self) -> str:
        """That nothing which could be fixed may change, as where a module holds its own tests; empty: something may."""
        infrastructure = self._infrastructure()
        code = [path for path in self._sandbox.factory.graded.members if path.endswith(".py")]
        # Others than those with tests first: nearly always one of them may change, and none has to be read for that.
        held = infrastructure.test_files()
        fixed = bool(self._task.gold_patch)
        if not code or any(infrastructure.may_count(one, fixed=fixed) for one in sorted(code, key=held.__contains__)):
            return ""
        return (
            f"all Python files of the repository hold tests that count, or belong to them ({some(code, NAMED)}):"
            " grading drops every change of them (env.allowed names files that may be changed all the same)"
        )

    def unmendable(self) -> str:
        """That files with tests are no Python, and stay so as grading drops their changes; empty: none is."""
        unread, infrastructure = self._tests.unread, self._infrastructure()
        fixed = bool(self._task.gold_patch)
        stay = [path for path in unread if not infrastructure.may_count(path, fixed=fixed)]
        if not stay:
            return ""
        return (
            f"nothing resolves the task as long as {some(stay, NAMED)} cannot be read as Python ({unread[stay[0]]}):"
            " pytest runs no test then, unless it continues on collection errors, and grading drops changes of tests"
            " (mend it before, have the entrypoint --ignore it, or name it in env.allowed)"
        )

    def look(self, said: Iterable[Observation] = ()) -> list[Observation]:
        """What is to be said after a step: of what was changed since the last look, what is dropped.

        Args:
            said: what was said in the step; what its data name as `dropped` is not said again
        """
        before, changes = self._told, self._sandbox.kept.changes
        if changes is None or changes is before:
            return []
        new = {
            path: why
            for path, why in self.among(changes).items()
            if (before.left_out.get(path) != why if path not in changes else _differs(path, before, changes))
        }
        self._told = changes  # not before: the sandbox may be lost while `among` asks it, and the step be done again
        for named in (one.data.get("dropped") for one in said):
            if isinstance(named, Mapping):
                new = {path: why for path, why in new.items() if named.get(path) != why}
        if not new:
            return []
        return [Observation("env", about_dropped(new), {"dropped": listed(new)})]

    def confirm(
        self, standing: Standing, score: int, seed: int, timeout: float, interruption: Interruption
    ) -> Confirmed:
        """Have a clean grade decide where all tests pass in place.

        Args:
            standing: how the tests stand in place
            score: the score until now, which stays when no clean grade can be had
            seed: of the episode
            timeout: seconds for the run of a clean grade
            interruption: by which another thread may end the grading

        Raises:
            SandboxLost: the sandbox went away
        """
        if not standing.resolved:
            try:
                return Confirmed(standing, self._lasting(self.among(self._sandbox.changes())))
            except SandboxLost:
                raise
            except SandboxError as error:
                log.debug("changes not known", exc_info=error)
                return Confirmed(standing, {})
        dropped: Mapping[str, str] = {}
        try:
            changes = self._sandbox.changes()
            dropped = self.among(changes)
            grade = self.grade(changes, seed, timeout, interruption)
        except SandboxLost:
            raise
        except (SandboxError, RequirementError, TaskError) as error:
            stopped = isinstance(error, GradingInterrupted) or not self._sandbox.factory.wait(0)
            tell = log.debug if stopped else log.warning  # it is no failure
            tell("what passes in place could not be graded: %s", error)
            why = f"no clean copy could be graded: {' '.join(str(error).split())[:300]}"
            return Confirmed(Standing(score, False, standing.broken), dropped, why)
        self._graded = changes, grade
        standing = Standing(grade.score, grade.resolved, grade.broken)
        if grade.resolved:
            return Confirmed(standing, self._lasting(dropped))
        return Confirmed(standing, dropped, about_grade(grade, others=bool(self._task.pass_to_pass)))

    def grade(self, changes: Changes, seed: int, timeout: float, interruption: Interruption) -> Grade:
        """The clean grade of changes; that by which they were confirmed or resolved, where they are still the same.

        Args:
            changes: of the agent
            seed: of the episode
            timeout: seconds for the run
            interruption: by which another thread may end it

        Raises:
            GradingInterrupted: another thread did
            SandboxError: no sandbox could be had for it, or none lasted
        """
        if self._graded is not None:
            same, grade = self._graded
            if changes == same and changes.left_out == same.left_out:
                return grade
        grade = self._tests.grade(changes, self._sandbox.factory, seed, timeout, self._unchanged, interruption)
        if grade.resolved:
            self._graded = changes, grade
        return grade

    def _lasting(self, dropped: Mapping[str, str]) -> dict[str, str]:
        """Without what is read-only: the step that changed it puts it back when it is over, and says so."""
        rules = self._sandbox.factory.rules
        return {path: why for path, why in dropped.items() if not rules.readonly(path)}

    def _infrastructure(self) -> Infrastructure:
        """The test infrastructure of the task, as far as the agent may know it."""
        factory, hidden = self._sandbox.factory, self._tests.hidden
        snapshot = factory.snapshot if hidden else factory.graded
        if self._judge is None or self._judge[0] is not snapshot:
            task = dataclasses.replace(self._task, gold_patch=None)
            tests = (*self._tests.ids, *task.pass_to_pass)
            files = [path for path in task.test_files if not hidden or path in snapshot.members]
            self._judge = snapshot, infrastructure_of(task, snapshot, factory.rules, self._installed(), tests, files)
        return self._judge[1]

    def _installed(self) -> frozenset[str]:
        """What is installed, as the agent's own sandbox says: only what the agent is told depends on it."""
        try:
            return installed_of(self._task, self._sandbox.session)
        except SandboxLost:
            raise
        except SandboxError as error:
            log.debug("what is installed is not known", exc_info=error)
            return frozenset()


def _differs(path: str, before: Changes, after: Changes) -> bool:
    """Whether a change is a new one, or another one than before."""
    return path not in before or before[path] != after[path]
