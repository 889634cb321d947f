"""What the repository does itself that looks like tampering is held against no change, and helps none."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import pytest
from grading_bench import ASSERTS, BROKEN, FIXED, IDS, TESTS, Make, instead
from support import repeated

from debug_gym_core.environment.counted_tests import CountedTests
from debug_gym_core.grading import grade as clean
from debug_gym_core.grading.anyway import Unchanged, forgivable, throughout
from debug_gym_core.grading.dropped import installed_of
from debug_gym_core.grading.measure import measure
from debug_gym_core.grading.runner.tampering import MOST_PROBLEMS
from debug_gym_core.grading.twins import UNASKED as NO_TWIN
from debug_gym_core.grading.twins import When
from debug_gym_core.tasks.results import Measurement, Problem, TestResult
from debug_gym_core.workspace.patch import make as make_patch
from debug_gym_core.workspace.snapshot import FileState

CONFTEST = "from hooks import *\n"
HOOKS = "def pytest_runtest_setup(item):\n    item.started = True\n"
UNASKED = TESTS.replace("assert same(calc.add(2, 3), 5)", "check(calc.add(2, 3))") + (
    "\ndef check(found):\n    if found != 5:\n        raise ValueError(found)\n"
)
LATER = """
import calc

def test_later():
    if calc.double(4) != 8:
        raise ValueError
