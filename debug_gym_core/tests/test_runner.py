"""What the runner in the sandbox reports, and that it changes nothing for those who are run.

DEBUG_GYM_TEST_PYTHONS names interpreters to try, separated by colons; without it the one that runs the tests.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import has, interpreters, repeated

from debug_gym_core.grading.collect import collect
from debug_gym_core.grading.measure import measure
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_core.tasks.results import Measurement
from debug_gym_terminal_local import LocalTerminal

QUICK = "-p no:hypothesispytest -p no:pytest_cov"
"""Without plugins that we happen to have here: they take half a second to import."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Session]:
    session = Session.start(LocalTerminal(), SandboxSpec(run="test"))
    yield session
    session.close()


@pytest.fixture
def session(sandbox: Session) -> Session:
    for entry in sandbox.walk(depth=1):
        sandbox.remove(entry.path)
    return sandbox


@pytest.fixture(params=interpreters())
def python(request: pytest.FixtureRequest) -> str:
    return str(request.param)


Run = Callable[..., Measurement]


@pytest.fixture
def run(session: Session, python: str) -> Run:
    def run(entrypoint: str = f"python -m pytest -q {QUICK}", **files: str) -> Measurement:
        if "pytest" in entrypoint and not has(python, "pytest"):
            pytest.skip(f"{python} has no pytest")
        for name, text in files.items():
            session.write(name.replace("__", "/") + ".py", textwrap.dedent(text).encode())
        return measure(session, entrypoint, timeout=60, python=python)

    return run


ALL_OUTCOMES = """
    import unittest
    import pytest

    def test_passes(): pass
    def test_fails(): assert 1 + 1 == 3
    def test_raises(): {}["missing"]
    @pytest.mark.skip(reason="later")
    def test_skipped(): pass
    @pytest.mark.xfail
    def test_fails_as_expected(): assert False
    @pytest.mark.xfail
    def test_passes_unexpectedly(): pass
    @pytest.mark.xfail(strict=True)
    def test_must_fail(): pass
    @pytest.fixture
    def broken(): raise ValueError("two\\nlines")
    @pytest.fixture
    def leaky():
        yield
        raise OSError("not removed")
    def test_set_up(broken): pass
    def test_torn_down(leaky): pass
    class TestUnit(unittest.TestCase):
        def test_fails(self): self.assertEqual([1], [2])
        def test_passes(self): pass
    @pytest.mark.parametrize("number", [1, 2])
    class TestClass:
        def test_number(self, number): assert number == 1
"""


def test_every_outcome_is_reported(run: Run) -> None:
    result = run(test_all=ALL_OUTCOMES)
    assert {name.partition("::")[2]: outcome for name, outcome in result.outcomes.items()} == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_raises": "failed",
        "test_skipped": "skipped",
        "test_fails_as_expected": "xfailed",
        "test_passes_unexpectedly": "xpassed",
        "test_must_fail": "failed",
        "test_set_up": "error",
        "test_torn_down": "error",
        "TestUnit::test_fails": "failed",
        "TestUnit::test_passes": "passed",
        "TestClass::test_number[1]": "passed",
        "TestClass::test_number[2]": "failed",
    }
    assert (result.valid, result.reason, result.exit_status) == (True, "", 1)
    assert set(result.collected) == set(result.outcomes)
    messages = {test.id.partition("::")[2]: test.message for test in result.tests}
    assert messages["test_raises"] == "KeyError: 'missing'"
    assert messages["test_fails"] == "AssertionError: assert (1 + 1) == 3"
    assert messages["test_set_up"] == "ValueError: two lines"
    assert messages["test_torn_down"] == "OSError: not removed"
    assert messages["test_passes"] == ""


