"""The clean grading: honest fixes count, and nothing else does."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import pytest
from grading_bench import (
    BROKEN,
    ENTRYPOINT,
    FIXED,
    IDS,
    REPOSITORY,
    TESTS,
    UNITTEST_IDS,
    UNITTESTS,
    Bench,
    Make,
    instead,
    unittest_bench,
)
from support import repeated

from debug_gym_core.errors import TaskError
from debug_gym_core.grading.collect import collect
from debug_gym_core.grading.measure import measure
from debug_gym_core.grading.twins import When
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.results import Grade


def test_a_right_fix_is_resolved(bench: Bench) -> None:
    result = bench.grade({"calc.py": FIXED})
    assert result == Grade(True, 2, 2, dict.fromkeys(IDS, "passed"), "clean", twins=2)


def test_no_change_scores_what_passes(bench: Bench) -> None:
    result = bench.grade({})
    assert (result.resolved, result.score, result.max_score) == (False, 1, 2)
    assert result.tests == {IDS[0]: "passed", IDS[1]: "failed"}


def test_collected_tests_are_those_that_count(bench: Bench) -> None:
    assert bench.tests() == IDS


def test_tests_that_the_run_rewrites_do_not_count(make: Make) -> None:
    files = {**REPOSITORY, "tests/test_later.py": "def test_later():\n    assert False\n"}
    cheat = "open('tests/test_later.py', 'w').write('def test_later(): pass')" + FIXED
    tests = (*IDS, "tests/test_later.py::test_later")
    result = make(files, ENTRYPOINT + " test_calc.py tests").grade({"calc.py": cheat}, tests)
    assert not result.resolved
    assert (result.score, result.reason) == (0, "the run wrote to the tests: tests/test_later.py")


def test_a_run_that_wrote_to_the_tests_breaks_only_what_fails_in_it(make: Make) -> None:
    bench = make()
    bench.task = dataclasses.replace(bench.task, pass_to_pass=IDS[:1])
    writes = "\nopen('test_calc.py', 'a').write('#')\n"
    result = bench.grade({"calc.py": FIXED + writes}, IDS[1:])
    said = (0, (), "the run wrote to the tests: test_calc.py")
    assert (result.score, result.broken, result.reason) == said and result.tests[IDS[0]] == "passed", result


def test_a_test_that_the_run_makes_huge_is_not_read_whole(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    read, plain = [], Session.read

    def spy(session: Session, *arguments: Any) -> bytes:
        data = plain(session, *arguments)
        read.append(len(data))
        return data

    monkeypatch.setattr(Session, "read", spy)
    huge = FIXED.replace(
        "    return a + b", "    import os\n    os.truncate('test_calc.py', 100 << 20)\n    return a + b"
    )
    result = make().grade({"calc.py": huge})
    assert (result.score, result.reason) == (0, "the run wrote to the tests: test_calc.py")
    assert max(read) <= 1 + len(REPOSITORY["test_calc.py"])


def test_a_failing_test_that_does_not_count_does_no_harm(bench: Bench) -> None:
    result = bench.grade({"calc.py": BROKEN}, tests=IDS[:1], twins="never")
    assert (result.resolved, result.score, result.max_score) == (True, 1, 1)


def test_a_test_that_counts_and_is_not_there_is_missing(bench: Bench) -> None:
    result = bench.grade({"calc.py": FIXED}, tests=(*IDS, "test_calc.py::test_more"))
    assert (result.resolved, result.score) == (False, 2)
    assert result.tests["test_calc.py::test_more"] == "missing"


def test_changes_that_cannot_be_written_are_worth_nothing(bench: Bench) -> None:
    """An agent that leaves more than fits has failed: nothing is wrong with the sandbox."""
    result = bench.grade({"calc.py": FIXED, "x" * 300: "a name that no file system takes"})
    assert (result.resolved, result.score, set(result.tests.values())) == (False, 0, {"missing"})
    assert result.reason.startswith("the changes cannot be written: ")


def test_a_killed_run_keeps_what_was_reported(bench: Bench) -> None:
    result = bench.grade({"calc.py": "import os" + instead("os.kill(os.getpid(), 9)")})
    assert (result.resolved, result.score) == (False, 1)
    assert result.tests == {IDS[0]: "passed", IDS[1]: "missing"}
    assert result.reason == "it was killed by SIGKILL (out of memory?) before its report was complete"


def test_a_thread_that_does_not_end_is_a_timeout(make: Make) -> None:
    threaded = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n" + FIXED
    result = unittest_bench(make).grade({"calc.py": threaded}, UNITTEST_IDS, timeout=1)
    assert not result.resolved and result.reason == "it reached its timeout"


@pytest.mark.grading
def test_a_run_that_hangs_keeps_what_was_reported(bench: Bench) -> None:
    hanging = "import time" + BROKEN.replace("return a - b", "time.sleep(600)")
    result = bench.grade({"calc.py": hanging}, timeout=3)
    assert (result.resolved, result.score) == (False, 1)
    assert result.reason == "it reached its timeout"


def test_a_file_that_cannot_be_collected_counts_one(make: Make) -> None:
    bench = make({"calc.py": "x = \n", "test_calc.py": TESTS, "test_other.py": "def test_fine(): pass\n"})
    tests = bench.tests()
    assert sorted(tests) == ["test_calc.py", "test_other.py::test_fine"]
    assert bench.grade({"calc.py": BROKEN}, tests).score == 1
    result = bench.grade({"calc.py": FIXED}, tests)
    assert (result.resolved, result.score, result.max_score) == (True, 2, 2)


@pytest.mark.parametrize(
    ("entrypoint", "cause"),
    [
        ("nosuch --x", "nosuch: not found"),
        ("cd . && nosuch", "nosuch: not found"),
        ("./calc.py", "calc.py: Permission denied"),
        ("python nosuch.py", "can't open file .*nosuch.py"),
        ("python -m pytset -q", "No module named pytset"),
        ("sh nosuch.sh", "nosuch.sh"),
        ("bash -ec 'cd . && nosuch -x'", "nosuch: command not found"),
        *repeated(
            "grading",
            ("python9.9 calc.py", "python9.9"),
            ("python -m pytset.x -q", "No module named 'pytset'"),
            ("bash -e ./nosuch.sh", "nosuch.sh"),
            ("cd . && X=1 bash nosuch.sh", "nosuch.sh"),
            ("bash -c nosuch", "nosuch: command not found"),
        ),
    ],
)
def test_an_entrypoint_that_cannot_be_started_is_nobodys_failure(make: Make, entrypoint: str, cause: str) -> None:
    bench = make(REPOSITORY, entrypoint)
    with pytest.raises(TaskError, match=rf"cannot be started, even in the unchanged repository: .*{cause}.*; correct"):
        bench.grade({}, (), 1)
    if not re.search("&& | -c ", entrypoint):  # only a run tells what a shell would start
        with pytest.raises(TaskError, match=cause):
            bench.tests()


@pytest.mark.parametrize(
    ("entrypoint", "change"),
    [
        ("cd bin && ./run.sh", {"bin/run.sh": "#!/nonexistent\n"}),
        ("python -m calc", {"calc.py": None}),
        *repeated(
            "grading",
            ("cd bin && ./run.sh", {"bin/run.sh": None}),
            ("python calc.py", {"calc.py": None}),
        ),
    ],
)
def test_an_agent_that_keeps_it_from_starting_has_failed(
    make: Make, entrypoint: str, change: Mapping[str, str | None]
) -> None:
    bench = make({**REPOSITORY, "bin/run.sh": "#!/bin/sh\nexit 0\n"}, entrypoint)
    assert bench.tests() == ()
    result = bench.grade(change, (), 1)
    assert (result.resolved, result.score, result.grading) == (False, 0, "exit_status")


@pytest.mark.parametrize(
    ("entrypoint", "files"),
    [
        ("sh run.sh", {"run.sh": "nosuch\n"}),
        ("python -m calc.x", {"calc/__init__.py": "import nosuch\n", "calc/x.py": ""}),
        *repeated(
            "grading",
            ("python calc.py", {"calc.py": "import nosuch\n"}),
            ("python -m calc", {"calc.py": "import nosuch\n"}),
            ("bash run.sh build", {"run.sh": "bash build\n"}),
            ("bash -c 'bash run.sh'", {"run.sh": "nosuch\n"}),
        ),
        ("sh -c 'exit 127'", {}),
        ("sh run.sh", {"run.sh": "sh nosuch.sh\n"}),
    ],
)
def test_a_program_that_starts_and_fails_is_the_bug(make: Make, entrypoint: str, files: Mapping[str, str]) -> None:
    bench = make(files or {"x": ""}, entrypoint)
    assert bench.tests() == ()
    assert not bench.grade({}, (), 1).resolved


@pytest.mark.parametrize(
    ("named", "absent"),
    [
        ("tests.nosuch.TestIt", "'tests'"),
        *repeated("grading", ("nosuch.py nor_this", "'nosuch', 'nor_this'"), ("calc.nosuch", "'calc.nosuch'")),
    ],
)
def test_modules_of_unittest_that_are_not_there_are_nobodys_failure(make: Make, named: str, absent: str) -> None:
    entrypoint = f"python -m unittest -q {named}"
    said = f"`{entrypoint}` cannot be started, even in the unchanged repository: No module named {absent}"
    with pytest.raises(TaskError, match=re.escape(said)):
        make({"calc/__init__.py": ""}, entrypoint).tests()
    assert make({"test_calc.py": "import nosuch\n"}, "python -m unittest test_calc").tests() == ("test_calc.py",)
    others = make(REPOSITORY | {"test_calc.py": UNITTESTS}, f"{entrypoint} test_calc").tests()
    assert {*UNITTEST_IDS} < {*others}


@pytest.mark.parametrize("entrypoint", ["python -m unittest", *repeated("grading", ENTRYPOINT)])
def test_tests_of_which_none_can_be_imported_are_told(make: Make, entrypoint: str) -> None:
    importing = "import shop\n" + UNITTESTS
    bench = make({"test_a.py": importing, "test_b.py": importing}, entrypoint)
    told: list[str] = []
    with bench.session() as session:
        assert collect(session, entrypoint, 60, told.append) == ("test_a.py", "test_b.py")
    assert len(told) == 1
    assert told[0].startswith("no test file can be imported: ModuleNotFoundError: No module named 'shop' (is the")
    bench = make({"test_a.py": importing, "test_b.py": UNITTESTS, "calc.py": BROKEN}, entrypoint)
    with bench.session() as session:
        assert len(collect(session, entrypoint, 60, told.append)) == 3
    assert len(told) == 1


def test_tests_that_the_repository_marks_do_not_count(make: Make) -> None:
    marked = (
        TESTS + "\nimport pytest\n@pytest.mark.skip\ndef test_later(): pass\n@pytest.mark.xfail\ndef test_x(): 1/0\n"
    )
    bench = make({"calc.py": BROKEN, "test_calc.py": marked})
    assert bench.tests() == IDS
    assert bench.grade({"calc.py": FIXED}).resolved


def test_tests_that_unittest_s_decorators_mark_do_not_count_under_pytest_either(make: Make) -> None:
    marked = """
