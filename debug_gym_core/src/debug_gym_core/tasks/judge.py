"""Judging: how the tests of a task are run and read where pytest's and unittest's own reports cannot be had."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.tasks.results import Measurement


@dataclass(frozen=True)
class Twinned:
    """How tests that a judge read run once more, with what they expect turned.

    Attributes:
        entrypoint: pytest or unittest, which runs them
        sources: their modules' texts as the task has them, by path
        tests: ids, as the judge has them, of those that should fail there
        names: the judge's ids of a test that pytest or unittest reports by its own
    """

    entrypoint: str
    sources: Mapping[str, bytes]
    tests: frozenset[str]
    names: Callable[[str], Iterable[str]]


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

    def twinned(self, session: Session, measured: Measurement) -> Twinned | None:
        """How the tests that passed run with what they expect turned; None: they cannot.

        Args:
            session: a fresh sandbox with the graded state, in which no tested code has run; what is missing of the
                tests is to be put there
            measured: what was measured in another one

        Raises:
            SandboxLost: the sandbox went away
        """
        return None