def test_unittest_outcomes_are_reported(run: Run) -> None:
    result = run(
        "python -m unittest -v",
        test_all="""
        import unittest

        class TestAll(unittest.TestCase):
            def test_passes(self): print("heard")
            def test_fails(self): self.assertEqual(1, 2)
            def test_raises(self): {}["missing"]
            @unittest.skip("later")
            def test_skipped(self): pass
            @unittest.expectedFailure
            def test_fails_as_expected(self): self.fail()
            @unittest.expectedFailure
            def test_must_fail(self): pass
            def test_parts(self):
                for number in range(3):
                    with self.subTest(number=number):
                        self.assertNotEqual(number, 1)

        class TestSetUp(unittest.TestCase):
            @classmethod
            def setUpClass(cls): raise OSError("no room")
            def test_never(self): pass
        """,
        test_import="import nothing_of_this_name",
    )
    assert {name.replace("test_all.TestAll.", ""): outcome for name, outcome in result.outcomes.items()} == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_raises": "error",
        "test_skipped": "skipped",
        "test_fails_as_expected": "xfailed",
        "test_must_fail": "failed",
        "test_parts": "failed",
        "setUpClass (test_all.TestSetUp)": "error",
        "test_import.py": "error",
    }
    assert (result.valid, result.exit_status) == (True, 1)
    assert "nothing_of_this_name" in next(test.message for test in result.tests if test.id == "test_import.py")
    assert "heard" in result.output
    assert "in <time>" in result.output


def test_a_failure_shows_the_repositorys_frames(run: Run) -> None:
    result = run(
        shop="""
        class Item:
            def __init__(self, price):
                self.price = price

        def total(items):
            import json
            result = 0
            for item in items:
                result += item.price / len(items[1:])
            return result
        """,
        test_shop="""
        import shop
        thing = object()

        def check(items):
            marker = thing
            return shop.total(items)

        def test_total():
            assert check([shop.Item(3)]) == 3
        """,
    )
    [failure] = result.failures
    assert failure.message == "ZeroDivisionError: division by zero"
    assert [(frame["file"], frame["line"], frame["function"]) for frame in failure.frames] == [
        ("test_shop.py", 10, "test_total"),
        ("test_shop.py", 7, "check"),
        ("shop.py", 10, "total"),
    ]
    assert failure.frames[1]["locals"] == {"items": "[<Item price=3>]", "marker": "<object object>"}
    assert failure.frames[2]["locals"] == {"items": "[<Item price=3>]", "result": "0", "item": "<Item price=3>"}


def test_values_are_bounded_whatever_they_are(run: Run) -> None:
    result = run(
        test_values="""
        import time

        class Slow:
            def __repr__(self):
                while True:
                    pass

        class Broken:
            def __repr__(self): raise SystemExit(3)

        class Liar:
            def __repr__(self): return 5

        def test_values():
            slow, broken, liar = Slow(), Broken(), Liar()
            many = list(range(10 ** 6))
            text = "x" * 10 ** 7
            number = 7 ** 100000
            nested = []
            nested.append(nested)
            surrogate = "\\ud800"
            assert False
        """
    )
    [failure] = result.failures
    values = failure.frames[-1]["locals"]
    assert isinstance(values, dict)
    assert (values["slow"], values["broken"], values["liar"]) == ("<Slow>", "<Broken>", "<Liar>")
    assert values["many"].endswith("1000000 in all]")
    assert all(len(value) <= 160 for value in values.values())
    assert values["nested"] == "[[[[...]]]]"
    assert result.seconds < 30


def test_deep_recursion_shows_its_ends(run: Run) -> None:
    result = run(test_deep="def down(number): return down(number + 1)\ndef test_deep(): down(0)\n")
    [failure] = result.failures
    assert len(failure.frames) == 12
    assert failure.frames[0]["function"] == "test_deep"
    assert failure.message.startswith("RecursionError: maximum recursion depth exceeded")


def test_the_cause_of_an_exception_is_named(run: Run) -> None:
    result = run(
        test_cause="""
        def test_cause():
            try:
                {}["key"]
            except KeyError as error:
                raise ValueError("no such row") from error
        """
    )
    assert result.failures[0].message == "ValueError: no such row (from KeyError: 'key')"