"""


def test_a_right_fix_counts_where_the_repository_adds_hooks_itself(make: Make) -> None:
    bench = make({"calc.py": BROKEN, "test_calc.py": TESTS, "conftest.py": CONFTEST, "hooks.py": HOOKS})
    result = bench.grade({"calc.py": FIXED})
    assert (result.resolved, result.twins, result.reason) == (True, 2, ""), result
    assert not bench.grade({"calc.py": FIXED}, twins="never").resolved


@pytest.mark.grading
def test_it_counts_also_where_the_repository_wrote_to_its_tests(make: Make) -> None:
    bug = "\nopen('test_calc.py', 'a').write('#')\n"
    bench = make({"calc.py": BROKEN + bug, "test_calc.py": TESTS, "conftest.py": CONFTEST, "hooks.py": HOOKS})
    result = bench.grade({"calc.py": FIXED})
    assert (result.resolved, result.score, result.reason) == (True, 2, ""), result
    result = bench.grade({"calc.py": FIXED + bug})
    assert (result.resolved, result.score) == (False, 0), result
    assert result.reason == "the run wrote to the tests: test_calc.py"


def test_a_fix_of_a_part_counts_for_that_part(make: Make) -> None:
    broken = BROKEN.replace("2 * a", "a")
    bench = make({"calc.py": broken, "test_calc.py": TESTS, "conftest.py": CONFTEST, "hooks.py": HOOKS})
    result = bench.grade({"calc.py": BROKEN})
    assert (result.resolved, result.score, result.twins, result.reason) == (False, 1, 1, ""), result


def test_a_part_that_only_hooks_let_pass_does_not_count(make: Make) -> None:
    broken = BROKEN.replace("2 * a", "a")
    bench = make({"calc.py": broken, "test_calc.py": TESTS, "conftest.py": CONFTEST, "hooks.py": HOOKS})
    result = bench.grade({"hooks.py": HOOKS + "    if 'double' in item.name: item.runtest = lambda: None\n"})
    assert (result.resolved, result.score, list(result.doubts)) == (False, 0, [IDS[0]]), result


@pytest.mark.parametrize(
    "changes",
    [
        {"hooks.py": HOOKS + "    item.runtest = lambda: None\n"},
        *repeated(
            "grading",
            {"hooks.py": HOOKS + "    item.obj = lambda: None\n"},
            {"hooks.py": HOOKS + "def pytest_runtest_call(item):\n    item.runtest = lambda: None\n"},
            {"hooks.py": HOOKS + "    import unittest\n    unittest.TestCase.fail = print\n", "calc.py": FIXED},
        ),
    ],
)
def test_what_is_changed_besides_does_not(make: Make, changes: dict[str, str]) -> None:
    bench = make({"calc.py": BROKEN, "test_calc.py": TESTS, "conftest.py": CONFTEST, "hooks.py": HOOKS})
    result = bench.grade(changes)
    assert not result.resolved, result


@pytest.mark.grading
def test_what_nobody_asks_is_not_believed_there(make: Make) -> None:
    bench = make({"calc.py": BROKEN, "test_calc.py": UNASKED, "conftest.py": CONFTEST, "hooks.py": HOOKS})
    result = bench.grade({"calc.py": FIXED})
    assert (result.resolved, result.doubts) == (False, {IDS[1]: NO_TWIN}), result


@pytest.mark.parametrize(
    ("broken", "tests"),
    [
        (BROKEN, ASSERTS),
        *repeated("grading", (BROKEN.replace("def add", "def other"), "from calc import add\n" + ASSERTS)),
    ],
    ids=["a failure", "a file that cannot be imported"],
)
def test_what_the_unchanged_run_stops_at_makes_no_later_test_new(make: Make, broken: str, tests: str) -> None:
    files = {"pytest.ini": "[pytest]\naddopts = -x\n", "conftest.py": CONFTEST, "hooks.py": HOOKS, "calc.py": broken}
    bench = make({**files, "test_calc.py": tests, "test_later.py": LATER})
    result = bench.grade({"calc.py": FIXED}, (*IDS, "test_later.py::test_later"))
    assert (result.resolved, dict(result.doubts), result.reason) == (True, {}, ""), result


@pytest.mark.parametrize(
    ("broken", "tests"),
    [
        (instead("__import__('os')._exit(3)"), ASSERTS),
        *repeated(
            "grading",
            (instead("while True: pass"), ASSERTS),
            (BROKEN.replace("def add", "def other"), "from calc import add\n" + ASSERTS),
        ),
    ],
    ids=["ends", "hangs", "cannot be imported"],
)
def test_hooks_are_told_also_where_the_unchanged_run_has_no_end(make: Make, broken: str, tests: str) -> None:
    bench = make({"calc.py": broken, "test_calc.py": tests, "conftest.py": CONFTEST, "hooks.py": HOOKS})
    result = bench.grade({"calc.py": FIXED}, timeout=10)
    assert (result.resolved, result.score, result.reason) == (True, 2, ""), result


@pytest.mark.grading
def test_what_hangs_behind_the_end_of_the_unchanged_run_hides_nothing(make: Make) -> None:
    files = {"pytest.ini": "[pytest]\naddopts = -x\n", "conftest.py": CONFTEST, "hooks.py": HOOKS}
    hangs = f"{BROKEN}\nreleased = False\ndef later(a):\n    while not released: pass\n    return a\n"
    tests = f"{ASSERTS}\ndef test_later():\n    assert calc.later(1) == 1\n"
    bench = make({**files, "calc.py": hangs, "test_calc.py": tests})
    fixed = hangs.replace("a - b", "a + b").replace("released = False", "released = True")
    result = bench.grade({"calc.py": fixed}, bench.tests(), timeout=5)
    assert (result.resolved, dict(result.doubts), result.reason) == (True, {}, ""), result


def test_the_unchanged_run_goes_on_whatever_the_command_says() -> None:
    more = "--maxfail=0 --continue-on-collection-errors"
    assert throughout("python -m pytest -x -q") == f"python -m pytest -x -q {more}"
    assert throughout("A='b c' pytest -x -- tests") == f"A='b c' python -m pytest -x {more} -- tests"
    assert throughout("python -m unittest -f") == "python -m unittest -f"
    assert throughout("make test") == "make test"


@pytest.mark.grading
def test_of_tests_that_do_not_count_none_is_doubted(make: Make) -> None:
    """Those of other modules have no twin, and others of theirs may well pass whatever they expect."""
    anything = "\ndef test_anything():\n    assert calc.add(1, 1) == Anything()\n"
    equal = "\nclass Anything:\n    def __eq__(self, other): return True\n"
    other = LATER.replace("calc.double(4) != 8", "calc.add(4, 4) != 8")
    files = {
        "calc.py": BROKEN,
        "test_calc.py": "from equal import Anything\n" + ASSERTS + anything,
        "test_other.py": other,
    }
    bench = make({**files, "equal.py": equal, "conftest.py": CONFTEST, "hooks.py": HOOKS})
    bench.task = replace(bench.task, tests=IDS[1:], pass_to_pass=IDS[:1])
    result = bench.grade({"calc.py": FIXED}, tests=IDS[1:])
    assert (result.resolved, result.reason, dict(result.doubts)) == (True, "", {}), result
    assert result.tests["test_other.py::test_later"] == "passed"


@pytest.mark.grading
def test_a_plugin_object_is_told_by_its_class(make: Make) -> None:
    plugin = "class Plugin:\n    def pytest_runtest_setup(self, item): pass\n"
    conftest = "import hooks\ndef pytest_configure(config): config.pluginmanager.register(hooks.Plugin())\n"
    bench = make({"calc.py": BROKEN, "test_calc.py": TESTS, "conftest.py": conftest, "hooks.py": plugin})
    assert bench.grade({"calc.py": FIXED}).resolved
    assert not bench.grade({"calc.py": instead("return 5")}, twins="never").resolved


def test_it_is_forgiven_by_its_kind_whatever_is_told_of_it() -> None:
    hook, other = Problem("hook", "a function"), Problem("changed", "a hook pytest_runtest_setup was added by hooks")
    run = Measurement((), 0, "", valid=False, tampered=True, problems=frozenset({hook, other}))
    assert forgivable(run) == {hook}


@pytest.mark.parametrize(
    ("hooks", "resolved"),
    [pytest.param(MOST_PROBLEMS, True, marks=pytest.mark.grading), (MOST_PROBLEMS + 1, False)],
    ids=["all", "more"],
)
def test_where_more_hooks_are_there_than_are_told_none_is_forgiven(make: Make, hooks: int, resolved: bool) -> None:
    plugins = """
        def pytest_runtest_setup(self, item): pass
        many = [type(f"Plugin{number}", (), {"pytest_runtest_setup": pytest_runtest_setup}) for number in range(NUMBER)]
    """.replace("NUMBER", str(hooks))
    conftest = """
        import hooks
        def pytest_configure(config):
            for one in hooks.many:
                config.pluginmanager.register(one())
    """
    bench = make({"calc.py": BROKEN, "test_calc.py": TESTS, "conftest.py": conftest, "hooks.py": plugins})
    result = bench.grade({"calc.py": FIXED})
    assert (result.resolved, result.score) == (resolved, 2 if resolved else 0), result


def test_a_predicate_that_the_repository_replaces_itself_is_not_forgiven(make: Make) -> None:
    tests = TESTS.replace("import calc", "import calc, math").replace(
        "same(calc.add(2, 3), 5)", "math.isclose(calc.add(2, 3), 5)"
    )
    code = "import math\nmath.isclose = lambda one, other: one == other\n"
    bench = make({"calc.py": code + BROKEN, "test_calc.py": tests})
    result = bench.grade({"calc.py": code + FIXED})
    assert not result.resolved and "math.isclose was replaced at the end" in result.reason, result


LAZY = """
import math, sys
class Lazy:
    def __getattr__(self, name):
        return getattr(math, name)
