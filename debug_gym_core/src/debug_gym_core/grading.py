"""Measuring: which tests pass, in place for the agent's information and clean for the record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class TestResult:
    """One test.

    Attributes:
        id: pytest node id, or dotted unittest name
        outcome: what happened; an error in set-up or tear-down counts as `error`
        message: for what failed, the exception in a line
        frames: for what failed, the repository's frames, innermost last: `file`, `line`, `function`, `locals`
    """

    __test__ = False

    id: str
    outcome: Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
    message: str = ""
    frames: tuple[dict[str, object], ...] = ()


@dataclass(frozen=True)
class Grade:
    """The measured state of a workspace.

    Attributes:
        resolved: whether every test that counts passed
        score: how many tests that count passed
        max_score: how many count; the task's, never the tested code's word
        tests: outcome by test id
        grading: `clean` (fresh sandbox), `in_place` (the agent's own) or `exit_status` (no report to be had)
    """

    resolved: bool
    score: int
    max_score: int
    tests: dict[str, str]
    grading: Literal["clean", "in_place", "exit_status"]
