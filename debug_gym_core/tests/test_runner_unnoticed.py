"""That the runner in the sandbox changes nothing for those who are run.

DEBUG_GYM_TEST_PYTHONS names interpreters to try, separated by colons; without it the one that runs the tests.
"""

from __future__ import annotations

import textwrap

import pytest
from reported_tests import ALL_OUTCOMES, QUICK, RunTests
from support import has, repeated

from debug_gym_core.grading.collect import collect
from debug_gym_core.grading.measure import measure
from debug_gym_core.sandbox.session import Session

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


@pytest.mark.parametrize("options", ["", *repeated("grading", "-I", "-B -X dev", "-O")])
def test_the_tests_see_what_python_m_pytest_shows(
    run_tests: RunTests, local_session: Session, python: str, options: str
) -> None:
    arguments = f"-m pytest -s -v {QUICK} -p no:cacheprovider test_probe.py"
    entrypoint = f"python {options} {arguments}"
    ours = run_tests(entrypoint, test_probe=ENVIRONMENT_PROBE)
    plain = local_session.run([python, *options.split(), *arguments.split()], timeout=60)
    theirs = [line for line in local_session.mask(plain.output).splitlines() if " in 0." not in line]
    missing = [line for line in ours.output.splitlines() if line not in theirs and "<time>" not in line]
    assert missing == []
    assert "directory /testbed ['" in ours.output


@pytest.mark.parametrize(
    "options", ["-v", "--setup-show -q", *repeated("grading", "-s -q", "-q", "--tb=short", "-x", "-rA")]
)
def test_the_output_is_the_same_as_without_us(
    run_tests: RunTests, local_session: Session, python: str, options: str
) -> None:
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
    ours = run_tests(f"python -m pytest {options} {QUICK} -p no:cacheprovider", test_all=text)
    command = f"{python} -m pytest {options} {QUICK} -p no:cacheprovider"
    plain = local_session.run(command, timeout=60)
    assert ours.output == masking.mask(local_session.mask(plain.output))
    assert ours.exit_status == plain.exit_status


def test_nothing_is_left_in_the_workspace(run_tests: RunTests, local_session: Session) -> None:
    run_tests(f"python -m pytest -q {QUICK} -p no:cacheprovider -p no:benchmark", test_fine="def test_fine(): pass\n")
    assert [entry.path for entry in local_session.walk()] == ["test_fine.py"]


def test_fixtures_run_as_often_as_without_us(run_tests: RunTests) -> None:
    result = run_tests(
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


def test_the_channel_and_its_nonce_are_out_of_reach(local_session: Session, python: str) -> None:
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
    local_session.write("test_reach.py", textwrap.dedent(probe).encode())
    entrypoint = f"python -m pytest -q {QUICK}"
    result = measure(local_session, entrypoint, timeout=60, python=python, nonce="a1b2c3d4" * 4)
    assert set(result.outcomes.values()) == {"passed"}, result.output


def test_plugins_and_fixtures_that_patch_for_a_while_do_no_harm(run_tests: RunTests) -> None:
    result = run_tests(
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


@pytest.mark.parametrize("options", ["-OO", *repeated("grading", "-O", "-X no_debug_ranges")])
def test_where_python_compiles_otherwise_all_is_whose_it_was(run_tests: RunTests, options: str) -> None:
    result = run_tests(
        f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python {options} -m pytest -q",
        conftest='''
        import sys, types
        class Module(types.ModuleType): pass
        sys.modules[__name__].__class__ = Module
        pytest_plugins = "plug,other"
        def pytest_runtest_setup(item):
            """It is compiled without this, and with what pytest makes of the next line."""
            assert not hasattr(item, "seen")
            item.seen = 1
        ''',
        plug="""
        import sys, types
        class Module(types.ModuleType): pass
        sys.modules[__name__].__class__ = Module
        def pytest_runtest_call(item):
            "As that one."
            assert item.seen
            item.seen += 1
        """,
        other="def pytest_runtest_call(item): item.seen += 1\n",
        test_it="def test_it(request):\n    if request.node.seen != 3: raise ValueError\n",
    )
    assert (result.valid, result.reason, list(result.outcomes.values())) == (True, "", ["passed"]), result.output


def test_plugins_that_a_conftest_names_may_take_part_however_it_knows_them(run_tests: RunTests) -> None:
    result = run_tests(
        conftest="import known\npytest_plugins = [one + 'in' for one in known.NAMES]\n",
        known="NAMES = ['plug']\n",
        plugin="""
        pytest_plugins = 'other'
        class Plugin:
            def pytest_runtest_setup(self, item): item.seen = [1]
        def pytest_configure(config): config.pluginmanager.register(Plugin())
        def pytest_runtest_call(item): item.seen.append(2)
        """,
        other="def pytest_runtest_logreport(report): pass\n",
        test_it="def test_it(request): assert request.node.seen == [1, 2]\n",
    )
    assert (result.valid, result.reason) == (True, ""), result.output


def test_tests_that_take_modules_away_and_make_methods_do_no_harm(run_tests: RunTests) -> None:
    result = run_tests(
        test_it="""
        import sys, pytest
        from unittest import mock

        @pytest.fixture(autouse=True, scope="session")
        def gone():
            with mock.patch.dict(sys.modules, {"subprocess": None, "json": None, "conftest": None}):
                yield

        class Part: pass
        class Lazy:
            def __new__(cls):
                made = {}
                exec("def __init__(self): self.x = 0", globals(), made)  # as dataclass does
                cls.__init__ = made["__init__"]
                return object.__new__(cls)

        def test_more():
            global Part
            class Part: pass
            assert Lazy().x == 0

        def test_it(): assert sys.modules["subprocess"] is None

        def test_mocks(monkeypatch):
            monkeypatch.setitem(sys.modules, "math", mock.MagicMock())
            with mock.patch.dict(sys.modules, {"posixpath": mock.Mock()}):
                assert isinstance(sys.modules["posixpath"], mock.Mock)
        """
    )
    assert (result.valid, result.reason) == (True, ""), result.output
    assert list(result.outcomes.values()) == ["passed"] * 3, result.output


def test_tests_that_run_pytest_themselves_do_no_harm(run_tests: RunTests) -> None:
    result = run_tests(
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


def test_xdist_is_kept_in_one_process(run_tests: RunTests, python: str) -> None:
    if not has(python, "xdist"):
        pytest.skip(f"{python} has no pytest-xdist")
    result = run_tests(f"python -m pytest -q -n 2 {QUICK}", test_all="def test_a(): pass\ndef test_b(): assert 0\n")
    assert result.outcomes == {"test_all.py::test_a": "passed", "test_all.py::test_b": "failed"}
    assert result.valid


def test_many_tests_are_found_without_many_looks_for_garbage(local_session: Session, python: str) -> None:
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
    local_session.write("test_it.py", counts.encode())
    assert collect(local_session, f"{python} -m pytest -q {QUICK}", 60) == ("test_it.py::test_looks[0]",)


@pytest.mark.parametrize(
    "name", ["json", "_pytest__runner", *repeated("grading", "pytest", "marshal", "fcntl", "re", "pluggy")]
)
def test_files_of_the_workspace_do_not_shadow_the_machinery(run_tests: RunTests, name: str) -> None:
    shadow = "print('9 passed')\nimport os\nos._exit(0)\n"
    result = run_tests(**{name: shadow}, test_fine="def test_a(): pass\ndef test_b(): assert False\n")
    assert result.outcomes == {"test_fine.py::test_a": "passed", "test_fine.py::test_b": "failed"}
    assert result.valid
