"""Programs that do what confuses debuggers."""

from __future__ import annotations

import os
import textwrap
from typing import Any

import pytest
from debugged_programs import dedent
from support import repeated

from debug_gym_tool_pdb.render import stop_text


def test_prompts_in_output_are_only_output(debug: Any) -> None:
    program = debug("python app.py", dedent("print('(Pdb) ')\nprint('> x.py(1)f()')\nx = 1\nprint('(Pdb) ', end='')\n"))
    program.do("b 3")
    stopped = program.do("c")
    assert stopped["stop"]["line"] == 3
    assert program.printed == b"(Pdb) \r\n> x.py(1)f()\r\n"
    assert program.do("c")["t"] == "exit"


def test_input_reads_the_terminal(debug: Any) -> None:
    program = debug("python app.py", dedent("name = input('name? ')\nprint('hello', name)\n"))
    os.write(program.master, b"you\n")
    assert program.do("c")["status"] == 0
    assert b"hello you" in program.printed


def test_flood_of_output(debug: Any) -> None:
    program = debug("python app.py", dedent("for _ in range(20000):\n    print('x' * 100)\ndone = 1\n"))
    program.do("b 3")
    assert program.do("c")["stop"]["line"] == 3
    assert len(program.printed) == 20000 * 102


def test_flood_of_pdb_output_is_bounded(debug: Any) -> None:
    program = debug("python app.py", dedent("x = 1\ny = 2\n"))
    out = program.do("!for i in range(100000): print(i)")["out"]
    assert len(out) < 100_000
    assert out.startswith("0\n1\n") and out.endswith("99999\n") and "characters left out" in out


@pytest.mark.parametrize(
    "breaking",
    [
        "sys.stdout = sys.stderr = sys.stdin = None",
        "sys.stdout = io.StringIO()",
        "os.close(0); os.close(1); os.close(2)",
        "os.closerange(0, 256)",
        *repeated(
            "debugger",
            "sys.stdout.close()",
            "signal.signal(signal.SIGINT, signal.SIG_IGN)",
            "sys.setrecursionlimit(120)",
            "json.dumps = json.loads = os.read = os.write = os.getpid = None",
            "os.chdir('/')",
            "os.environ.clear()",
        ),
    ],
)
def test_broken_surroundings(debug: Any, breaking: str) -> None:
    source = f"import io, json, os, signal, sys\ndef f():\n    x = 1\n    return x\n{breaking}\nf()\n"
    program = debug("python app.py", {"app.py": source})
    program.do("b 3")
    stopped = program.do("c")
    assert stopped["stop"]["line"] == 3
    assert program.do("p x")["failed"]
    assert program.do("n")["stop"]["locals"]["changed"] == {"x": "1"}
    assert program.do("c")["t"] in ("exit", "dead")


@pytest.mark.parametrize(
    "breaking",
    [
        "sys.stdout.close()",
        "sys.stdout = None",
        *repeated("debugger", "del sys.stdout", "sys.__stdout__ = sys.stderr = None"),
    ],
)
def test_output_that_is_taken_away_at_the_prompt(debug: Any, breaking: str) -> None:
    """While a statement runs, it is pdb's own."""
    program = debug("python app.py", {"app.py": "import sys\nx = 1\nx = 2\n"})
    program.do("n")
    assert not program.do(breaking)["failed"]
    assert program.do("p x + 1 if 'x' in globals() else 0")["out"].strip() == "0"
    assert program.do("n")["stop"]["line"] == 3
    assert program.do("p x")["out"].strip() == "1"


def test_threads_stop_one_at_a_time_and_are_named(debug: Any) -> None:
    source = """\
    import threading

    def work(n):
        found = n * 2
        return found

    threads = [threading.Thread(target=work, args=(n,), name="worker-%d" % n) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("done")
    """
    program = debug("python app.py", dedent(source))
    program.do("b 5")
    names = []
    for _ in range(3):
        stop = program.do("c")["stop"]
        assert stop["line"] == 5
        names.append(stop["thread"])
        assert program.do("p found")["out"] == f"{int(stop['thread'][-1]) * 2}\n"
    assert sorted(names) == ["worker-0", "worker-1", "worker-2"]
    assert program.do("c")["status"] == 0


def test_stepping_in_a_thread_leaves_others_running(debug: Any) -> None:
    source = """\
    import threading

    go, went = threading.Event(), threading.Event()

    def other():
        go.wait()
        went.set()

    def work():
        x = 1
        go.set()
        went.wait()
        y = 2

    threads = [threading.Thread(target=f, name=f.__name__) for f in (other, work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    """
    program = debug("python app.py", dedent(source))
    program.do("b 10")
    program.do("c")
    for line in (11, 12, 13):
        stop = program.do("n")["stop"]
        assert (stop["line"], stop["thread"]) == (line, "work")


