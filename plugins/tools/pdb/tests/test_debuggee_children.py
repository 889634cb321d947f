"""Forked and spawned children: which of them stop, and what becomes of their breakpoints."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from debugged_programs import dedent
from support import handful, repeated

FORK = """\
    import os

    def f(who):
        here = who
        return who

    pid = os.fork()
    if pid == 0:
        f("child")
        os._exit(3)
    print("status", os.waitpid(pid, 0)[1] >> 8)
    f("parent")
    print("end")
"""


def test_a_breakpoint_in_a_forked_child_stops_there(debug: Any) -> None:
    program = debug("python app.py", dedent(FORK))
    program.do("b 5")
    stop = program.do("c")["stop"]
    assert (stop["line"], stop["process"], stop["breakpoint"]) == (5, "child 1", 1)
    assert program.do("p who")["out"] == "'child'\n"
    assert program.do("n")["stop"]["reason"] == "return"
    stop = program.do("c")["stop"]
    assert stop["line"] == 5 and "process" not in stop
    assert program.do("p who")["out"] == "'parent'\n"
    assert program.do("c")["status"] == 0
    assert b"status 3\r\nend" in program.printed


def test_a_step_over_a_fork_stays_in_the_parent(debug: Any) -> None:
    program = debug("python app.py", dedent(FORK))
    program.do("b 7")
    program.do("c")
    for line in (8, 11, 12):
        stop = program.do("n")["stop"]
        assert stop["line"] == line and "process" not in stop
    assert program.do("c")["status"] == 0


def test_children_of_children_have_names(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import os
            def child(do):
                pid = os.fork()
                if pid == 0:
                    do()
                    os._exit(0)
                os.waitpid(pid, 0)
            def stop():
                x = 1
            child(stop)
            child(lambda: child(stop))
            """
        ),
    )
    program.do("b 9")
    assert [program.do("c")["stop"]["process"] for _ in range(2)] == ["child 1", "child 2.1"]
    assert program.do("c")["status"] == 0


POOL = """\
    import concurrent.futures, multiprocessing, sys

    def square(x):
        found = x * x
        return found

    def pool():
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return pool.map(square, [1, 2, 3])

    def executor():
        context = multiprocessing.get_context("fork")
        options = {"mp_context": context} if sys.version_info >= (3, 7) else {}
        with concurrent.futures.ProcessPoolExecutor(2, **options) as pool:
            return list(pool.map(square, [1, 2, 3]))

    def process():
        queue = multiprocessing.get_context("fork").SimpleQueue()
        found = []
        for n in (1, 2, 3):
            worker = multiprocessing.get_context("fork").Process(target=lambda: queue.put(square(n)), name="squarer")
            worker.start()
            found.append(queue.get())
            worker.join()
        return found
"""


@pytest.mark.parametrize("how", ["pool", *repeated("debugger", "executor", "process")])
def test_a_breakpoint_in_a_worker_stops_there(debug: Any, how: str) -> None:
    program = debug("python app.py", dedent(POOL + f"    print({how}())\n"))
    program.do("b 5")
    found = []
    for _ in range(3):
        stop = program.do("c")["stop"]
        assert (stop["line"], stop["function"]) == (5, "square")
        assert stop["process"].startswith({"pool": "ForkPoolWorker-", "process": "squarer"}.get(how, ""))
        assert stop["process"] != "MainProcess" and stop["process"]
        found.append(int(program.do("p found")["out"]))
        assert program.do("n")["stop"]["process"] == stop["process"]
    assert sorted(found) == [1, 4, 9]
    assert program.do("c")["status"] == 0
    assert b"[1, 4, 9]" in program.printed


def test_a_temporary_breakpoint_stops_in_one_worker_only(debug: Any) -> None:
    program = debug("python app.py", dedent(POOL + "    print(pool())\n"))
    program.do("tbreak 5")
    assert program.do("c")["stop"]["breakpoint"] == 1
    assert program.breakpoints["list"] == []
    assert program.do("c")["t"] == "exit"
    assert b"[1, 4, 9]" in program.printed


