"""Threads: where stops and steps are in them."""

from __future__ import annotations

from typing import Any

import pytest
from debugged_programs import dedent

THREADS = """\
    import threading

    ready = threading.Barrier(4)
    go = threading.Event()

    def deeper(n):
        ready.wait()
        go.wait()

    def work(n):
        deeper(n)

    def idle():
        x = 1
        ready.wait()
        go.wait()

    threads = [threading.Thread(target=work, args=(n,), name="worker-%d" % n) for n in range(2)]
    threads.append(threading.Thread(target=idle, name="idle"))
    for thread in threads:
        thread.start()
    ready.wait()
    x = 1
    go.set()
    for thread in threads:
        thread.join()
"""


@pytest.mark.parametrize("command", ["threads", "th"])
def test_all_threads_are_listed(debug: Any, command: str) -> None:
    program = debug("python app.py", dedent(THREADS))
    program.do("b 23")
    program.do("c")
    lines = program.do(command)["out"].splitlines()
    assert lines[0] == "* MainThread: <module> app.py:23"
    assert [line.split(":")[0] for line in lines[1:]] == ["  idle", "  worker-0", "  worker-1"]
    assert lines[2].partition(": deeper app.py:")[2].endswith(" < work app.py:11")
    assert "asterisk" in program.do("help threads")["out"]
    assert program.do("c")["status"] == 0


def test_threads_are_listed_while_the_main_one_joins(debug: Any) -> None:
    program = debug("python app.py", dedent(THREADS))
    program.do("b 14")
    assert program.do("c")["stop"]["thread"] == "idle"
    listed = program.do("threads")["out"]
    assert listed.startswith("* idle: idle app.py:14\n") and "  MainThread: <module> app.py:2" in listed
    assert program.do("n")["stop"]["line"] == 15
    assert program.do("c")["status"] == 0


def test_the_list_of_threads_is_bounded(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import threading, time
            go, ready = threading.Event(), threading.Semaphore(0)
            def work(n):
                if n:
                    work(n - 1)
                else:
                    ready.release()
                    go.wait()
            for n in range(60):
                threading.Thread(target=work, args=(10,), daemon=True, name="t%02d" % n).start()
            for n in range(60):
                ready.acquire()
            x = 1
            go.set()
            """
        ),
    )
    program.do("b 13")
    program.do("c")
    lines = program.do("threads")["out"].splitlines()
    assert len(lines) == 31 and lines[-1] == "  [31 more]"
    assert lines[1].endswith(" < [6 more]")


def test_a_thread_that_ends_while_another_is_stopped(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import threading
            go, gone = threading.Event(), threading.Event()
            def short():
                go.wait()
            def work():
                x = 1
                go.set()
                other.join()
                y = 2
            other = threading.Thread(target=short, name="short")
            worker = threading.Thread(target=work, name="worker")
            other.start()
            worker.start()
            worker.join()
            """
        ),
    )
    program.do("b 6")
    program.do("c")
    assert "short" in program.do("threads")["out"]
    for line in (7, 8, 9):
        assert program.do("n")["stop"]["line"] == line
    assert "short" not in program.do("threads")["out"]
    assert program.do("c")["status"] == 0


def test_a_daemon_thread_at_the_end(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import threading
            started = threading.Event()
            def work():
                n = 0
                while True:
                    n += 1
                    started.set()
            threading.Thread(target=work, daemon=True).start()
            started.wait()
            """
        ),
    )
    program.do("b 6, n == 3")
    assert program.do("c")["stop"]["thread"].startswith("Thread-1")
    program.do("cl 1")
    ended = program.do("c")
    assert (ended["t"], ended["status"]) == ("exit", 0)
    assert program.receive()["status"] == 0


def test_a_thread_without_a_name(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import _thread, pdb
            done = _thread.allocate_lock()
            done.acquire()
            def work():
                pdb.set_trace()
                done.release()
            _thread.start_new_thread(work, ())
            done.acquire()
            """
        ),
    )
    stop = program.do("c")["stop"]
    assert (stop["function"], stop["thread"]) == ("work", "a thread without a name")
    assert program.do("threads")["out"].startswith("* ")
    assert program.do("n")["stop"]["line"] == 6
    assert program.do("c")["status"] == 0