sys.modules["math"] = Lazy()
"""


@pytest.mark.parametrize(
    ("before", "twins", "resolved"),
    [(LAZY, "auto", True), ("", "auto", False), *repeated("grading", (LAZY, "never", False))],
)
def test_what_the_repository_puts_in_a_modules_place_itself_is_forgiven(
    make: Make, before: str, twins: When, resolved: bool
) -> None:
    tests = ASSERTS.replace("    assert calc.add(2, 3)", "    import math\n    assert math.floor(calc.add(2, 3))")
    bench = make({"calc.py": before + BROKEN, "test_calc.py": tests})
    result = bench.grade({"calc.py": LAZY + FIXED}, twins=twins, forgiving=True)
    reason = "" if resolved else "sys.modules['math'] was replaced by what is no module during collection; "
    assert (result.resolved, result.reason.startswith(reason)) == (resolved, True), result


@pytest.mark.grading
def test_a_test_that_skips_itself_anyway_keeps_nothing_from_being_resolved_there(make: Make) -> None:
    tests = TESTS + "\nimport pytest\ndef test_more():\n    pytest.skip('no display')\n"
    bench = make({"calc.py": BROKEN, "test_calc.py": tests, "conftest.py": CONFTEST, "hooks.py": HOOKS})
    ids = (*IDS, "test_calc.py::test_more")
    result = bench.grade({"calc.py": FIXED}, ids)
    assert (result.resolved, result.score, result.twins) == (True, 3, 2), result
    result = bench.grade({"hooks.py": HOOKS + "def pytest_runtest_call(item): pass\n", "calc.py": FIXED}, ids)
    assert (result.resolved, result.score) == (False, 0), result


@pytest.mark.parametrize(("decorator", "twins"), [("", "never"), ("@written_anew", "auto")])
def test_hooks_of_a_conftest_are_its_own_whatever_it_makes_of_itself(make: Make, decorator: str, twins: When) -> None:
    """Those that a decorator has written anew are no file's, and forgiven as others that the repository adds."""
    conftest = f"""
        import sys, types
        class Module(types.ModuleType): pass
        sys.modules[__name__].__class__ = Module
        def written_anew(function):
            function.__code__ = function.__code__.replace(co_firstlineno=function.__code__.co_firstlineno + 1)
            return function
        {decorator}
        def pytest_runtest_setup(item): item.started = True
    """
    bench = make({"calc.py": BROKEN, "test_calc.py": TESTS, "conftest.py": conftest})
    result = bench.grade({"calc.py": FIXED}, twins=twins)
    assert (result.resolved, result.reason) == (True, ""), result


