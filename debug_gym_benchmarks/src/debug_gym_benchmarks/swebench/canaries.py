"""Canaries: tests with random names, put into the files of tests, of which some must pass and some must fail.

A log in which they are not reported as they must be is not the log of a run of these tests.
"""

from __future__ import annotations

import posixpath
import random
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from debug_gym_benchmarks.swebench.official import Kind

PASSED = frozenset({"PASSED"})
FAILED = frozenset({"FAILED", "ERROR"})

_random = random.SystemRandom()


@dataclass(frozen=True)
class Canary:
    """A test whose outcome is known.

    Attributes:
        file: the file of tests that it is put into
        name: of its function
        passes: whether it must pass
    """

    file: str
    name: str
    passes: bool

    def reported(self, statuses: Mapping[str, str], kind: Kind) -> bool:
        """Whether it is reported as it must be.

        Args:
            statuses: of each test that the log states
            kind: what runs the tests
        """
        if kind == "pytest":
            found = {status for test, status in statuses.items() if test == f"{self.file}::{self.name}"}
        else:  # the name, in Django's tests with that of the class after it
            found = {status for test, status in statuses.items() if test.partition(" (")[0] == self.name}
        return bool(found) and found <= (PASSED if self.passes else FAILED)


def choose(kind: Kind, files: Iterable[str], tests: Sequence[str]) -> list[Canary]:
    """Make canaries up, two for each file of tests that is certain to be run.

    Args:
        kind: what runs the tests
        files: that the tests patch changes
        tests: ids of the tests that count
    """
    return [
        Canary(file, f"test_{_random.getrandbits(64):016x}", passes)
        for file in files
        if file.endswith(".py") and _runs(kind, file, tests)
        for passes in _random.sample((True, False), 2)
    ]


def lines(canaries: Sequence[Canary], kind: Kind) -> list[str]:
    """Shell commands that put them into their files."""
    commands = []
    # Sympy's runner prints more after the last test of a file, so that the official parser does not see that one.
    last = [Canary(file, "test_debug_gym_last", True) for file in dict.fromkeys(one.file for one in canaries)]
    for canary in [*canaries, *(last if kind == "sympy" else [])]:
        first, second = _random.randrange(100, 1000), _random.randrange(100, 1000)
        claim = first * second + (0 if canary.passes else _random.randrange(1, 100))
        check = f"assert {first} * {second} == {claim}"
        if kind == "django":
            number = canary.name.removeprefix("test_")
            body = [
                f"import unittest as unittest_{number}",
                f"class Test{number}(unittest_{number}.TestCase):",
                f"    def {canary.name}(self):",
                f"        {check}",
            ]
        else:
            body = [f"def {canary.name}():", f"    {check}"]
        file, end = shlex.quote(canary.file), "EOF_debug_gym"
        commands += [f"[ ! -f {file} ] || cat >> {file} <<'{end}'", "", "", *body, end]
    return commands


def _runs(kind: Kind, file: str, tests: Sequence[str]) -> bool:
    """Whether the tests in a file are run for certain."""
    if kind == "pytest":
        return any(test.startswith(f"{file}::") for test in tests)
    return kind != "other" and posixpath.basename(file).startswith("test")
