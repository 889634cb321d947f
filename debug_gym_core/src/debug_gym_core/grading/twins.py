"""Whether a pass is believed: the tests that passed run again, in another sandbox, with what they expect turned.

A test whose expectations hold, and whose opposites fail, must fail there. One that passes whatever it expects is not
believed. How that is told is in `runner.turning` and `runner.expectations`.
"""

from __future__ import annotations

import ast
import contextlib
import posixpath
import re
import secrets
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from debug_gym_core.grading.measure import measure
from debug_gym_core.grading.reported_run import Turned
from debug_gym_core.grading.runner.literals import blurred
from debug_gym_core.grading.runner.statements import STRANGE
from debug_gym_core.sandbox.python_code import parse
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_core.tasks.judge import Judge, Twinned
from debug_gym_core.tasks.results import PASSING, Measurement, Problem, TestResult
from debug_gym_core.workspace.snapshot import Snapshot

When = Literal["auto", "always", "never"]

TIMES = 5.0
"""How much longer than the tests themselves their twins may run."""

LEAST = 60.0
"""Seconds that they have at least: starting is most of a short run."""

HELPERS = 100
"""Modules that help tests at most; a directory of tests with more holds whole programs."""

HELPER_SIZE = 1 << 20
"""Bytes of all of them at most."""

MESSAGE = 200
"""Characters of what a twin says that is not believed."""

READ = 1000
"""Files beside these in which it is looked for what they say."""

_SAID = re.compile(rb"""['"](?:[\w.]*\.)?([A-Za-z_]\w*)['"]""", re.ASCII)

UNASKED = "it has no twin, and its run has hooks or stand-ins for modules, as that of the repository itself"
"""Why a test is not believed that needs one."""


@dataclass(frozen=True)
class Twins:
    """What the second run came to.

    Attributes:
        count: how many tests that passed have a twin
        doubts: why a test is not believed, by its id
        lost: whether what ran it in the sandbox died meanwhile
        asked: the tests that have one
        unread: why a module with tests cannot be read, by its path: they have none
    """

    count: int = 0
    doubts: Mapping[str, str] = field(default_factory=dict)
    lost: bool = False
    asked: frozenset[str] = frozenset()
    unread: Mapping[str, str] = field(default_factory=dict)

    def strange(self, test: str) -> frozenset[str]:
        """What a test uses that is not what it was, by name.

        Args:
            test: its id
        """
        names = self.doubts.get(test, "").partition(STRANGE)[2]
        return frozenset(names.split(", ") if names else ())

    def holds(self, test: str) -> bool:
        """Whether a test is doubted for that alone: what it expects holds, and the opposite does not.

        Args:
            test: its id
        """
        return self.doubts.get(test, "").startswith(STRANGE)

    def but(self, tests: Collection[str]) -> Twins:
        """The same, where some tests are not doubted: the twins of those that are doubted for more tell nothing."""
        doubts = {test: why for test, why in self.doubts.items() if test not in tests}
        lost = [test for test in self.doubts if test not in doubts and not self.holds(test)]
        return replace(self, count=self.count - len(lost), doubts=doubts)

    def with_doubts_of(self, tests: Iterable[str]) -> Twins:
        """The same, where some tests need a twin to be believed.

        Args:
            tests: their ids
        """
        return replace(self, doubts={**{test: UNASKED for test in tests if test not in self.asked}, **self.doubts})


def without(measurement: Measurement, doubts: Mapping[str, str]) -> Measurement:
    """A run of the tests in which those that are not believed failed.

    Args:
        measurement: the run
        doubts: why, by the tests' ids
    """
    if not doubts:
        return measurement
    tests = tuple(replace(one, outcome="failed") if one.id in doubts else one for one in measurement.tests)
    return replace(measurement, tests=tests, exit_status=1)


def have_twins(entrypoint: str) -> bool:
    """Whether tests that an entrypoint runs can be turned."""
    return Entrypoint.parse(entrypoint).runs_tests


def run_twins(
    session: Session,
    entrypoint: str,
    sources: Mapping[str, bytes],
    doctests: frozenset[str],
    helpers: Mapping[str, bytes],
    trusted: Sequence[str],
    passed: Measurement,
    elsewhere: Mapping[str, Sequence[str]] | None = None,
    known: Collection[Problem] = (),
    shadowed: Collection[str] = (),
    said: Collection[str] = (),
    besides: Sequence[str] = (),
) -> Twins:
    """Run the twins of the tests that passed.

    Args:
        session: a fresh sandbox with the graded state
        entrypoint: the command that runs the tests
        sources: of the pristine modules that hold tests that count, by path
        doctests: ids of doctests that count and expect something
        helpers: see `helpers_of`
        trusted: files of the repository that may add hooks to pytest
        passed: the run in which they passed
        elsewhere: files of tests whose ids do not say which it is by a path from the root, by the ids
        known: problems of the run that are held against nobody
        shadowed: see `modules_of`
        said: see `said_beside`
        besides: ids of tests of which twins are run, too

    Raises:
        SandboxLost: the sandbox went away
    """
    twinned = Twinned(entrypoint, sources, frozenset((*_passed(passed), *besides)), lambda test: (test,))
    return _run(session, twinned, trusted, passed, doctests, helpers, elsewhere, known, shadowed, said, besides)