import unittest

class TestMore(unittest.TestCase):
    @unittest.skip("not here")
    def test_skipped(self): pass
    @unittest.skipUnless(False, "nor here")
    def test_unless(self): pass
    @unittest.expectedFailure
    def test_wrong(self): self.fail()
    def test_right(self): pass

@unittest.skip("nor any of these")
class TestNone(unittest.TestCase):
    def test_one(self): pass
"""
    bench = make({**REPOSITORY, "test_more.py": marked}, ENTRYPOINT)
    assert bench.tests() == (*IDS, "test_more.py::TestMore::test_right")


@pytest.mark.parametrize(
    ("skip", "entrypoint"),
    [
        ("self.skipTest('no network')", "python -m unittest -q"),
        *repeated(
            "grading",
            ("pytest.skip('no display')", ENTRYPOINT),
            ("pytest.importorskip('nothing_here')", ENTRYPOINT),
        ),
    ],
)
def test_a_test_that_skips_itself_anyway_keeps_nothing_from_being_resolved(
    make: Make, skip: str, entrypoint: str
) -> None:
    more = f"\nclass TestMore(unittest.TestCase):\n    def test_more(self): {skip}\n"
    more = f"\nimport pytest{more}" if "pytest" in skip else more
    bench = make({"calc.py": BROKEN, "test_calc.py": UNITTESTS + more}, entrypoint)
    ids = bench.tests()
    result = bench.grade({"calc.py": FIXED}, ids)
    assert (result.resolved, result.score, result.twins) == (True, 3, 2), result
    assert "skipped" in result.tests.values()
    result = bench.grade({}, ids)
    assert (result.resolved, result.score) == (False, 1)
    result = bench.grade({"calc.py": FIXED.replace("return a + b", "import unittest; raise unittest.SkipTest")}, ids)
    assert (result.resolved, result.score) == (False, 1), result


def test_a_test_that_skips_itself_anyway_is_worth_nothing_where_others_break(make: Make) -> None:
    tests = TESTS + "\nimport pytest\ndef test_more(): pytest.skip()\n"
    bench = make({"calc.py": BROKEN, "test_calc.py": tests}, ENTRYPOINT)
    bench.task = dataclasses.replace(bench.task, pass_to_pass=IDS[:1])
    result = bench.grade({"calc.py": FIXED.replace("2 * a", "3 * a")}, (IDS[1], "test_calc.py::test_more"))
    assert (result.resolved, result.score, result.broken) == (False, 0, IDS[:1]), result


@pytest.mark.grading
def test_tests_that_skip_themselves_anyway_are_worth_nothing_where_others_are_doubted(make: Make) -> None:
    skip = "\nimport pytest\n" + "".join(f"def test_{one}(): pytest.skip()\n" for one in ("more", "most", "yet"))
    bench = make({"calc.py": BROKEN, "test_calc.py": TESTS + skip}, ENTRYPOINT)
    cheat = "class Same(int):\n    __eq__ = lambda one, other: True\nadd = double = lambda *_: Same()\n"
    ids = (*IDS, *(f"test_calc.py::test_{one}" for one in ("more", "most", "yet")))
    result = bench.grade({"calc.py": cheat}, ids)
    assert (result.resolved, result.score, len(result.doubts)) == (False, 0, 2), result
    assert bench.grade({"calc.py": FIXED}, ids, twins="never").score == 5


@pytest.mark.parametrize("skips", [False, *repeated("grading", True)])
def test_a_test_that_the_task_names_is_never_skipped_anyway(make: Make, skips: bool) -> None:
    """That it is skipped may be the bug, and an id may stand for several tests."""
    tests = """
