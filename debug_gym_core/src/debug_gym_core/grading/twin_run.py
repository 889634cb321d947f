"""The run of the tests that passed, in another sandbox, with what they expect turned."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from debug_gym_core.grading.beside import Beside
from debug_gym_core.grading.measure import measure
from debug_gym_core.grading.modules_of_tests import ModulesOfTests, find_modules, function_of
from debug_gym_core.grading.reported_run import Turned
from debug_gym_core.grading.runner.literals import blurred
from debug_gym_core.grading.runner.statements import STRANGE
from debug_gym_core.grading.twins import Twins
from debug_gym_core.sandbox.python_code import parse
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.judge import Twinned
from debug_gym_core.tasks.results import PASSING, Measurement, Problem, TestResult

TIMES = 5.0
"""How much longer than the tests themselves their twins may run."""

LEAST = 60.0
"""Seconds that they have at least: starting is most of a short run."""

MESSAGE = 200
"""Characters of what a twin says that is not believed."""


@dataclass(frozen=True)
class Asked:
    """Which tests are run once more.

    Attributes:
        passed: the run of which all that passed are
        known: problems of it that are held against nobody
        besides: ids of those that are, too, whether or not they passed
    """

    passed: Measurement
    known: Collection[Problem] = frozenset()
    besides: Sequence[str] = ()

    @property
    def tests(self) -> tuple[str, ...]:
        """Their ids."""
        passed = (test.id for test in self.passed.tests if test.outcome in PASSING)
        return tuple(dict.fromkeys((*passed, *self.besides)))


@dataclass(frozen=True)
class TwinRun:
    """A run of twins.

    Attributes:
        session: a fresh sandbox with the graded state
        twinned: how the tests run
        asked: which of them
        beside: what stands beside their modules
        trusted: files of the repository that may add hooks to pytest; None goes by their names
        doctests: ids of doctests that count and expect something
        elsewhere: files of tests whose ids do not say which it is by a path from the root, by the ids
    """

    session: Session
    twinned: Twinned
    asked: Asked
    beside: Beside
    trusted: Sequence[str] | None = None
    doctests: Collection[str] = frozenset()
    elsewhere: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def run(self) -> Twins:
        """Run them, and tell which tests are not believed.

        Raises:
            SandboxLost: the sandbox went away
        """
        twinned, tests = self.twinned, self.asked.tests
        modules, unread = find_modules(twinned.sources)
        named = ModulesOfTests({name: paths for test, paths in modules.items() for name in twinned.names(test)})
        inside = {test: paths for test in tests if test in twinned.tests and (paths := self._places(test, named))}
        doctests = [test for test in tests if test in self.doctests and test not in inside]
        if not inside and not doctests:
            return Twins(unread=unread)
        turned = self._turned(inside, doctests)
        # Whoever makes the run hang, end or lie learns nothing: what its twin did not show is not believed.
        timeout = max(LEAST, TIMES * self.asked.passed.seconds)
        run = measure(self.session, twinned.entrypoint, timeout=timeout, trusted=self.trusted, turned=turned).but(
            self.asked.known
        )
        told, whole = self._told(run, {*inside, *doctests}, ModulesOfTests(modules)), _unloaded(run)
        have, doubts = [], {}
        for test in (*inside, *doctests):
            results = told.get(test, [])
            asked = [one for one in results if one.outcome != "skipped" or turned.secret not in one.message]
            if results and not asked:
                continue
            have.append(test)
            said = [why for one in asked if (why := _doubt(one, turned.secret))]
            if not asked:
                names = [whole[path] for path in inside.get(test, ()) if path in whole]
                more = f", and {STRANGE}{names[0]}" if names else f" ({run.reason})" if run.reason else ""
                said = [f"its twin did not run{more}"]
            if said:
                doubts[test] = said[0]
        return Twins(len(have), doubts, run.lost, frozenset(have), unread)

    def _places(self, test: str, named: ModulesOfTests) -> list[str]:
        """The modules that a test may be written in."""
        within = test.partition("::")[2]
        ends = [f"{path}::{within}" for path in self.elsewhere.get(test, ()) if within]
        return named.of(test) or [path for end in ends for path in named.of(end)]

    def _turned(self, inside: Mapping[str, Sequence[str]], doctests: Sequence[str]) -> Turned:
        """What is run instead of the modules, of which the sandbox has none with what its tests expect."""
        texts = self.twinned.sources
        sources = {path: texts[path] for path in sorted({path for paths in inside.values() for path in paths})}
        functions = sorted({function_of(one) for one in inside})
        for path, text in sources.items():
            # Where it cannot be written, its text tells what it told before.
            with contextlib.suppress(SyntaxError, ValueError, OSError, RecursionError):
                self.session.write(path, blurred(text, parse(text), functions))
        return Turned(sources, functions, secrets.token_hex(8), secrets.token_hex(8), doctests, self.beside)

    def _told(self, run: Measurement, asked: Collection[str], modules: ModulesOfTests) -> dict[str, list[TestResult]]:
        """What became of the twins, by the tests' ids; nothing where the run cannot be believed."""
        told: dict[str, list[TestResult]] = {}
        for result in () if run.tampered else run.tests:
            if result.id in asked or result.id in self.doctests or modules.of(result.id):
                for name in self.twinned.names(result.id):
                    told.setdefault(name, []).append(result)
        return told


def _unloaded(run: Measurement) -> dict[str, str]:
    """What is told of modules that cannot be loaded, as before a fix that brings what they import, by their paths."""
    told = {one.id: one.message.partition(STRANGE)[2].strip() for one in run.tests if one.outcome == "error"}
    return {path: names for path, names in told.items() if names}


def _doubt(twin: TestResult, secret: str) -> str:
    """Why a test is not believed whose twin ended so; empty: it is."""
    if twin.outcome in PASSING:
        return "it passes whatever it expects"
    before, strange, names = twin.message.partition(STRANGE)
    if strange:
        return f"{'' if secret in before else 'its expectations tell nothing, and '}{STRANGE}{names}"
    if secret not in twin.message or twin.outcome not in ("failed", "xfailed"):
        return f"its twin ends otherwise ({twin.outcome}: {twin.message[:MESSAGE]})"
    return ""
