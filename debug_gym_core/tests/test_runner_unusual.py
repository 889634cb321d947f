"""Rare programs under the runner: odd values, timers of their own, libraries in the repository, parts replaced."""

from __future__ import annotations

import textwrap

import pytest
from reported_tests import RunTests

from debug_gym_core.errors import TaskError
from debug_gym_core.grading.collect import collect
from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.sample import ENTRYPOINT


def test_a_timer_of_the_program_keeps_running(run: RunTests) -> None:
    result = run(
        test_it="""
        import signal, threading

        class Thing:
            def __repr__(self): return "the thing"

        def in_thread(thing, found):
            try:
                assert not thing
            except AssertionError as error:
                found.append(error)

        def test_timed():
            thing = Thing()
            signal.setitimer(signal.ITIMER_REAL, 3600)
            assert not thing

        def test_later():
            assert 3000 < signal.getitimer(signal.ITIMER_REAL)[0] <= 3600

        def test_its_handler():
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, lambda *_: None)
            thing = Thing()
            assert not thing

        def test_handler_is_kept():
            assert callable(signal.getsignal(signal.SIGALRM))
        """
    )
    assert [test.id.partition("::")[2] for test in result.failures] == ["test_timed", "test_its_handler"]
    for failure in result.failures:
        assert failure.frames[-1]["locals"] == {"thing": "the thing"}
    assert result.valid


def test_frames_of_libraries_in_the_repository_are_left_out(run: RunTests) -> None:
    result = run(
        **{
            "env__lib__python3.11__site-packages__library": "def call(function): return function()\n",
            "test_it": """
            import os, sys
            sys.path.append(os.path.join(os.getcwd(), "env/lib/python3.11/site-packages"))
            import library

            def fails(): raise KeyError("k")
            def test_it(): library.call(fails)
            """,
        }
    )
    [failure] = result.failures
    assert [(frame["file"], frame["function"]) for frame in failure.frames] == [
        ("test_it.py", "test_it"),
        ("test_it.py", "fails"),
    ]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import _pytest.runner as r\nr.call_and_report = object()", "_pytest.runner.call_and_report was replaced"),
        (
            "import _pytest.runner as r\nspace = {'__name__': 'pytest', '__file__': '/usr/lib/x.py'}\n"
            "exec('def f(*a, **k): pass', space)\nr.call_and_report = space['f']",
            "_pytest.runner.call_and_report was replaced",
        ),
        (
            "import unittest\nclass Base: pass\nclass Other(unittest.TestCase): pass\n"
            "import test_it\ntest_it.TestIt.__bases__ = (Other,)",
            "the bases of ",
        ),
        ("import unittest\nunittest.TestCase.fail.__defaults__ = ('x',)", "the code of unittest.case.TestCase.fail"),
    ],
)
def test_what_decides_on_results_is_not_replaced(run: RunTests, code: str, said: str) -> None:
    files = {
        "shop": "def buy():\n" + textwrap.indent(code, "    ") + "\n",
        "test_it": """
        import unittest
        import shop

        class TestIt(unittest.TestCase):
            def test_it(self): shop.buy()
        """,
    }
    result = run(**files)
    assert result.tampered and not result.valid
    assert said in result.reason


def test_values_that_do_not_like_to_be_asked(run: RunTests) -> None:
    result = run(
        shop="""
        class Proxy(object):
            def __getattribute__(self, name):
                raise RuntimeError("working outside of the application")
            __class__ = property(lambda self: self.nothing)
        current = Proxy()
        class Meta(type):
            __hash__ = None
        class Odd(metaclass=Meta):
            pass
        """,
        test_it="""
        from shop import Odd, current
        class Own(metaclass=type(Odd)): pass
        def test_it(): pass
        """,
    )
    assert (result.outcomes, result.reason) == ({"test_it.py::test_it": "passed"}, "")


def test_classes_that_others_complete(run: RunTests) -> None:
    """As typing does with the class that implements a protocol, attrs with itself, and a reload with all."""
    result = run(
        shop="""
        from typing import Protocol
        class Buyer(Protocol):
            def buy(self) -> int: ...
        def resolve(kind):
            kind.__resolved__ = kind
        """,
        test_it="""
        import importlib, sys
        import shop
        class Fake(shop.Buyer):
            def buy(self): return 1
        def test_it():
            assert Fake().buy() == 1
            shop.resolve(Fake)
        def test_later():
            importlib.reload(sys.modules[__name__])
        """,
    )
    assert set(result.outcomes.values()) == {"passed"}
    assert result.reason == ""


def test_functions_that_others_write_when_they_are_called(run: RunTests) -> None:
    result = run(
        app="""
        import types
        waiting = []
        def lazily(function):
            waiting.append(types.FunctionType(first.__code__, globals(), function.__name__))
            waiting[-1].__module__ = function.__module__
            return waiting[-1]
        def first(*arguments):
            for one in waiting: one.__code__ = later.__code__
            return len(arguments)
        def later(*arguments): return len(arguments)
        """,
        test_it="""
        import app
        @app.lazily
        def count(*arguments): pass
        class TestIt:
            @app.lazily
            def helper(*arguments): pass
            def test_it(self): assert count(1, 2) == 2 and self.helper() == 1
        """,
    )
    assert (result.outcomes, result.reason) == ({"test_it.py::TestIt::test_it": "passed"}, "")


def test_conditions_that_cannot_be_evaluated_count(local_session: Session) -> None:
    local_session.write(
        "test_it.py",
        b"import pytest\n@pytest.mark.skipif('no such thing')\ndef test_it(): pass\n"
        b"@pytest.mark.skipif('True', reason='never')\ndef test_skipped(): pass\n",
    )
    assert collect(local_session, ENTRYPOINT, timeout=60) == ("test_it.py::test_it",)


def test_unittest_modules_that_cannot_be_imported_count(local_session: Session) -> None:
    local_session.write("test_broken.py", b"import nosuch\n")
    local_session.write(
        "test_it.py", b"import unittest\nclass TestIt(unittest.TestCase):\n    def test_it(self): raise SystemExit(3)\n"
    )
    found = collect(local_session, "python -m unittest", timeout=60)
    assert set(found) == {"test_broken.py", "test_it.TestIt.test_it"}


def test_where_unittest_finds_nothing_pytest_may(local_session: Session) -> None:
    local_session.write("test_it.py", b"def test_it(): pass\n")
    with pytest.raises(TaskError, match=r"unittest finds no TestCase there; .* need `python -m pytest`$"):
        collect(local_session, "python -m unittest -q test_it", timeout=60)


def test_a_test_that_removes_the_working_directory(run: RunTests) -> None:
    result = run(
        "python -m pytest -q",
        test_it="""
        import os, shutil, tempfile

        def test_removes():
            directory = tempfile.mkdtemp()
            os.chdir(directory)
            shutil.rmtree(directory)

        def test_after():
            pass

        def test_fails():
            assert False
        """,
    )
    outcomes = {name.rpartition("::")[2]: outcome for name, outcome in result.outcomes.items()}
    assert outcomes == {"test_removes": "passed", "test_after": "passed", "test_fails": "failed"}
    assert not result.reason