import calc, pytest
def test_double(): assert calc.double(3) == 6
@pytest.mark.parametrize("a", [1, 2])
def test_add(a):
    if calc.add(a, a) != 2 * a: pytest.skip("not there yet")
"""
    bench = make({"calc.py": BROKEN, "test_calc.py": tests}, ENTRYPOINT)
    bench.task = dataclasses.replace(bench.task, tests=IDS)
    code = BROKEN.replace("return a - b", "raise unittest.SkipTest") if skips else BROKEN
    assert not bench.grade({"calc.py": "import unittest\n" + code}, IDS).resolved
    assert bench.grade({"calc.py": FIXED}, IDS, twins="auto" if skips else "never").resolved


def test_what_passes_and_skips_without_the_change_shows_no_bug(make: Make) -> None:
    tests = "import calc, pytest\ndef test_double(): assert calc.double(3) == 6\ndef test_add(): pytest.skip()\n"
    result = make({"calc.py": BROKEN, "test_calc.py": tests}, ENTRYPOINT).grade({}, IDS)
    assert (result.resolved, result.score) == (False, 1)


def test_where_all_skip_themselves_nothing_is_resolved(make: Make) -> None:
    bench = make({"calc.py": BROKEN, "test_calc.py": "import pytest\ndef test_a(): pytest.skip()\n"}, ENTRYPOINT)
    result = bench.grade({"calc.py": FIXED}, ["test_calc.py::test_a"])
    assert (result.resolved, result.score) == (False, 0)


def test_names_that_speak_of_addresses_stay(make: Make) -> None:
    tests = (
        "import calc, pytest\n@pytest.mark.parametrize('a', [1, 2], ids=['jump at 0xdeadbeef', 'jump at 0xdecade'])\n"
    )
    tests += "def test_add(a): assert calc.add(a, a) == 2 * a\n"
    bench = make({"calc.py": BROKEN, "test_calc.py": tests}, ENTRYPOINT)
    assert bench.tests() == tuple(f"test_calc.py::test_add[jump at 0x{one}]" for one in ("deadbeef", "decade"))


@pytest.mark.parametrize(("twins", "asked"), [("never", None), *repeated("grading", ("auto", 2))])
def test_tests_that_are_named_by_addresses_are_the_same_in_each_run(make: Make, twins: When, asked: int | None) -> None:
    tests = """
