"""How calls are left, and what changes where nothing is shown: with each interpreter the same."""

from __future__ import annotations

import textwrap

import pytest
from following import Follow
from support import handful, version_of


def code(text: str) -> str:
    return textwrap.dedent(text)


LEFT = {
    "finally": (
        """\
        import os
        def f(n):
            try:
                raise ValueError("the real one")
            finally:
                try: os.remove("/nonexistent")
                except OSError: n = 2
        try: f(1)
        except ValueError: pass
        """,
        "raised ValueError: the real one",
    ),
    "raised again": (
        """\
        def g():
            raise KeyError("k")
        def f():
            try:
                raise ValueError("first")
            except ValueError:
                try:
                    g()
                except KeyError:
                    pass
                raise
        try: f()
        except ValueError: pass
        """,
        "raised ValueError: first",
    ),
    "called within a handler": (
        """\
        def f():
            try:
                x = 1
            finally:
                y = 2
        try:
            raise ValueError("outer")
        except ValueError:
            f()
        """,
        "returned None",
    ),
    "a loop's end within": (
        """\
        def f():
            try:
                raise ValueError("it")
            finally:
                for x in iter([1]): pass
        try: f()
        except ValueError: pass
        """,
        "raised ValueError: it",
    ),
    "stop iteration": (
        """\
        def f():
            return next(iter(()))
        try: f()
        except StopIteration: pass
        """,
        "raised StopIteration",
    ),
    "another in a handler": (
        """\
        def f():
            try:
                raise ValueError("first")
            except ValueError:
                raise KeyError("second")
        try: f()
        except KeyError: pass
        """,
        "raised KeyError: 'second'",
    ),
    "a context manager": (
        """\
        from contextlib import contextmanager
        @contextmanager
        def f(n):
            with open("/dev/null") as file:
                yield file
        try:
            with f(1): raise ValueError("boom")
        except ValueError: pass
        """,
        "raised ValueError: boom after 1 yield",
    ),
    "an awaiting context manager": (
        """\
        import asyncio
        class Lock:
            async def __aenter__(self): return self
            async def __aexit__(self, *error): await asyncio.sleep(0)
        async def work():
            await asyncio.sleep(0)
            raise ValueError("late")
        async def f():
            async with Lock():
                await work()
        try: asyncio.get_event_loop_policy().new_event_loop().run_until_complete(f())
        except ValueError: pass
        """,
        "raised ValueError: late",
    ),
    "a generator that yields nothing": (
        """\
        from contextlib import suppress
        def f():
            with suppress(KeyError):
                raise KeyError
            x = yield
            yield
        list(f())
        """,
        "returned None after 2 yields",
    ),
}


@pytest.mark.parametrize(
    "name", handful("debugger", list(LEFT), "finally", "raised again", "called within a handler", "a loop's end within")
)
def test_a_call_is_left_by_what_leaves_it(name: str, trace: Follow) -> None:
    text, last = LEFT[name]
    found = trace(code(text))
    assert found.lines[-1].startswith(last), found.text
    assert not found.last["problem"] and found.status == 0


def test_what_an_exception_passes_over_is_not_told(trace: Follow) -> None:
    found = trace(
        code(
            """\
            class Lock:
                def __enter__(self): return self
                def __exit__(self, *error): pass
            def a(): raise ValueError(1)
            def f(acc):
                with Lock():
                    a()
                    acc["done"] = True
                return acc
            try: f({})
            except ValueError: pass
            """
        )
    )
    assert "acc[" not in found.text and found.lines[-1] == "raised ValueError: 1 (line 7)"


TIMEOUT = """\
import signal
class Timeout(Exception): pass
def limited(function):
    def ring(*_): raise Timeout("late")
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try: return function()
    except Timeout: return "timed out"
    finally: signal.alarm(0)
def f():
    seen = {}
    while True:
        for n in range(40):
            seen[n] = seen.get(n, 0) + 1
print(limited(f))
"""


def test_a_time_limit_of_the_program_s_ends_the_call(trace: Follow, python: str) -> None:
    found = trace(TIMEOUT, may_fail=True)
    assert "timed out" in found.printed and found.status == 0
    if version_of(python) >= (3, 12):
        assert found.lines[-1].startswith("raised Timeout: late"), found.lines[-3:]
    else:
        told = found.last["problem"] + found.lines[-1]
        assert "raised Timeout: late" in told or "signal handler (Timeout)" in told or "not seen" in told, told


def test_what_is_in_slots_is_told(trace: Follow) -> None:
    found = trace(
        code(
            """\
            class P:
                __slots__ = ("x", "y")
                def __init__(self, x): self.x = x
                def f(self, dx):
                    self.x += dx
                    self.y = 1
            P(1).f(2)
            """
        ),
        "P.f",
    )
    beside = [line.split("| ")[1] for line in found.lines if "| " in line]
    assert beside == ["self.x = 3", "self.y = 1"]


