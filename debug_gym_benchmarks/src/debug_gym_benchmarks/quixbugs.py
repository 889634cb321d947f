"""QuixBugs: classic algorithms, each with a bug on one line.

https://github.com/jkoppel/QuixBugs
"""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from debug_gym_benchmarks import cache, passes_before, plain_pytest
from debug_gym_benchmarks.checkouts import Checkout, CheckoutSettings, Published, open_checkout
from debug_gym_benchmarks.written_tests import written_tests
from debug_gym_core import Benchmark, BenchmarkSettings, Task, UsageError
from debug_gym_core.names import nearest
from debug_gym_core.workspace import patch
from debug_gym_core.workspace.snapshot import FileState

PUBLISHED = Published(
    "jkoppel/QuixBugs", "https://github.com/jkoppel/QuixBugs", "4257f44b0ff1181dedaedee6a447e133219fcebf"
)
BUGGY, CORRECT, TESTS, DATA = "python_programs", "correct_python_programs", "python_testcases", "json_testcases"
SHARED = (f"{TESTS}/load_testdata.py", f"{TESTS}/node.py")
"""What the tests of several programs import."""

TEST_LIMIT = 5
"""Seconds of processor time that one test may take: some bugs loop for ever, the right ones take 1.7 at most."""

TIME_LIMIT = 180.0
"""Seconds for a run of the tests: all that loop, and a busy machine."""

CONFTEST = f'''\
"""How the tests are run: on the program as it is here, without the slow ones, and with an end to what loops."""

import signal

import pytest

pytest.use_correct = False
pytest.run_slow = False


@pytest.fixture(autouse=True)
def processor_time():
    """Fail a test that computes for longer; time in which it waits for a debugger does not count."""

    def stop(*_):
        pytest.fail("it took more than {TEST_LIMIT} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, {TEST_LIMIT})
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
'''


class QuixBugs(Benchmark):
    """Forty classic algorithms with a bug on one line each, with tests; from git or `source`."""

    name = "quixbugs"

    Settings: ClassVar[type[BenchmarkSettings]] = CheckoutSettings
    settings: CheckoutSettings

    def names(self) -> Sequence[str]:
        """The programs in alphabetical order."""
        return self._programs

    def titles(self) -> Mapping[str, str]:
        """What each program calls itself."""
        found = self._checkout.states(f"{BUGGY}/{name}.py" for name in self._programs)
        titles = {name: _title(_text(found[f"{BUGGY}/{name}.py"])) for name in self._programs}
        return {name: title for name, title in titles.items() if title}

    def requires(self) -> Sequence[str]:
        """What runs the tests."""
        return ("pytest",)

    def load(self, name: str) -> Task:
        """Make a program with its tests a task."""
        if name not in self._programs:
            raise UsageError(f"{self.name} has no task {name!r}{nearest(name, self._programs)}")
        program, test, data = f"{BUGGY}/{name}.py", f"{TESTS}/test_{name}.py", f"{DATA}/{name}.json"
        found = self._checkout.states([program, f"{CORRECT}/{name}.py", test, data, *SHARED])
        for path in (f"{CORRECT}/{name}.py", test, *SHARED):
            if path not in found:
                raise self._checkout.lacks(path)
        buggy = {program: found[program]}
        fixed = _fixed(name, _text(found[program]), _text(found[f"{CORRECT}/{name}.py"]))
        tests = {path: found[path] for path in (test, data, *SHARED) if path in found}
        tests["conftest.py"] = FileState(CONFTEST.encode())
        counting, kept = passes_before.split(self.name, name, self._ids(test, _text(found[test]), found.get(data)))
        hidden = self.settings.mode == "hidden"
        where = "tests that you do not see" if hidden else f"tests in {test}"
        return Task(
            benchmark=self.name,
            name=name,
            repository=cache.keep(f"{self.name}/{name}", buggy if hidden else {**buggy, **tests}),
            entrypoint=f"python -m pytest -q {test}",
            description=f"The function {name} in {program} has a bug on one line: {where} fail. The text at the end of"
            " the file says what it has to do.",
            tests=counting,
            pass_to_pass=kept,
            max_score=len(counting),
            stops=(f"{program}:{_stop(_text(found[program]), fixed)}",),
            gold_patch=patch.make(buggy, {program: FileState(fixed.encode())}),
            environment=plain_pytest.ENVIRONMENT,
            known_to_fail=True,
            requires=tuple(self.requires()),
            readonly=("/conftest.py", f"/{TESTS}/", f"/{DATA}/"),
            time_limit=TIME_LIMIT,
            mode=self.settings.mode,
            tests_patch=patch.make({}, tests) if hidden else None,
            test_files=tuple(tests),
        )

    @functools.cached_property
    def _checkout(self) -> Checkout:
        return open_checkout(PUBLISHED, self.settings.source, self.settings.revision)

    @functools.cached_property
    def _programs(self) -> list[str]:
        """Programs that have tests; beside them lie drivers that print, and the class of nodes."""
        tested = {name.removeprefix("test_") for name in self._checkout.children(TESTS) if name.startswith("test_")}
        return [name.removesuffix(".py") for name in self._checkout.children(BUGGY) if name in tested]

    def _ids(self, path: str, text: str, data: FileState | None) -> tuple[str, ...]:
        """The tests that count: all but those that are skipped for taking minutes."""
        written = written_tests(path, text)
        if written is not None:
            return written
        test = _parametrized(ast.Module(_body(text), []))
        if test is None or data is None:
            raise UsageError(f"benchmark.source: {path} in {self._checkout.place} has not tests as QuixBugs has them")
        try:
            rows = [_pair(json.loads(line)) for line in _text(data).splitlines()]
        except ValueError as error:
            raise UsageError(
                f"benchmark.source: {DATA} of {path} in {self._checkout.place} has a line that is no pair of input_data"
                f" and expected: {error}"
            ) from None
        skipped = list(_skipped(test))
        return tuple(
            f"{path}::{test.name}[{_name('input_data', place, given)}-{_name('expected', place, expected)}]"
            for place, (given, expected) in enumerate(rows)
            if given not in skipped
        )


