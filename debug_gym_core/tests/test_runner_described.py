"""What the runner tells of a failure's variables: those of odd objects, in a copy of the process or without one."""

from __future__ import annotations

import textwrap

import pytest
from reported_tests import RunTests

from debug_gym_core.grading.measure import measure
from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.sample import ENTRYPOINT


def test_values_of_many_kinds(run: RunTests) -> None:
    result = run(
        test_it="""
        class Names(list): pass
        class Empty: pass

        def test_it():
            names = Names(range(20000))
            data = b"x" * 10 ** 6
            table = {number: [number] for number in range(100)}
            kinds = (frozenset([1]), set(), {}, (1,), "")
            deep = [{"a": [{"b": [1]}]}]
            empty = Empty()
            assert False

        def test_many():
            for number in range(30):
                exec("variable_{} = {}".format(number, number))
            a = b = c = d = e = f = g = h = i = j = k = l = m = n = o = p = q = r = s = t = u = v = w = 1
            assert False
        """
    )
    first, second = result.failures
    values = first.frames[-1]["locals"]
    assert isinstance(values, dict)
    assert values["names"] == "<Names of 20000 items>"
    assert values["data"].startswith("b'xxx") and len(values["data"]) <= 160
    assert values["table"].endswith("... 100 in all}")
    assert values["kinds"] == "(frozenset({1}), set(), {}, (1,), '')"
    assert values["deep"] == "[{'a': [{...}]}]"
    assert values["empty"] == "<test_it.Empty object>"
    many = second.frames[-1]["locals"]
    assert isinstance(many, dict)
    assert many["..."] == "more" and len(many) == 21


def test_a_proxy_that_cannot_be_evaluated_costs_no_message(run: RunTests) -> None:
    result = run(
        test_it="""
        class Proxy:
            __class__ = property(lambda self: 1 / 0)

        def test_it():
            total = 1
            user = Proxy()
            raise KeyError("the real error")
        """,
    )
    [failure] = result.failures
    assert failure.message == "KeyError: 'the real error'"
    assert failure.frames[-1]["locals"]["total"] == "1" and "Proxy" in failure.frames[-1]["locals"]["user"]


def test_a_grade_asks_no_object_what_it_looks_like(local_session: Session) -> None:
    """What is asked may remember it, or end the program."""
    app = """
    import os
    asked = []
    class Query:
        def __repr__(self):
            asked.append(self)
            os._exit(3)
    """
    tests = """
    import app
    def test_fails():
        rows = app.Query()
        assert 1 == 2
    def test_passes(): assert app.asked == []
    """
    local_session.write("app.py", textwrap.dedent(app).encode())
    local_session.write("test_it.py", textwrap.dedent(tests).encode())
    result = measure(local_session, f"{ENTRYPOINT} test_it.py", timeout=60)
    assert [test.outcome for test in result.tests] == ["failed", "passed"]


ASKED = """
    import os

    asked = []

    class Query:
        def __repr__(self):
            asked.append(self)
            return "Query of {}".format(len(asked))

    class Deadly:
        def __repr__(self): os._exit(3)
"""


def test_what_an_object_does_when_it_is_asked_is_not_seen_by_the_tests(run: RunTests) -> None:
    result = run(
        app=ASKED,
        test_it="""
        import app, signal

        def test_fails():
            signal.signal(signal.SIGCHLD, lambda *about: app.asked.append("a child ended"))
            rows = app.Query()
            assert 1 == 2

        def test_passes(): assert app.asked == []
        """,
    )
    assert [test.outcome for test in result.tests] == ["failed", "passed"]
    assert result.failures[0].frames[-1]["locals"] == {"rows": "Query of 1"}


def test_an_object_that_ends_the_program_when_it_is_asked_costs_the_variables_only(run: RunTests) -> None:
    result = run(
        app=ASKED,
        test_it="""
        import app

        def test_fails():
            number, rows = 1, app.Deadly()
            assert number == 2

        def test_passes(): pass
        """,
    )
    assert [test.outcome for test in result.tests] == ["failed", "passed"] and result.valid
    assert [(frame["file"], frame["line"], frame["locals"]) for frame in result.failures[0].frames] == [
        ("test_it.py", 6, {"...": "not described: ended the process"})
    ]


def test_numbers_of_threads_are_not_told(run: RunTests) -> None:
    result = run(
        test_it="""
        import threading

        def test_fails():
            one = threading.Thread(target=print, name="one", daemon=True)
            one.start()
            one.join()
            assert one == 2
        """,
    )
    assert result.failures[0].frames[-1]["locals"] == {"one": "<Thread(one, stopped daemon)>"}