def test_breakpoints_changed_in_a_child_are_changed_in_all(debug: Any) -> None:
    program = debug(
        "python app.py", dedent(POOL + "    print(process())\n    print(square(9))\n    print(square(7))\n")
    )
    program.do("b 4")
    program.do("b 27")
    assert program.do("c")["stop"]["process"] == "squarer"
    program.do("cl 1")
    program.do("b 5, x == 3")
    program.do("b square")
    program.do("disable 4")
    expected = program.breakpoints
    stop = program.do("c")["stop"]  # in a process that is forked after that
    assert (stop["breakpoint"], program.do("p x")["out"]) == (3, "3\n")
    stop = program.do("c")["stop"]  # and in one that ran meanwhile
    assert (stop["line"], stop.get("process")) == (27, None)
    assert program.breakpoints == expected
    assert [one["number"] for one in expected["list"]] == [2, 3, 4]
    program.do("condition 3 x == 7")
    assert program.do("c")["stop"]["breakpoint"] == 3
    assert program.do("p x")["out"] == "7\n"


def test_children_wait_for_their_turn_to_talk(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import os, threading
            def work(name):
                x = name
            pids = []
            for n in range(4):
                pid = os.fork()
                if pid == 0:
                    threads = [threading.Thread(target=work, args=("%d-%d" % (n, k),)) for k in range(3)]
                    for thread in threads:
                        thread.start()
                    for thread in threads:
                        thread.join()
                    os._exit(0)
                pids.append(pid)
            for pid in pids:
                os.waitpid(pid, 0)
            """
        ),
    )
    program.do("b 3")
    seen = []
    for _ in range(12):
        stop = program.do("c")["stop"]
        assert stop["line"] == 3
        told = program.do("p name")["out"]
        assert stop["process"] == f"child {int(told[1]) + 1}"
        assert program.do("p name")["out"] == told
        seen.append(told)
    assert len(set(seen)) == 12
    assert program.do("c")["status"] == 0


def test_a_child_killed_at_its_prompt_gives_up_its_turn(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import os, sys
            def f():
                x = 1
            pid = os.fork()
            if pid == 0:
                f()
                os._exit(0)
            status = os.waitpid(pid, 0)[1]
            f()
            """
        ),
    )
    program.do("b 3")
    assert program.do("c")["stop"]["process"] == "child 1"
    dead = program.talking
    os.kill(dead, signal.SIGKILL)
    message = program.receive()
    assert message["stop"]["line"] == 3 and "process" not in message["stop"]
    program.send({"cmd": "p 'for the dead'", "rest": [], "for": dead})
    assert program.do("p status")["out"] == "9\n"
    assert program.do("c")["status"] == 0


def test_interrupt_in_a_child(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import os, time
            def f():
                x = 1
                time.sleep(1000)
            pid = os.fork()
            if pid == 0:
                f()
            os.waitpid(pid, 0)
            """
        ),
    )
    program.do("b 4")
    program.do("c")
    child = program.talking
    for command in ("p [None for _ in iter(int, 1)]", "n"):
        program.send({"cmd": command, "rest": [], "for": child})
        with pytest.raises(TimeoutError):
            program.receive(0.2)
        answer = program.interrupt()
        assert answer["pid"] == child
    assert (answer["stop"]["reason"], answer["stop"]["line"]) == ("interrupt", 4)
    assert program.do("p x")["out"] == "1\n"
    os.kill(child, signal.SIGKILL)
    assert program.receive()["t"] == "exit"


def test_the_end_waits_for_a_child_that_talks(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import os
            there, here = os.pipe()
            if os.fork() == 0:
                x = 1
                os.write(here, b"x")
                os._exit(0)
            os.read(there, 1)
            """
        ),
    )
    program.do("b 5")
    assert program.do("c")["stop"]["process"] == "child 1"
    assert program.do("n")["stop"]["process"] == "child 1"
    with pytest.raises(TimeoutError):
        program.receive(0.3)
    assert program.do("p x")["out"] == "1\n"
    assert program.do("c")["t"] == "exit"