import calc, pytest
class Case:
    def __init__(self, *numbers): self.numbers = numbers
@pytest.mark.parametrize("case", [Case(1, 2), Case(2, 3)], ids=repr)
def test_add(case):
    assert calc.add(*case.numbers) == sum(case.numbers)
"""
    bench = make({"calc.py": BROKEN, "test_calc.py": tests}, ENTRYPOINT)
    ids = bench.tests()
    assert ids == (
        "test_calc.py::test_add[<test_calc.Case object>]",
        "test_calc.py::test_add[<test_calc.Case object>]#2",
    )
    result = bench.grade({"calc.py": FIXED}, ids, twins=twins)
    assert (result.resolved, result.score, result.twins, result.doubts) == (True, 2, asked, {})


def test_hooks_of_several_conftests_are_the_tests_own(make: Make) -> None:
    hook = "def pytest_runtest_setup(item):\n    item.user_properties.append(('seen', 1))\n"
    more = {"conftest.py": hook, "a/conftest.py": hook, "b/conftest.py": hook}
    tests = {
        f"{name}/test_{name}.py": "import calc\ndef test_add():\n    assert calc.add(2, 3) == 5\n" for name in "ab"
    }
    bench = make({"calc.py": BROKEN, **more, **tests}, ENTRYPOINT)
    ids = ("a/test_a.py::test_add", "b/test_b.py::test_add")
    result = bench.grade({"calc.py": FIXED}, ids)
    assert (result.resolved, result.twins, result.reason) == (True, 2, "")


def test_unittest_runs_are_reported_too(make: Make) -> None:
    bench = unittest_bench(make)
    assert bench.tests() == UNITTEST_IDS
    assert bench.grade({}, UNITTEST_IDS).tests == {UNITTEST_IDS[0]: "failed", UNITTEST_IDS[1]: "passed"}
    result = bench.grade({"calc.py": FIXED}, UNITTEST_IDS)
    assert (result.resolved, result.score, result.grading) == (True, 2, "clean")


def test_other_entrypoints_are_graded_by_exit_status(make: Make) -> None:
    check = "grep -q 'a + b' calc.py && echo fine"
    bench = make({"calc.py": BROKEN, "check.sh": check}, "sh check.sh")
    assert bench.tests() == ()
    assert bench.grade({}, (), 1) == Grade(False, 0, 1, {}, "exit_status")
    assert bench.grade({"calc.py": FIXED}, (), 1) == Grade(True, 1, 1, {}, "exit_status")
    cheat = bench.grade({"check.sh": "exit 0"}, (), 1)
    assert (cheat.resolved, cheat.score, set(cheat.dropped)) == (False, 0, {"check.sh"})


def test_a_measurement_is_the_same_every_time(make: Make) -> None:
    slow = TESTS + "\nclass Thing: pass\ndef test_thing(tmp_path):\n    thing = Thing()\n    assert thing is tmp_path\n"
    bench = make({"calc.py": BROKEN, "test_calc.py": slow}, ENTRYPOINT.replace("-q", "--durations=3"))
    with bench.session() as session:
        first, second = (measure(session, bench.task.entrypoint, timeout=60) for _ in range(2))
    assert first.output == second.output
    assert first.tests == second.tests
    assert "Thing object at" not in first.output
    assert "rootdir" not in first.output