def test_a_step_comes_before_the_stops_of_others_that_wait(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import threading
            together = threading.Barrier(4)
            def work():
                together.wait()
                x = 1
                y = 2
                z = 3
            threads = [threading.Thread(target=work, name="worker-%d" % n) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            """
        ),
    )
    program.do("b 5")
    names = set()
    for _ in range(4):
        stop = program.do("c")["stop"]
        assert (stop["line"], stop["breakpoint"]) == (5, 1)
        for line in (6, 7):
            stepped = program.do("n")["stop"]
            assert (stepped["line"], stepped["thread"]) == (line, stop["thread"])
        names.add(stop["thread"])
    assert len(names) == 4
    assert program.do("c")["status"] == 0


def test_a_thread_parses_while_breakpoints_are_compiled_in(debug: Any) -> None:
    """Python 3.11 gives up with a SystemError when two threads parse at once."""
    code = """\
        import ast, gc, threading, time
        gc.callbacks.append(lambda phase, info: time.sleep(0))
        gc.set_threshold(50)
        ended = threading.Event()
        def parse():
            while not ended.wait(0.005):
                try:
                    ast.parse("x = [1, (2, 3)]")
                except SystemError:
                    pass
        threading.Thread(target=parse).start()
        try:
            for n in range(20):
                __import__("part%d" % n)
        finally:
            ended.set()
        """
    part = "".join(f"def f{n}(a, b=[1, 2, (3, 4)]):\n    return a + b * {n}\n" for n in range(100)) + "x = 1\n"
    program = debug("python app.py", {**dedent(code), **{f"part{n}.py": part for n in range(20)}})
    for n in range(20):
        program.do(f"b part{n}.py:201")
    for n in range(20):
        stop = program.do("c")["stop"]
        assert (stop["file"], stop["line"]) == (f"part{n}.py", 201)
    assert program.do("c")["status"] == 0


# -- near the recursion limit, which all threads have in common

DEEP = """\
    import os, sys, threading

    def depth():
        frame, found = sys._getframe(1), 0
        while frame is not None:
            frame, found = frame.f_back, found + 1
        return found

    def down(n):
        if n:
            return down(n - 1)
        bottom = n
        return bottom

    def work():
        go.wait()
        print("reached", down(limit - depth() - 18))

    go = threading.Event()
    limit = sys.getrecursionlimit()
    threads = [threading.Thread(target=work, name=name) for name in "AB"]
"""


def test_a_thread_that_waits_near_the_recursion_limit_while_another_stops_has_its_stop(debug: Any) -> None:
    main = """\
    threads[0].start()
    x = 1
    y = 2
    threads[0].join()
    """
    program = debug("python app.py", dedent(DEEP + main))
    program.do("b 12")
    program.do("b 23")
    assert program.do("c")["stop"]["line"] == 23
    program.do("p go.set()")
    while "down app.py:12" not in program.do("threads")["out"]:
        pass
    assert program.do("n")["stop"]["line"] == 24
    stop = program.do("c")["stop"]
    assert (stop["line"], stop["thread"], stop["locals"]["changed"]) == (12, "A", {"n": "0"})
    assert program.do("p list(map(abs, [n, n]))")["out"] == "[0, 0]\n"
    assert program.do("n")["stop"]["line"] == 13
    assert program.do("c")["status"] == 0
    assert b"reached 0" in program.printed


@pytest.mark.parametrize("commands", [["c"], ["n", "c"]], ids="+".join)
def test_two_threads_stop_near_the_recursion_limit(debug: Any, commands: list[str]) -> None:
    main = """\
    for thread in threads:
        thread.start()
    go.set()
    """
    program = debug("python app.py", dedent(DEEP + main))
    program.do("b 12")
    stops = [program.do(command)["stop"] for command in ["c", *commands]]
    assert [stop["line"] for stop in stops] == ([12, 12] if commands == ["c"] else [12, 13, 12])
    assert {stop["thread"] for stop in stops} == {"A", "B"}
    assert program.do("p list(map(abs, [n, n]))")["out"] == "[0, 0]\n"
    assert program.do("c")["status"] == 0
    assert program.printed.count(b"reached 0") == 2


def test_a_child_that_is_forked_while_a_thread_stops_near_the_recursion_limit_has_the_usual_limit(debug: Any) -> None:
    main = """\
    go.set()
    threads[0].start()
    while sys.getrecursionlimit() == limit:
        pass
    if os.fork() == 0:
        print("usual", sys.getrecursionlimit() == limit, flush=True)
        os._exit(0)
    os.wait()
    """
    program = debug("python app.py", dedent(DEEP + main))
    program.do("b 12")
    assert program.do("c")["stop"]["line"] == 12
    while b"usual" not in program.printed:
        assert program.do("p 1")["out"] == "1\n"
    assert b"usual True" in program.printed
    assert program.do("c")["status"] == 0