def test_a_file_that_cannot_be_collected_is_one_error(run: Run) -> None:
    result = run(test_bad="import nothing_of_this_name\n", test_good="def test_fine(): pass\n")
    [failure] = result.failures
    assert (failure.id, failure.outcome) == ("test_bad.py", "error")
    assert "nothing_of_this_name" in failure.message
    assert result.exit_status == 2
    assert result.valid
    assert result.collected == ("test_good.py::test_fine",)


def test_subtests_that_fail_fail_their_test(run: Run) -> None:
    result = run(
        test_parts="""
        import unittest
        class TestParts(unittest.TestCase):
            def test_parts(self):
                with self.subTest("first"):
                    self.assertEqual(1, 2)
                with self.subTest("second"):
                    pass
            def test_fine(self):
                with self.subTest("only"):
                    pass
        """
    )
    assert result.outcomes == {
        "test_parts.py::TestParts::test_parts": "failed",
        "test_parts.py::TestParts::test_fine": "passed",
    }
    assert result.valid


ENVIRONMENT_PROBE = """
import os, sys

def test_probe():
    print("argv", sys.argv)
    print("path", sys.path[0], [one for one in sys.path if "debug" in one])
    main = sys.modules["__main__"]
    print("main", sorted(name for name in vars(main) if name[:2] == "__" and name != "__annotations__"))
    print("main", main.__name__, main.__package__, main.__file__, main.__spec__.name)
    print("directory", os.getcwd(), sorted(os.listdir(".")))
    print("flags", sys.flags.optimize, sys.flags.dev_mode if hasattr(sys.flags, "dev_mode") else "")
    print("variables", sorted(os.environ))
    assert 0
"""


@pytest.mark.parametrize("options", ["", "-I", *repeated("grading", "-B -X dev", "-O")])
def test_the_tests_see_what_python_m_pytest_shows(run: Run, session: Session, python: str, options: str) -> None:
    arguments = f"-m pytest -s -v {QUICK} -p no:cacheprovider test_probe.py"
    entrypoint = f"python {options} {arguments}"
    ours = run(entrypoint, test_probe=ENVIRONMENT_PROBE)
    plain = session.run([python, *options.split(), *arguments.split()], timeout=60)
    theirs = [line for line in session.mask(plain.output).splitlines() if " in 0." not in line]
    missing = [line for line in ours.output.splitlines() if line not in theirs and "<time>" not in line]
    assert missing == []
    assert "directory /testbed ['" in ours.output


@pytest.mark.parametrize(
    "options", ["-v", "-s -q", "--setup-show -q", *repeated("grading", "-q", "--tb=short", "-x", "-rA")]
)
def test_the_output_is_the_same_as_without_us(run: Run, session: Session, python: str, options: str) -> None:
    from debug_gym_core.grading import masking

    text = (
        """
    import pytest

    @pytest.fixture(autouse=True)
    def noisy():
        print("set up")
        yield
        print("torn down")

    def setup_module(): print("module up")
    def teardown_module(): print("module down")
    """
        + ALL_OUTCOMES
    )
    ours = run(f"python -m pytest {options} {QUICK} -p no:cacheprovider", test_all=text)
    command = f"{python} -m pytest {options} {QUICK} -p no:cacheprovider"
    plain = session.run(command, timeout=60)
    assert ours.output == masking.mask(session.mask(plain.output))
    assert ours.exit_status == plain.exit_status


def test_nothing_is_left_in_the_workspace(run: Run, session: Session) -> None:
    run(f"python -m pytest -q {QUICK} -p no:cacheprovider -p no:benchmark", test_fine="def test_fine(): pass\n")
    assert [entry.path for entry in session.walk()] == ["test_fine.py"]


def test_fixtures_run_as_often_as_without_us(run: Run) -> None:
    result = run(
        test_count="""
        import pytest
        counts = []

        @pytest.fixture(autouse=True)
        def each(): counts.append("each")

        @pytest.fixture(autouse=True, scope="module")
        def once(): counts.append("once")

        def setup_function(function): counts.append(function.__name__)

        def test_first(): assert counts == ["once", "test_first", "each"] or counts == ["once", "each", "test_first"]
        def test_second(): assert len(counts) == 5
        """
    )
    assert result.outcomes == {"test_count.py::test_first": "passed", "test_count.py::test_second": "passed"}