@pytest.mark.parametrize("is_known", [True, *repeated("grading", False)])
def test_hooks_that_come_with_the_fix_are_those_of_the_right_one(
    make: Make, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    hooks, plugin = "def register(config): pass\n", "class Plugin:\n    def pytest_runtest_setup(self, item): pass\n"
    registers = hooks.replace("pass", "config.pluginmanager.register(Plugin())")
    conftest = "import hooks\ndef pytest_configure(config): hooks.register(config)\n"
    bench = make({"calc.py": BROKEN, "test_calc.py": TESTS, "conftest.py": conftest, "hooks.py": hooks})
    fix = {"calc.py": FIXED, "hooks.py": plugin + registers}
    states = {path: FileState(text.encode()) for path, text in fix.items()}
    if is_known:
        bench.task = replace(bench.task, gold_patch=make_patch({one: bench.snapshot.state(one) for one in fix}, states))
    assert bench.grade(fix).resolved is is_known
    other = {**fix, "hooks.py": fix["hooks.py"].replace("Plugin", "Other")}
    assert not bench.grade(other).resolved
    runs = mock.Mock(wraps=measure)
    monkeypatch.setattr(clean, "measure", runs)
    assert not bench.grade({"hooks.py": fix["hooks.py"]}).resolved
    assert runs.call_count == 1, "of what is not resolved without them; the unchanged repository has run"


def test_a_grade_runs_the_unchanged_repository_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one run are hooks forgiven, tests told that are skipped anyway, and those that are doubted anyway."""
    tests = TESTS + "\nimport pytest\ndef test_more():\n    pytest.skip('no display')\n"
    loose = BROKEN.replace("2 * a", "Any(2 * a)") + "\nclass Any(int):\n    def __eq__(self, other): return True\n"
    bench = make({"calc.py": loose, "test_calc.py": tests, "conftest.py": CONFTEST, "hooks.py": HOOKS})
    runs = mock.Mock(wraps=measure)
    monkeypatch.setattr(clean, "measure", runs)
    asked = mock.Mock(wraps=installed_of)
    monkeypatch.setattr(clean, "installed_of", asked)
    ids = (*IDS, "test_calc.py::test_more")
    result = bench.grade({"calc.py": loose.replace("a - b", "a + b")}, ids, forgiving=True)
    assert (result.resolved, result.score, result.twins, runs.call_count) == (True, 3, 1, 2), result
    assert asked.call_count == 1, "also what is installed, which changes no more"


WHOLE = Measurement((), 1, "")
HANGS, KILLED, LOST = replace(WHOLE, timed_out=True), replace(WHOLE, exit_status=-9), replace(WHOLE, lost=True)


@pytest.mark.parametrize(
    "runs", [[WHOLE], [HANGS, HANGS], [KILLED, HANGS], [KILLED, WHOLE], [LOST, LOST, WHOLE], [HANGS, LOST, KILLED]]
)
def test_the_last_of_some_unchanged_runs_is_kept(runs: list[Measurement]) -> None:
    """One that does not end by itself is made twice; a lost one tells nothing, however often it is."""
    unchanged, made = Unchanged(), mock.Mock(side_effect=runs)
    assert [unchanged.or_else(made) for _ in runs] == runs
    assert unchanged.or_else(made) is runs[-1] and made.call_count == len(runs)


def test_hooks_that_are_forgiven_break_no_test(make: Make) -> None:
    bench = make({"calc.py": BROKEN, "test_calc.py": TESTS, "conftest.py": CONFTEST, "hooks.py": HOOKS})
    bench.task = replace(bench.task, tests=IDS[1:], pass_to_pass=IDS[:1])
    result = bench.grade({}, tests=IDS[1:])
    assert (result.score, result.broken, result.reason) == (0, (), "")
    tests = (TestResult(IDS[0], "passed"), TestResult(IDS[1], "failed"))
    run = Measurement(tests, 1, "", valid=False, tampered=True, problems=frozenset({Problem("hook", "added")}))
    standing = CountedTests(bench.task).standing(replace(run, undecided=True))
    assert (standing.score, standing.resolved, standing.broken) == (0, False, ())
    standing = CountedTests(bench.task).standing(replace(run, tests=tests[1:]))
    assert (standing.score, standing.broken) == (0, ()), "what nobody knows of"
