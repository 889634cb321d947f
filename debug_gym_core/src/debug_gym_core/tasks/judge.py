"""Judging: how the tests of a task are run and read where pytest's and unittest's own reports cannot be had."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.tasks.results import Measurement


class Judge(abc.ABC):
    """Runs a task's tests and says which of them pass; equal judges judge alike, so that tasks can be compared.

    Its measurements have the kind `log`, results for the ids in `Task.tests` and `Task.pass_to_pass`, and are `valid`
    only when the run can be believed. What a test prints is the word of the code under test: a judge that reads a log
    has to find out whether the tests ran (canaries, contradictions).
    """

    @abc.abstractmethod
    def measure(self, session: Session, *, timeout: float, clean: bool) -> Measurement:
        """Run the tests.

        Args:
            session: the sandbox, with the files as they are to be judged
            timeout: seconds for all of it
            clean: whether it is the graded run, in a sandbox of its own that has the repository without
                `Task.tests_patch` and the agent's changes but for those to tests: the judge puts the tests there. Else
                it is the agent's sandbox, whose files must stay as they are; tests that are not there failed

        Raises:
            SandboxLost: the sandbox went away
        """