def test_a_thread_that_stepped_runs_freely_while_another_steps(debug: Any) -> None:
    source = """\
    import threading, time

    done = []

    def work():
        x = 1
        time.sleep(0.05)
        y = 2
        time.sleep(0.05)
        done.append(1)

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    while not done:
        time.sleep(0.001)
    """
    program = debug("python app.py", dedent(source))
    program.do("b 6")
    for _ in range(4):
        program.do("n")
    while program.do("n")["stop"]["thread"] == "MainThread":
        pass
    stops = [program.do("s")["stop"] for _ in range(4)]
    assert [(stop["thread"], stop["line"]) for stop in stops] == [("worker", line) for line in (7, 8, 9, 10)]


def test_breakpoint_set_while_the_main_thread_was_not_traced(debug: Any) -> None:
    source = """\
    import threading, time

    ready = threading.Event()

    def work():
        breakpoint_()
        ready.set()

    def late():
        return 1

    import pdb
    breakpoint_ = pdb.set_trace
    thread = threading.Thread(target=work)
    thread.start()
    while not ready.is_set():
        time.sleep(0.001)
    late()
    """
    program = debug("python app.py", dedent(source))
    assert program.do("c")["stop"]["function"] == "work"
    program.do("b 10")
    stop = program.do("c")["stop"]
    assert (stop["line"], stop["thread"]) == (10, "MainThread")


def test_exception_in_a_thread_stops(debug: Any, python: str) -> None:
    source = """\
    import threading

    def work():
        value = 3
        raise ValueError("in thread")

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    thread.join()
    """
    program = debug("python app.py", dedent(source))
    answer = program.do("c")
    if program.hello["python"] < [3, 8]:
        assert answer["t"] == "exit"
        return
    assert answer["stop"]["reason"] == "exception" and answer["stop"]["thread"] == "worker"
    assert program.do("p value")["out"] == "3\n"
    assert program.do("c")["status"] == 0


def test_asyncio_steps_over_await(debug: Any) -> None:
    source = """\
    import asyncio

    async def child(n):
        await asyncio.sleep(0.001)
        return n * 10

    async def main():
        first = await child(1)
        second = await asyncio.gather(child(2), child(3))
        print(first, second)

    asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())
    """
    program = debug("python app.py", dedent(source))
    program.do("b 8")
    program.do("c")
    assert program.do("n")["stop"]["line"] == 9
    assert program.do("p first")["out"] == "10\n"
    assert program.do("n")["stop"]["line"] == 10
    assert program.do("p second")["out"] == "[20, 30]\n"


def test_generator_is_stepped_through(debug: Any) -> None:
    source = """\
    def numbers():
        for n in range(3):
            doubled = n * 2
            yield doubled
            after = True

    for number in numbers():
        print(number)
    """
    program = debug("python app.py", dedent(source))
    program.do("b 4")
    program.do("c")
    assert program.do("n")["stop"]["line"] == 5
    assert program.do("n")["stop"]["line"] == 2


def test_uncaught_exception_stops_post_mortem(debug: Any) -> None:
    source = """\
    def inner(x):
        half = x / 2
        raise KeyError("lost")

    def outer():
        try:
            inner(4)
        except KeyError as error:
            raise RuntimeError("outer failed") from error

    outer()
    """
    program = debug("python app.py", dedent(source))
    stopped = program.do("c")
    stop = stopped["stop"]
    assert stop["reason"] == "exception"
    assert (stop["file"], stop["line"], stop["function"]) == ("app.py", 9, "outer")
    assert [(one["type"], one["message"], one["line"]) for one in stop["exceptions"]] == [
        ("RuntimeError", "outer failed", 9),
        ("KeyError", "'lost'", 3),
    ]
    assert b"RuntimeError: outer failed" in program.printed and b"debug-gym" not in program.printed
    ended = program.do("c")
    assert (ended["t"], ended["status"], ended["exception"]["type"]) == ("exit", 1, "RuntimeError")


def test_an_exception_that_was_being_handled_is_told_from_a_cause(debug: Any) -> None:
    source = """\
    def lose():
        raise KeyError("lost")

    def change():
        try:
            lose()
        except KeyError as error:
            raise OSError("changed") from error

    try:
        change()
    except OSError:
        raise RuntimeError("failed")
    """
    stop = debug("python app.py", dedent(source)).do("c")["stop"]
    said = stop_text({"reason": "exception", "exceptions": stop["exceptions"]})
    assert said.splitlines()[1:] == [
        "exception: RuntimeError: failed",
        "raised while handling: OSError: changed (at app.py:8 in change)",
        "caused by: KeyError: 'lost' (at app.py:2 in lose)",
    ]


def test_exit_handlers_and_threads_run_before_the_end_is_told(debug: Any) -> None:
    source = """\
    import atexit, threading, time

    def late():
        time.sleep(0.05)
        x = 1
        print("late")

    atexit.register(lambda: print("handler"))
    threading.Thread(target=late).start()
    """
    program = debug("python app.py", dedent(source))
    program.do("b 5")
    assert program.do("c")["stop"]["function"] == "late"
    assert program.do("c")["t"] == "exit"
    assert b"late\r\nhandler" in program.printed