def test_the_channel_and_its_nonce_are_out_of_reach(session: Session, python: str) -> None:
    if not has(python, "pytest"):
        pytest.skip(f"{python} has no pytest")
    probe = """
    import os, subprocess, sys

    NONCE = "a1b2c3d4" * 4

    def test_nonce_is_not_in_plain_sight():
        halves = NONCE[:16], NONCE[16:]
        places = [repr(dict(os.environ)), repr(sys.argv), repr(vars(sys.modules["__main__"]))]
        places.append(open("/proc/self/cmdline").read())
        for module in list(sys.modules.values()):
            if module is not sys.modules[__name__]:
                places += [value for value in list(vars(module).values()) if isinstance(value, str)]
        assert not [place for place in places if "".join(halves) in place]

    def test_children_do_not_have_the_channel():
        code = "import os, subprocess; os.system('ls -l /proc/%d/fd' % os.getpid())"
        shown = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, close_fds=False).stdout.decode()
        assert "socket" not in shown and "memfd" not in shown
    """
    session.write("test_reach.py", textwrap.dedent(probe).encode())
    entrypoint = f"python -m pytest -q {QUICK}"
    result = measure(session, entrypoint, timeout=60, python=python, nonce="a1b2c3d4" * 4)
    assert set(result.outcomes.values()) == {"passed"}, result.output


def test_plugins_and_fixtures_that_patch_for_a_while_do_no_harm(run: Run) -> None:
    result = run(
        conftest="""
        import _pytest.runner, pytest
        def pytest_configure(config):
            class Plugin:
                def pytest_runtest_setup(self, item): pass
            config.pluginmanager.register(Plugin())
        """,
        test_patch="""
        import builtins, sys, unittest, unittest.mock

        class TestPatches(unittest.TestCase):
            @classmethod
            def setUpClass(cls):
                cls.maxDiff = None
                cls.client = lambda self: None
            def test_open(self):
                with unittest.mock.patch("builtins.open"):
                    pass
                with unittest.mock.patch.object(builtins, "isinstance", isinstance):
                    pass

        def helper(): return 1

        def test_setattr(monkeypatch):
            monkeypatch.setattr(sys.modules[__name__], "helper", lambda: 2)
            assert helper() == 2
        """,
    )
    assert (result.valid, result.reason) == (True, "")
    assert set(result.outcomes.values()) == {"passed"}


def test_tests_that_run_pytest_themselves_do_no_harm(run: Run) -> None:
    result = run(
        conftest='pytest_plugins = ["pytester"]\n',
        test_inner="""
        def test_inner(request):
            tester = request.getfixturevalue("testdir")
            tester.makepyfile(test_other="def test_a(): pass\\ndef test_b(): assert 0")
            tester.inline_run("-q", "-p", "no:hypothesispytest").assertoutcome(passed=1, failed=1)
        """,
    )
    assert result.outcomes == {"test_inner.py::test_inner": "passed"}, result.output
    assert (result.valid, result.reason) == (True, "")


def test_xdist_is_kept_in_one_process(run: Run, python: str) -> None:
    if not has(python, "xdist"):
        pytest.skip(f"{python} has no pytest-xdist")
    result = run(f"python -m pytest -q -n 2 {QUICK}", test_all="def test_a(): pass\ndef test_b(): assert 0\n")
    assert result.outcomes == {"test_all.py::test_a": "passed", "test_all.py::test_b": "failed"}
    assert result.valid


@pytest.mark.parametrize(
    ("entrypoint", "status"),
    [
        (f"python -m pytest -q {QUICK} no_such_file.py", 4),
        (f"python -m pytest -q {QUICK} --no-such-option", 4),
        (f"python -m pytest -q {QUICK} -k nothing", 5),
    ],
)
def test_runs_without_tests_say_what_pytest_says(run: Run, entrypoint: str, status: int) -> None:
    result = run(entrypoint, test_fine="def test_fine(): pass\n")
    assert (result.tests, result.exit_status) == ((), status)