def helpers_of(snapshot: Snapshot, trusted: Sequence[str], tests: Mapping[str, bytes]) -> dict[str, bytes]:
    """The modules beside tests that these name: what they assert, they assert for the tests.

    Args:
        snapshot: the pristine repository
        trusted: its files that belong to the tests; directories end in `/`
        tests: the texts of the modules with tests, by path

    Returns:
        their texts by path; where they are too many to be helpers, those that say what equals what or anything
    """
    directories = tuple(one for one in trusted if one.endswith("/"))
    left = {
        path: posixpath.basename(path).removesuffix(".py").encode()
        for path, member in snapshot.members.items()
        if member.kind == "file" and path.endswith(".py") and path not in tests
        if path.startswith(directories) or path in trusted
    }
    named, texts, found = {b"__init__", b"conftest"}, list(tests.values()), dict[str, bytes]()
    while texts:  # helpers have helpers
        named.update(word for text in texts for word in re.findall(rb"\w+", text))
        more = {path: snapshot.read(path) for path, name in left.items() if name in named and path not in found}
        if found and not are_helpers(found | more):
            break
        found, texts = found | more, list(more.values())
    if are_helpers(found):
        return found
    return {path: text for path, text in found.items() if b"def __eq__" in text or b"ANY" in text}


def are_helpers(texts: Mapping[str, bytes]) -> bool:
    """Whether modules are no more than help tests.

    Args:
        texts: of them
    """
    return len(texts) <= HELPERS and sum(map(len, texts.values())) <= HELPER_SIZE


def modules_of(snapshot: Snapshot) -> frozenset[str]:
    """The names of all modules and packages in a repository: what of Python's has one of them may not be Python's."""
    parts = {part for path in snapshot.members if path.endswith(".py") for part in path.removesuffix(".py").split("/")}
    return frozenset(part for part in parts if part in sys.stdlib_module_names)


def said_beside(snapshot: Snapshot, trusted: Sequence[str], known: Collection[str]) -> frozenset[str]:
    """The names that files of the tests say in a text, of which the runner is sent none: they may be replaced there.

    Args:
        snapshot: the pristine repository
        trusted: its files that belong to the tests; directories end in `/`
        known: paths of those that the runner is sent
    """
    directories, files = tuple(one for one in trusted if one.endswith("/")), frozenset(trusted)
    paths = [one for one in snapshot.members if one.endswith(".py") and (one in files or one.startswith(directories))]
    left = [one for one in paths if one not in known and snapshot.members[one].kind == "file"][:READ]
    return frozenset(name.decode() for path in left for name in _SAID.findall(snapshot.read(path)))


def run_judged_twins(
    session: Session, judge: Judge, passed: Measurement, snapshot: Snapshot, trusted: Sequence[str]
) -> Twins | None:
    """Run the twins of the tests that passed as a judge says; None: it cannot.

    Args:
        session: a fresh sandbox with the graded state
        judge: the task's
        passed: what it measured
        snapshot: the pristine repository
        trusted: its files that belong to the tests; directories end in `/`

    Raises:
        SandboxLost: the sandbox went away
    """
    twinned = judge.twinned(session, passed)
    if twinned is None:
        return None
    helpers = {}
    for path in helpers_of(snapshot, trusted, twinned.sources):
        with contextlib.suppress(OSError):  # The judge may have put others in their places, or none.
            helpers[path] = session.read(path)
    said = said_beside(snapshot, trusted, {*twinned.sources, *helpers})
    return _run(session, twinned, None, passed, helpers=helpers, shadowed=modules_of(snapshot), said=said)