def test_beside_threads_there_is_no_copy(run: RunTests) -> None:
    """What another thread holds would be held for ever in it: the objects are asked in the process itself."""
    result = run(
        app=ASKED,
        test_it="""
        import threading
        import app

        ended = threading.Event()
        thread = threading.Thread(target=ended.wait)

        def test_fails():
            thread.start()
            rows = app.Query()
            assert 1 == 2

        def test_later():
            ended.set()
            thread.join()
            assert len(app.asked) == 1
        """,
    )
    assert [test.outcome for test in result.tests] == ["failed", "passed"]
    assert result.failures[0].frames[-1]["locals"] == {"rows": "Query of 1"}


def test_threads_that_are_not_of_python_do_not_prevent_a_copy(run: RunTests) -> None:
    """As numpy's: Python warns of them from 3.12 on, which is no failure of the tests."""
    result = run(
        ENTRYPOINT + " -W error",
        app=ASKED,
        test_it="""
        import ctypes, os
        import app

        def test_fails():
            system, number = ctypes.CDLL(None), ctypes.c_ulong()
            assert system.pthread_create(ctypes.byref(number), None, system.pause, None) == 0
            assert len(os.listdir("/proc/self/task")) == 2
            del system, number
            rows = app.Query()
            assert 1 == 2

        def test_later(): assert app.asked == []
        """,
    )
    assert [test.outcome for test in result.tests] == ["failed", "passed"]
    assert result.failures[0].frames[-1]["locals"] == {"rows": "Query of 1"}


def test_signals_that_arrive_meanwhile_are_the_programs_afterwards(run: RunTests) -> None:
    result = run(
        test_it="""
        import os, signal

        handled = []

        class Calls:
            def __repr__(self):
                os.kill(os.getpid(), signal.SIGUSR1)
                os.kill(os.getppid(), signal.SIGUSR1)
                return "called, {}".format(len(handled))

        def test_fails():
            signal.signal(signal.SIGUSR1, lambda number, frame: handled.append(number))
            one = Calls()
            assert 1 == 2

        def test_later(): assert handled == [signal.SIGUSR1]
        """,
    )
    assert [test.outcome for test in result.tests] == ["failed", "passed"]
    assert result.failures[0].frames[-1]["locals"] == {"one": "called, 0"}


ENDLESS = """
    import signal, time

    class Endless:
        def __repr__(self):
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
            time.sleep(1000)
"""


@pytest.mark.faults
def test_a_copy_that_does_not_end_costs_the_variables_only(run: RunTests) -> None:
    result = run(
        app=ENDLESS,
        test_it="""
        import app

        def test_fails():
            one = app.Endless()
            assert 1 == 2
        """,
    )
    assert [(frame["line"], frame["locals"]) for frame in result.failures[0].frames] == [
        (6, {"...": "not described: took more than 2 s"})
    ]


@pytest.mark.grading
def test_a_run_is_held_up_for_so_long_only(run: RunTests) -> None:
    result = run(
        app=ENDLESS,
        test_it="""
        import app, pytest

        @pytest.mark.parametrize("number", range(10))
        def test_fails(number):
            one = app.Endless()
            assert 1 == 2
        """,
    )
    assert [len(test.frames) for test in result.failures] == [1] * 8 + [0] * 2


ODD_NAMESPACE = """
    class Space(dict):
        def items(self): raise LookupError("not yet")

    class Meta(type):
        @classmethod
        def __prepare__(cls, name, bases): return Space()

    def fail():
        class Odd(metaclass=Meta):
            raise KeyError("the real error")
"""


def test_what_keeps_variables_from_being_described_is_told_in_their_place(run: RunTests) -> None:
    result = run(app=ODD_NAMESPACE, test_it="import app\ndef test_it(): app.fail()\n")
    [failure] = result.failures
    assert failure.message == "KeyError: 'the real error'"
    assert [(frame["function"], frame["locals"]) for frame in failure.frames] == [
        ("test_it", {}),
        ("fail", {}),
        ("Odd", {"...": "not described: LookupError"}),
    ]


def test_what_keeps_frames_from_being_told_is_told(run: RunTests) -> None:
    result = run(
        app=ODD_NAMESPACE,
        test_it="""
        import threading
        import app
        ended = threading.Event()
        threading.Thread(target=ended.wait).start()
        def test_it(): app.fail()
        def test_later(): ended.set()
        """,
    )
    [failure] = result.failures
    assert failure.message == "KeyError: 'the real error' (where it was raised cannot be told: LookupError)"
    assert failure.frames == ()