def test_breakpoint_function_and_pythonbreakpoint(debug: Any, python: str) -> None:
    program = debug("PYTHONBREAKPOINT=0 python app.py", dedent("import sys\nx = 1\nsys.breakpointhook()\ny = 2\n"))
    if program.hello["python"] < [3, 7]:
        pytest.skip("no breakpoint() before 3.7")
    stop = program.do("c")["stop"]
    assert (stop["reason"], stop["line"]) == ("breakpoint", 3)
    assert program.do("n")["stop"]["line"] == 4


def test_quit_is_told_first_and_ends_the_program(debug: Any) -> None:
    program = debug("python app.py", dedent("try:\n    x = 1\n    y = 2\nfinally:\n    print('cleaned')\n"))
    program.do("b 3")
    program.do("c")
    assert program.do("q")["t"] == "quit"
    assert program.receive()["t"] == "exit"
    assert program.receive()["t"] == "dead"
    assert b"cleaned" in program.printed


CLEARED = "its variables were deleted, or cleared by the test runner (assertRaises); `trace`, or a breakpoint at the"


def test_variables_that_assert_raises_has_cleared_are_said_to_be(debug: Any) -> None:
    source = """\
    import unittest

    def none():
        {}["a"]

    def f(key):
        value = 1
        none()

    def deletes(key):
        try:
            none()
        except ValueError as key:
            pass

    class TestIt(unittest.TestCase):
        def test_it(self):
            with self.assertRaises(ValueError):
                f("a")

        def test_that_it_might_have_deleted(self):
            with self.assertRaises(ValueError):
                deletes("a")
    """
    program = debug("python -m unittest -q test_it", {"test_it.py": textwrap.dedent(source)})
    program.do("b test_it.py:8")
    assert program.do("c")["stop"]["locals"]["changed"] == {"key": "'a'", "value": "1"}
    for function in ("f", "deletes"):
        stop = program.do("c")["stop"]
        assert (stop["function"], stop.get("note")) == ("none", None)  # which has none
        assert f"){function}()" in program.do("u")["out"]
        assert program.do("args")["out"].startswith(CLEARED)
        assert program.do("info locals")["out"].startswith(CLEARED)
        program.do("u")
        assert program.do("args")["out"].startswith("self = ")


@pytest.mark.parametrize(
    "deletes",
    ["    del a, more\n", "    def g():\n        nonlocal a, more\n        del a, more\n    g(); del g\n"],
    ids=["itself", "a function in it"],
)
def test_variables_that_a_function_has_deleted_are_said_to_be(debug: Any, deletes: str) -> None:
    program = debug("python app.py", {"app.py": f"def f(a, *more):\n{deletes}    raise KeyError\nf(1)\n"})
    assert program.do("c")["stop"]["note"].startswith(CLEARED)
    assert program.do("a")["out"].startswith(CLEARED)


def test_unittest_stops_at_each_failing_test(debug: Any) -> None:
    source = """\
    import unittest

    class TestIt(unittest.TestCase):
        def test_fails(self):
            value = 1
            self.assertEqual(value, 2)

        def test_errors(self):
            raise KeyError("k")

        def test_passes(self):
            pass

    if __name__ == "__main__":
        unittest.main()
    """
    for entrypoint in ("python -m unittest -q test_it", "python test_it.py"):
        program = debug(entrypoint, {"test_it.py": textwrap.dedent(source)})
        first = program.do("c")["stop"]
        assert first["reason"] == "test failed" and first["test"].endswith("TestIt.test_errors")
        second = program.do("c")["stop"]
        assert second["test"].endswith("TestIt.test_fails")
        assert (second["file"], second["line"]) == ("test_it.py", 6)
        assert program.do("p value")["out"] == "1\n"
        assert program.do("c")["status"] == 1


def test_stepping_through_to_the_end(debug: Any) -> None:
    source = "def f(n):\n    return [i for i in range(n)]\n\nfor n in range(3):\n    f(n)\nprint('end')\n"
    for command in ("n", "s"):
        program = debug("python app.py", {"app.py": source})
        files = set()
        for _ in range(200):
            answer = program.do(command)
            if answer["t"] == "exit":
                break
            files.add(answer["stop"]["file"])
        assert answer["t"] == "exit" and answer["status"] == 0
        assert "app.py" in files and not any("debug-gym" in name for name in files)


def test_the_end_waits_for_a_daemon_thread_that_talks(debug: Any) -> None:
    source = """\
    import threading, time

    started = threading.Event()

    def work():
        x = 1
        started.set()
        y = 2

    threading.Thread(target=work, daemon=True).start()
    started.wait()
    time.sleep(0.5)  # it ends while the thread talks, not before
    """
    program = debug("python app.py", dedent(source))
    program.do("b 8")
    assert program.do("c")["stop"]["function"] == "work"
    with pytest.raises(TimeoutError):
        program.receive(1.0)
    assert program.do("p x")["out"] == "1\n"
    assert program.do("c")["t"] == "exit"