def test_a_missing_module_is_said_as_python_says_it(session: Session, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    result = measure(session, "python -m pytest", timeout=60, python=str(bare / "bin/python"))
    assert "No module named pytest" in result.output
    assert (result.exit_status, result.valid) == (1, False)


def test_collecting_runs_nothing(session: Session, python: str) -> None:
    if not has(python, "pytest"):
        pytest.skip(f"{python} has no pytest")
    text = "def test_a(): open('ran', 'w')\nclass TestB:\n    def test_c(self): open('ran', 'w')\n"
    session.write("test_all.py", text.encode())
    ids = collect(session, f"{python} -m pytest -q {QUICK}", 60)
    assert ids == ("test_all.py::test_a", "test_all.py::TestB::test_c")
    assert session.stat("ran") is None


def test_a_channel_that_is_closed_is_no_report(run: Run) -> None:
    result = run(shop="import os\nos.closerange(3, 1100)\n", test_shop="import shop\ndef test_a(): pass\n")
    assert not result.valid
    assert result.tests == ()


def test_many_tests_are_found_without_many_looks_for_garbage(session: Session, python: str) -> None:
    if not has(python, "pytest"):
        pytest.skip(f"{python} has no pytest")
    counts = """
import gc
import pytest
looks = []
gc.callbacks.append(lambda phase, info: looks.append(phase))
kept = [[] for _ in range(50_000)]
gc.callbacks.clear()
@pytest.mark.parametrize("looks", [len(looks) // 2])
def test_looks(looks): pass
"""
    session.write("test_it.py", counts.encode())
    assert collect(session, f"{python} -m pytest -q {QUICK}", 60) == ("test_it.py::test_looks[0]",)


@pytest.mark.parametrize(
    "name", ["json", "pytest", "_pytest__runner", *repeated("grading", "marshal", "fcntl", "re", "pluggy")]
)
def test_files_of_the_workspace_do_not_shadow_the_machinery(run: Run, name: str) -> None:
    shadow = "print('9 passed')\nimport os\nos._exit(0)\n"
    result = run(**{name: shadow}, test_fine="def test_a(): pass\ndef test_b(): assert False\n")
    assert result.outcomes == {"test_fine.py::test_a": "passed", "test_fine.py::test_b": "failed"}
    assert result.valid


@pytest.mark.parametrize("options", ["", "--showlocals", *repeated("grading", "--tb=short", "--tb=long --showlocals")])
def test_ignored_files_are_not_in_tracebacks(session: Session, python: str, options: str) -> None:
    if not has(python, "pytest"):
        pytest.skip(f"{python} has no pytest")
    session.write(
        "secret.py", b"def check(value):\n    hidden = value + 4700\n    if value:\n        raise KeyError('no')\n"
    )
    session.write("test_it.py", b"from secret import check\ndef test_it():\n    mine = 11\n    check(mine)\n")
    entrypoint = f"python -m pytest -q {QUICK} {options}"
    shown, hidden = (
        measure(session, entrypoint, timeout=60, python=python, ignored=ignored).output
        for ignored in ([], ["secret.py"])
    )
    assert "raise KeyError" in shown and "raise KeyError" not in hidden
    assert "KeyError: 'no'" in hidden and "check(mine)" in hidden and "secret.py:4: " in hidden
    if "showlocals" in options:
        assert "4711" in shown and "mine" in hidden
    assert "4711" not in hidden and "def check" not in hidden and "value = 11" not in hidden


def test_what_ends_a_warm_run_is_not_run_again(session: Session) -> None:
    """A fork that ends before it says anything is started again; before the repository's code runs, it does."""
    session.write("conftest.py", b"import os\nprint(file=open('ran', 'a'))\nos._exit(3)\n")
    found = measure(session, f"python -m pytest {QUICK}", timeout=60, python=sys.executable, warm=True)
    assert session.warm_starts and found.exit_status == 3 and not found.valid
    assert session.read("ran") == b"\n"