def test_a_change_where_nothing_is_shown_is_told(trace: Follow) -> None:
    found = trace(
        code(
            """\
            def f(n):
                dp = [[0] * n for _ in range(n)]
                dp[2][7] = 1
                d = {i: {j: 0 for j in range(n)} for i in range(n)}
                d[3][8] = 4
                s = "a" * 400
                s = s[:200] + "b" + s[201:]
                t = set(range(100))
                t.add(1000)
                t.discard(50)
                t.add(50)
                n = n
            f(10)
            """
        )
    )
    beside = {int(line.split()[0]): line.partition("| ")[2] for line in found.lines if line[:2].strip().isdigit()}
    unseen = " (changed where it is not shown)"
    assert beside[3].startswith("dp[2] = [0, 0") and beside[3].endswith(unseen)
    assert beside[5].startswith("d[3] = {0: 0") and beside[5].endswith(unseen)
    assert beside[7].startswith("s = 'aaa") and beside[7].endswith(unseen)
    assert all(beside[line].startswith("t = {0, 1") for line in (9, 10, 11)) and beside[12] == ""


def test_a_value_whose_repr_is_quick_is_asked_as_often_as_it_is_shown(trace: Follow) -> None:
    found = trace(
        code(
            """\
            class P:
                def __init__(self, n): self.n = n
                def __repr__(self): return "P(%d)" % self.n
            def f(n):
                for i in range(n):
                    p = P(i)
                    ps = [p]
                return ps
            f(4000)
            """
        )
    )
    assert found.lines[-1] == "returned [P(3999)] (line 8)"
    assert "p = P(3998)" in found.text and "<P>" not in found.text


def test_a_match_is_told_without_its_cases(trace: Follow, python: str) -> None:
    if version_of(python) < (3, 10):
        pytest.skip("match came with Python 3.10")
    text = (
        "def f(x):\n    match x:\n        case {'k': k}:\n            return k\n        case _:\n            pass\n\n"
    )
    lines = trace(f"{text}f({{'k': 1}})\n").lines
    assert [line.partition("  ")[2].strip() for line in lines if line[:1] == "2"] == ["match x:"]


def test_mocks_are_the_same_in_each_run(trace: Follow) -> None:
    found = trace("from unittest import mock\ndef f():\n    m = mock.Mock(name='it')\n    return m.get(1)\nf()\n")
    assert "| m = <Mock name='it'>" in found.text and found.lines[-1] == "returned <Mock name='it.get()'> (line 4)"


SUBTESTS = """\
import unittest
class S(unittest.TestCase):
    def test_sub(self):
        for i in range(4):
            with self.subTest(i=i):
                self.assertEqual(i * 2, 0)
        self.after = 1
"""


def test_a_test_goes_on_after_its_first_subtest(trace_tests: Follow) -> None:
    pytest_quietly = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest -q -p no:cacheprovider test_a.py"
    found = trace_tests("", "test_a.py:S.test_sub", entrypoint=pytest_quietly, files={"test_a.py": SUBTESTS})
    told = [one for one in found.messages if one["t"] == "test"]
    assert [(one["test"], one["outcome"]) for one in told] == [("test_a.py::S::test_sub", "failed")], found.text
    assert sum(found.last["tests"].values()) == 1 and not found.last["problem"]


def test_a_test_that_fails_as_expected_is_said_to(trace_tests: Follow) -> None:
    tests = "import pytest\nfrom app import f\n@pytest.mark.xfail\ndef test_it():\n    assert f() == 2\n"
    pytest_quietly = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest -q -p no:cacheprovider test_a.py"
    found = trace_tests("def f():\n    return 1\n", entrypoint=pytest_quietly, files={"test_a.py": tests})
    assert [one["outcome"] for one in found.messages if one["t"] == "test"] == ["xfailed"]
    assert found.last["tests"] == {"xfailed": 1}


@pytest.mark.parametrize("flags", ["-W error", "-X warn_default_encoding -W error"])
def test_warnings_that_are_errors_do_not_come_of_the_tracing(trace: Follow, flags: str) -> None:
    program = """\
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from other import g
        def f(n):
            '''Doc f.'''
            n += sum(one for one in [n, 2])
            return g(n)
        f(1)
        """
    other = "def g(n):\n    'Doc \\d.'\n    return -n\n"
    followed = trace(code(program), entrypoint=f"python {flags} app.py", files={"other.py": other}, depth=1)
    assert followed.status == 0 and followed.printed == ""
    assert "return -n" in followed.text
    assert followed.lines[-1].endswith("returned -4 (line 8)")


def test_a_warning_of_the_program_s_source_is_given_once(trace: Follow) -> None:
    program = "def f():\n    'Doc \\d.'\nf()\n"
    followed = trace(program, entrypoint="python -W always app.py")
    assert followed.printed.count("Warning") == 1


@pytest.mark.parametrize("number", [0, 3, 4])
def test_tools_that_the_program_monitors_itself_with_have_the_numbers_they_take(
    trace: Follow, python: str, number: int
) -> None:
    if version_of(python) < (3, 12):
        pytest.skip("sys.monitoring came with Python 3.12")
    program = f"""\
        import sys
        seen, tools = [], sys.monitoring
        for one in range(6):
            tools.free_tool_id(one)
        tools.use_tool_id({number}, "mine")
        tools.register_callback({number}, tools.events.LINE, lambda code, line: seen.append(line))
        def f():
            x = 1
            return x
        tools.set_local_events({number}, f.__code__, tools.events.LINE)
        f()
        tools.free_tool_id({number})
        print("seen", seen)
        """
    followed = trace(code(program), "app.py:f")
    assert followed.status == 0 and followed.printed == "seen [8, 9]\n"
    assert followed.lines[-1].endswith("returned 1 (line 9)")