def _pair(line: object) -> tuple[object, object]:
    """What a test is given, and what is expected."""
    if not isinstance(line, list) or len(line) != 2:
        raise ValueError(f"{json.dumps(line)[:60]} is not a list of two")
    return line[0], line[1]


def _parametrized(tree: ast.Module) -> ast.FunctionDef | None:
    """The test that runs once for each line of the data; None when the file has other tests."""
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")]
    if len(tests) != 1 or len(tests[0].decorator_list) != 1:
        return None
    how = ast.unparse(tests[0].decorator_list[0])
    return tests[0] if how == "pytest.mark.parametrize('input_data,expected', testdata)" else None


def _skipped(test: ast.FunctionDef) -> Iterator[object]:
    """The inputs that a test skips: `if ... input_data == [...]: pytest.skip(...)`."""
    for branch in (node for node in ast.walk(test) if isinstance(node, ast.If)):
        if any(ast.unparse(one).startswith("pytest.skip(") for one in branch.body):
            for node in ast.walk(branch.test):
                if isinstance(node, ast.Compare) and ast.unparse(node.left) == "input_data":
                    yield ast.literal_eval(node.comparators[0])


def _name(argument: str, place: int, value: object) -> str:
    """What pytest calls a value in an id."""
    if isinstance(value, str):
        return value.encode("unicode_escape").decode("ascii")
    return f"{argument}{place}" if isinstance(value, list | dict) else str(value)


def _fixed(name: str, buggy: str, correct: str) -> str:
    """The buggy program with the first right version of the function; more of them may follow where that is from."""
    old, new = _function(name, buggy), _function(name, correct)
    if old is None or new is None or old.end_lineno is None or new.end_lineno is None:
        return correct
    lines, right = buggy.splitlines(keepends=True), correct.splitlines(keepends=True)
    return "".join([*lines[: old.lineno - 1], *right[new.lineno - 1 : new.end_lineno], *lines[old.end_lineno :]])


def _stop(buggy: str, fixed: str) -> int:
    """The first line of the statement that the fix changes, or that it puts another one before."""
    pairs = zip(buggy.splitlines(), fixed.splitlines(), strict=False)
    line = next((place for place, (old, new) in enumerate(pairs, 1) if old != new), 1)
    following = []
    for node in (one for part in _body(buggy) for one in ast.walk(part) if isinstance(one, ast.stmt)):
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        if node.lineno <= line <= last:
            return node.lineno
        if node.lineno > line:
            following.append(node.lineno)
    return min(following, default=line)


def _function(name: str, text: str) -> ast.FunctionDef | None:
    found = [node for node in _body(text) if isinstance(node, ast.FunctionDef) and node.name == name]
    return found[0] if found else None


def _body(text: str) -> list[ast.stmt]:
    """The statements of a program; none of one that is not Python of this version."""
    try:
        return ast.parse(text).body
    except SyntaxError:
        return []


def _title(text: str) -> str:
    """The first line of a program's text that is not about its input or output."""
    strings = [node.value for node in _body(text) if isinstance(node, ast.Expr)]
    texts = [node.value for node in strings if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    lines = (line.rstrip() for one in texts for line in one.splitlines())
    return next((line for line in lines if line and not line[0].isspace() and not line.endswith(":")), "")


def _text(state: FileState) -> str:
    return state.data.decode("utf-8", "replace")