def _run(
    session: Session,
    twinned: Twinned,
    trusted: Sequence[str] | None,
    passed: Measurement,
    doctests: frozenset[str] = frozenset(),
    helpers: Mapping[str, bytes] | None = None,
    elsewhere: Mapping[str, Sequence[str]] | None = None,
    known: Collection[Problem] = (),
    shadowed: Collection[str] = (),
    said: Collection[str] = (),
    besides: Sequence[str] = (),
) -> Twins:
    """Run twins, and tell which tests are not believed."""
    modules, unread = _written(twinned.sources)
    written = _Written(modules)
    named = _Written({name: paths for test, paths in modules.items() for name in twinned.names(test)})
    inside: dict[str, list[str]] = {}
    for test in dict.fromkeys((*_passed(passed), *besides)):
        within = test.partition("::")[2]
        ends = [f"{path}::{within}" for path in (elsewhere or {}).get(test, ()) if within]
        paths = named.of(test) or [path for end in ends for path in named.of(end)]
        if test in twinned.tests and paths:
            inside[test] = paths
    asked_too = [test for test in _passed(passed) if test in doctests and test not in inside]
    if not inside and not asked_too:
        return Twins(unread=unread)
    sources = {path: twinned.sources[path] for path in sorted({path for paths in inside.values() for path in paths})}
    functions = sorted({_name(one) for one in inside})
    tokens = secrets.token_hex(8), secrets.token_hex(8)
    turned = Turned(sources, functions, *tokens, asked_too, helpers or {}, shadowed, said)
    for path, text in sources.items():
        # Where it cannot be written, its text tells what it told before.
        with contextlib.suppress(SyntaxError, ValueError, OSError, RecursionError):
            session.write(path, blurred(text, parse(text), functions))
    # Whoever makes the run hang, end or lie learns nothing: what its twin did not show is not believed.
    timeout = max(LEAST, TIMES * passed.seconds)
    run = measure(session, twinned.entrypoint, timeout=timeout, trusted=trusted, turned=turned).but(known)
    told: dict[str, list[TestResult]] = {}
    for result in () if run.tampered else run.tests:
        is_known = result.id in doctests or result.id in inside or written.of(result.id)
        for name in twinned.names(result.id) if is_known else ():
            told.setdefault(name, []).append(result)
    # Where a module cannot be loaded, as before a fix that brings what it imports, that is told of all of it.
    unloaded = {one.id: one.message.partition(STRANGE)[2].strip() for one in run.tests if one.outcome == "error"}
    have, doubts = [], {}
    for test in (*inside, *asked_too):
        results = told.get(test, [])
        asked = [one for one in results if one.outcome != "skipped" or turned.secret not in one.message]
        if results and not asked:
            continue
        have.append(test)
        said = [why for one in asked if (why := _doubt(one, turned.secret))]
        if not asked:
            said = [f"its twin did not run ({run.reason})" if run.reason else "its twin did not run"]
            names = [unloaded[path] for path in inside.get(test, ()) if unloaded.get(path)]
            said = [f"its twin did not run, and {STRANGE}{names[0]}"] if names else said
        if said:
            doubts[test] = said[0]
    return Twins(len(have), doubts, run.lost, frozenset(have), unread)


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


def _passed(measurement: Measurement) -> list[str]:
    return [test.id for test in measurement.tests if test.outcome in PASSING]


def _written(sources: Mapping[str, bytes]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The modules of the functions and methods that are written in one of some, by the ids that a test has of them.

    Of those that cannot be read, why, by their paths.
    """
    places: dict[str, list[str]] = {}
    unread: dict[str, str] = {}
    for path, text in sources.items():
        parts = path.removesuffix(".py").split("/")
        try:
            names = _functions(text)
        except (SyntaxError, ValueError, RecursionError) as error:  # which the sandbox's Python may well read
            unread[path] = str(error)
            continue
        for name in names:
            places[f"{path}::{name.replace('.', '::')}"] = [path]
            # unittest names a module from where it began to look for tests, which may be below the root.
            for first in range(len(parts)):
                places.setdefault(".".join((*parts[first:], name)), []).append(path)
    return places, unread


class _Written:
    """The modules that functions and methods are written in, by the ids that a test has of them."""

    def __init__(self, modules: Mapping[str, list[str]]) -> None:
        self._modules = modules
        self._longest = max(map(len, modules), default=0)

    def of(self, test: str) -> list[str]:
        """The modules that a test's function may be written in: none, one, or several of the same name.

        Args:
            test: its id
        """
        name = test.partition("[")[0]
        for end in re.finditer(r"::|\.|$", name[: self._longest + 2]):
            # Below a function is nothing: what is reported there has to be shown as well.
            if name[: end.start()] in self._modules:
                return self._modules[name[: end.start()]]
        return []


def _functions(text: bytes) -> frozenset[str]:
    """The qualified names of a module's functions and methods, of those too that a class has from another of it.

    Raises:
        SyntaxError, ValueError, RecursionError: the module cannot be read
    """
    found: set[str] = set()
    bases: dict[str, list[str]] = {}

    def look(body: Iterable[ast.stmt], prefix: str) -> None:
        for one in body:
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.add(prefix + one.name)
            elif isinstance(one, ast.ClassDef):
                name = prefix + one.name
                bases[name] = [ast.unparse(base) for base in one.bases]
                look(one.body, name + ".")
            else:
                for part in ("body", "orelse", "handlers", "finalbody"):
                    look(getattr(one, part, ()), prefix)

    look(parse(text).body, "")
    for name, others in bases.items():  # A class comes after those that it is made of.
        for other in others:
            found |= {f"{name}.{one.removeprefix(other + '.')}" for one in found if one.startswith(other + ".")}
    return frozenset(found)


def _name(test: str) -> str:
    """The name of the function or method that a test is."""
    return re.split(r"::|\.", test.partition("[")[0])[-1]
