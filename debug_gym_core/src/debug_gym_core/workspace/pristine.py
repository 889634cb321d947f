"""What a task starts from: its repository with its patches, as the agent gets it and as it is graded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from debug_gym_core.errors import ActionError, TaskError
from debug_gym_core.workspace import patch as patches
from debug_gym_core.workspace.snapshot import Snapshot

if TYPE_CHECKING:
    from debug_gym_core.tasks.task import Task


@dataclass(frozen=True)
class Pristine:
    """The two pristine repositories of a task, which are the same where grading has no tests of its own.

    Attributes:
        agent: what the agent's sandbox starts from
        graded: what grading puts the agent's changes over
    """

    agent: Snapshot
    graded: Snapshot

    @classmethod
    def take(cls, task: Task, directory: Path, tests: Path | None = None) -> Pristine:
        """Copy a task's repository and apply the task's patches.

        Args:
            task: what is worked on
            directory: where its repository is
            tests: where the tests of its image are

        Raises:
            UsageError: the directory cannot be read
            TaskError: a patch does not fit the repository
        """
        taken = [Snapshot.take(directory)]
        try:
            for patch in task.patches:
                taken.append(_patched(taken[-1], patch, f"{task.id}: the patch that makes its bug"))
            agent = graded = taken[-1]
            if task.tests_patch is not None:
                tested = task.mode != "hidden" or task.judge is None
                if tested:
                    taken.append(_patched(agent, task.tests_patch, f"{task.id}: the patch with its tests"))
                if task.mode != "hidden":
                    agent = taken[-1]
                if task.judge is None:  # else the judge puts them there
                    graded = taken[-1]
            if tests is not None and task.image_tests is not None:
                taken.append(_with_directory(graded, tests, task.image_tests[1]))
                graded = taken[-1]
                if task.mode != "hidden":
                    agent = graded
            hidden = agent.members.keys() & set(task.hidden_files) if task.mode == "hidden" else set()
            if hidden:
                taken.append(agent.with_changes(dict.fromkeys(hidden)))
                agent = taken[-1]
        except BaseException:
            for one in taken:
                one.close()
            raise
        for one in taken:
            if one not in (agent, graded):
                one.close()
        return cls(agent, graded)

    def close(self) -> None:
        """Remove the copies; may be called twice."""
        self.agent.close()
        self.graded.close()


def _with_directory(snapshot: Snapshot, directory: Path, path: str) -> Snapshot:
    """A repository with a directory put into it."""
    tests = Snapshot.take(directory)
    try:
        files = [name for name, member in tests.members.items() if member.kind != "directory"]
        return snapshot.with_changes({f"{path}/{name}": tests.state(name) for name in files})
    finally:
        tests.close()


def _patched(snapshot: Snapshot, patch: bytes, what: str) -> Snapshot:
    try:
        files = {path: snapshot.state(path) for path in patches.touched(patch)}
        return snapshot.with_changes(patches.apply(patch, files))
    except ActionError as error:
        raise TaskError(f"{what} does not fit: {error}") from error