def test_a_child_of_a_command_is_left_alone(debug: Any) -> None:
    program = debug("python app.py", dedent(POOL + "    done = 1\n    done = 2\n"))
    program.do("b 5")
    program.do("b 27")
    assert program.do("c")["stop"]["line"] == 27
    assert program.do("p pool()")["out"] == "[1, 4, 9]\n"
    assert program.do("c")["t"] == "exit"


def test_exceptions_of_children_go_where_they_always_go(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import multiprocessing, os
            def fails(n):
                raise ValueError("in a worker")
            with multiprocessing.get_context("fork").Pool(1) as pool:
                try:
                    pool.map(fails, [1])
                except ValueError as error:
                    print("caught", error)
            pid = os.fork()
            if pid == 0:
                fails(1)
            print("status", os.waitpid(pid, 0)[1] >> 8)
            """
        ),
    )
    answer = program.do("c")
    assert (answer["t"], answer["status"]) == ("exit", 0) and "exception" not in answer
    assert b"caught in a worker" in program.printed and b"status 1" in program.printed
    assert program.printed.count(b"Traceback") == 1


def test_a_child_runs_other_programs(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import os, subprocess, sys
            code = "import os; print(sorted(os.listdir('/proc/self/fd')))"
            def set_up():
                here = 1
            subprocess.call([sys.executable, "-c", code], preexec_fn=set_up)
            pid = os.fork()
            if pid == 0:
                os.execv(sys.executable, [sys.executable, "-c", code])
            os.waitpid(pid, 0)
            """
        ),
    )
    program.do("b 4")
    if program.hello["python"] >= [3, 7]:  # before, Python tells of no such forks
        assert program.do("c")["stop"]["process"] == "child 1"
    assert program.do("c")["status"] == 0
    assert program.printed.count(b"['0', '1', '2', '3']") == 2


def test_quit_in_a_child(debug: Any) -> None:
    program = debug("python app.py", dedent(FORK))
    program.do("b 5")
    program.do("c")
    answer = program.do("q")
    assert answer["t"] == "quit" and answer["pid"] == program.talking


STARTS = {
    "spawn": "multiprocessing.get_context('spawn').Pool(1).map(abs, [1])",
    "forkserver": "multiprocessing.get_context('forkserver').Pool(1).map(abs, [1])",
    "python": "subprocess.call([sys.executable, '-c', 'x = 1'])",
    "": "subprocess.call(['true']); multiprocessing.get_context('fork').Pool(1).map(abs, [1])",
}


@pytest.mark.parametrize("how", handful("debugger", list(STARTS), "spawn", "forkserver"))
def test_interpreters_in_which_nothing_stops_are_told_of(debug: Any, how: str) -> None:
    program = debug(
        "python app.py",
        dedent(
            f"""\
            import multiprocessing, subprocess, sys
            def work():
                {STARTS[how]}
            if __name__ == "__main__":
                work()
                x = 1
                work()
            """
        ),
    )
    program.do("b 6")
    stopped = program.do("c")
    assert stopped["stop"]["line"] == 6
    assert stopped.get("started") == ([how] if how else None)
    ended = program.do("c")
    assert ended["status"] == 0 and ended.get("started") == stopped.get("started")


@pytest.mark.parametrize(("command", "told"), [("b 4", ["python"]), ("p 1", None)])
def test_interpreters_are_told_of_at_the_end_when_there_are_breakpoints(debug: Any, command: str, told: Any) -> None:
    call = "import subprocess, sys\nsubprocess.call([sys.executable, '-c', '1'])\ndef f():\n    x = 1\n"
    program = debug("python app.py", dedent(call))
    program.do(command)
    assert program.do("c").get("started") == told
