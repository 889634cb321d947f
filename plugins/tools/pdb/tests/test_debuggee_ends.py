"""Programs near their limits, and the ways in which they end."""

from __future__ import annotations

import os
import signal
import subprocess
import textwrap
import time
from typing import Any

import pytest
from debugged_programs import dedent
from support import repeated

# -- recursion and memory

RECURSION = """\
    import sys

    def forever(n):
        deeper = n + 1
        return forever(deeper)

    def down(n):
        if n:
            return down(n - 1)
        bottom = n
        return bottom

    def depth():
        frame, found = sys._getframe(), 0
        while frame is not None:
            frame, found = frame.f_back, found + 1
        return found

    limit = sys.getrecursionlimit()
"""


def test_uncaught_recursion_stops_with_a_bounded_stack(debug: Any) -> None:
    program = debug("python app.py", dedent(RECURSION + "    forever(0)\n"))
    stop = program.do("c")["stop"]
    assert (stop["reason"], stop["function"]) == ("exception", "forever")
    assert stop["exceptions"][0]["type"] == "RecursionError"
    assert len(stop["stack"]) <= 3
    assert len(program.do("w")["out"]) < 1000
    assert 1000 < len(program.do("w 2000")["out"]) < 100_000
    assert int(program.do("p n")["out"]) > 900
    assert program.do("u")["failed"] is False
    assert program.do("c")["exception"]["type"] == "RecursionError"


@pytest.mark.parametrize(
    ("left", "step"), [(9, "n"), (10, "r"), *repeated("debugger", (14, "until"), (60, "n"), (200, "r"))]
)
def test_a_stop_near_the_recursion_limit(debug: Any, left: int, step: str) -> None:
    program = debug(
        "python app.py",
        dedent(
            RECURSION
            + f"    down(limit - depth() - {left})\n    print('limit', sys.getrecursionlimit() - limit)\n"
            + "    down(3)\n    down(3)\n    end = 1\n"
        ),
    )
    program.do("b 10")
    stop = program.do("c")["stop"]
    assert (stop["line"], stop["locals"]["changed"]) == (10, {"n": "0"})
    assert len(stop["stack"]) <= 3
    assert program.do("p list(map(abs, [n, n]))")["out"] == "[0, 0]\n"
    stop = program.do(step)["stop"]
    assert (stop["reason"], stop["line"]) == ("return" if step == "r" else "step", 11)
    assert program.do("c")["stop"]["line"] == 10
    assert program.do("c")["stop"]["line"] == 10
    assert program.do("c")["status"] == 0
    assert b"limit 0" in program.printed


@pytest.mark.parametrize("left", [10, 11, *repeated("debugger", 12)])
def test_code_that_runs_first_near_the_recursion_limit(debug: Any, backends: list[str], left: int) -> None:
    """It is looked at there, for lines with breakpoints and others."""
    source = RECURSION.replace("bottom = n", "bottom = fresh(n)") + "\n    def fresh(n):\n        return n\n"
    program = debug(
        "python app.py",
        dedent(source + f"    print('found', down(limit - depth() - {left}))\n    end = 1\n"),
        backends=backends,
    )
    program.do("b 10")
    program.do("b 24")
    assert program.lines("c", "n", "c", "c") == [10, 11, 24, 0]
    assert b"found 0" in program.printed


def test_a_condition_that_recurses_without_end_stops(debug: Any) -> None:
    program = debug("python app.py", dedent(RECURSION + "    down(3)\n"))
    program.do("b 10, forever(0)")
    stop = program.do("c")["stop"]
    assert stop["line"] == 10 and stop["note"].startswith("its condition raised RecursionError")
    assert program.do("p forever(0)")["failed"]
    assert program.do("c")["status"] == 0


def test_out_of_memory_in_the_program(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import resource
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
            def grow():
                held = []
                while True:
                    held.append(bytearray(1 << 20))
            try:
                grow()
            except MemoryError:
                caught = 1
            grow()
            """
        ),
    )
    program.do("b 11")
    assert program.do("c")["stop"]["line"] == 11
    stop = program.do("c")["stop"]
    assert (stop["reason"], stop["function"]) == ("exception", "grow")
    assert stop["exceptions"][0]["type"] == "MemoryError"
    assert int(program.do("p len(held)")["out"]) > 10
    assert program.do("c")["exception"]["type"] == "MemoryError"


# -- ends


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("pass", 0),
        ("sys.exit()", 0),
        ("sys.exit(None)", 0),
        ("sys.exit(7)", 7),
        *repeated(
            "debugger",
            ("sys.exit(256 + 7)", 7),
            ("sys.exit((1, 2))", 1),
            ("sys.exit('why')", 1),
            ("raise SystemExit", 0),
            ("threading.Thread(target=sys.exit, args=(3,)).start()", 0),
            ("atexit.register(sys.exit, 3)", 0),
            ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); os.kill(os.getpid(), signal.SIGTERM)", 5),
        ),
    ],
)
def test_an_exit_is_told_before_the_process_has_ended(debug: Any, statement: str, status: int) -> None:
    program = debug("python app.py", dedent(f"import atexit, os, signal, sys, threading\n{statement}\n"))
    told = program.do("c")
    assert told["t"] == "exit" and "exception" not in told
    assert told["status"] == status
    assert program.receive() == {"t": "dead", "status": status}
    assert (b"why" in program.printed) == ("why" in statement)


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("os._exit(9)", 9),
        ("atexit.register(os._exit, 3)", 3),
        ("threading.Thread(target=os._exit, args=(3,)).start(); time.sleep(60)", 3),
        *repeated(
            "debugger",
            ("os.abort()", -signal.SIGABRT),
            ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
            ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
            ("ctypes.string_at(0)", -signal.SIGSEGV),
        ),
    ],
)
def test_sudden_death(debug: Any, statement: str, status: int) -> None:
    program = debug("python app.py", dedent(f"import atexit, ctypes, os, signal, threading, time\n{statement}\n"))
    assert program.do("c") == {"t": "dead", "status": status}


@pytest.mark.parametrize("entrypoint", ["app.py", *repeated("debugger", "-m app")])
def test_an_interrupt_that_nothing_catches_ends_the_process_as_python_does(
    debug: Any, python: str, entrypoint: str
) -> None:
    source = "import atexit, sys\natexit.register(lambda: print('at exit', repr(sys.last_value)))\n"
    program = debug(f"python {entrypoint}", {"app.py": f"{source}raise KeyboardInterrupt('k')\n"})
    assert program.do("c")["stop"]["reason"] == "exception"
    told = program.do("c")
    status = subprocess.run([python, *entrypoint.split()], cwd=program.root, capture_output=True).returncode
    assert (told["status"], program.receive()) == (status, {"t": "dead", "status": status})
    assert b"at exit KeyboardInterrupt('k'" in program.printed and program.printed.count(b"Traceback") == 1


def test_another_program_takes_its_place(debug: Any) -> None:
    replaces = "os.execv(sys.executable, [sys.executable, '-c', 'import sys; sys.exit(9)'])"
    program = debug("python app.py", dedent(f"import os, sys\n{replaces}\n"))
    assert program.do("c")["t"] == "replaced"
    assert program.receive() == {"t": "dead", "status": 9}


def test_an_exception_whose_text_is_made_by_code_with_a_breakpoint(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            class Told(Exception):
                def __str__(self):
                    text = "told"
                    return text
            raise Told
            """
        ),
    )
    program.do("b 3")
    answer = program.do("c")
    assert answer["stop"]["line"] == 3, "where Python prints the traceback"
    while answer["stop"]["reason"] != "exception":
        time.sleep(0.3)  # a person thinks for longer than a report may take
        assert program.do("p 40 + 2")["out"] == "42\n"
        answer = program.do("c")
    assert answer["stop"]["exceptions"][0]["message"] == "told"
    answer = program.do("c")
    assert (answer["t"], answer["exception"]["message"]) == ("exit", "told")


def test_a_condition_whose_exception_makes_its_text_by_code_with_a_breakpoint(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            class Told(Exception):
                def __str__(self):
                    text = "told"
                    return text
            def fail():
                raise Told
            for turn in range(3):
                here = turn
            """
        ),
    )
    program.do("b 3")
    program.do("b 8, fail()")
    for turn in range(3):
        stop = program.do("c")["stop"]
        assert (stop["line"], stop["note"]) == (8, "its condition raised Told: told")
        assert program.do("p turn")["out"] == f"{turn}\n"
    assert program.do("c")["status"] == 0


# -- signals


def test_handlers_of_the_program_run_and_stop_at_breakpoints(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import os, signal, time
            rang = []
            def ring(*args):
                rang.append(1)
            signal.signal(signal.SIGALRM, ring)
            for times in range(3):  # each once, so that none rings while another's handler is at a prompt
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                while len(rang) == times:
                    time.sleep(0.01)
            print("rang")
            """
        ),
    )
    program.do("b 4")
    for _ in range(3):
        assert program.do("c")["stop"]["function"] == "ring"
        assert program.do("n")["stop"]["reason"] == "return"
    program.do("cl 1")
    assert program.do("c")["status"] == 0
    assert b"rang" in program.printed


@pytest.mark.parametrize(
    "protect",
    [
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))",
        *repeated(
            "debugger",
            "[signal.signal(n, signal.SIG_IGN) for n in range(1, 65) if n not in (9, 19, 32, 33)]",
        ),
    ],
)
def test_breakpoints_stop_in_a_program_that_takes_all_signals(debug: Any, protect: str) -> None:
    program = debug(
        "python app.py", dedent(f"import signal, time\n{protect}\nx = 1\nprint('on', flush=True)\ntime.sleep(60)\n")
    )
    program.do("b 3")
    assert program.do("c")["stop"]["line"] == 3
    program.send({"cmd": "c", "rest": []})
    while b"on" not in program.printed:
        with pytest.raises(TimeoutError):
            program.receive(0.05)
    with pytest.raises(TimeoutError):
        program.limit = 0.3
        program.interrupt()
    assert program.process.poll() is None  # the host ends it


def test_signals_and_timers_of_the_program_wait_while_it_is_stopped(debug: Any) -> None:
    source = textwrap.dedent(
        """\
        import os, signal, threading
        def late(number, frame):
            raise TimeoutError("late %d" % (number == signal.SIGALRM))
        def look():
            with open("left", "w") as file:
                file.write(str(signal.getitimer(signal.ITIMER_REAL)[0]))
        os.mkfifo("left")
        threading.Thread(target=look).start()
        signal.signal(signal.SIGALRM, late)
        signal.signal(signal.SIGUSR1, late)
        signal.setitimer(signal.ITIMER_REAL, 100)
        try:
            x = 1
            signal.pause()
        except TimeoutError as error:
            print("said", error)
        try:
            y = 2
            z = 3
        except TimeoutError as error:
            print("said", error)
        """
    )
    program = debug("python app.py", {"app.py": source})
    program.do("b 13")
    program.do("b 18")
    assert program.do("c")["stop"]["line"] == 13
    assert (program.root / "left").read_text() == "0.0"  # the thread, which goes on, has waited for who reads
    left = "p signal.getitimer(signal.ITIMER_REAL)[0]"
    before = float(program.do(left)["out"])
    assert 0 < float(program.do(left)["out"]) <= before <= 100
    assert program.do("n")["stop"]["line"] == 14
    program.do("!signal.setitimer(signal.ITIMER_REAL, 0.5) and None")
    assert program.do("c")["stop"]["line"] == 18
    assert b"said late 1" in program.printed
    os.kill(program.process.pid, signal.SIGUSR1)
    assert program.do("p 1")["out"] == "1\n"
    assert program.do("p signal.getsignal(signal.SIGUSR1).__name__")["out"] == "'late'\n"
    assert program.do("c")["status"] == 0
    assert b"said late 0" in program.printed


# -- programs that trace themselves

TRACER = """\
    import sys, threading

    def f():
        x = 1
        return x

    seen = []

    def tracer(frame, event, arg):
        seen.append((frame.f_code.co_name, event, frame.f_lineno))
        return tracer

    assert sys.gettrace() is None
    sys.settrace(tracer)
    assert sys.gettrace() is tracer
    f()
    sys.settrace(None)
    assert sys.gettrace() is None
    before = 1
    f()
    threading.settrace(tracer)
    thread = threading.Thread(target=f)
    thread.start()
    thread.join()
    threading.settrace(None)
    thread = threading.Thread(target=f, name="late")
    thread.start()
    thread.join()
    end = 1
"""


def test_a_program_that_traces_itself_has_its_trace_and_breakpoints_stop_after_it(debug: Any) -> None:
    program = debug("python app.py", dedent(TRACER))
    program.do("b 19")
    program.do("c")
    assert program.do("p seen")["out"] == "[('f', 'call', 3), ('f', 'line', 4), ('f', 'line', 5), ('f', 'return', 5)]\n"
    program.do("b 4")
    assert program.do("c")["stop"]["thread"] == "MainThread"
    stop = program.do("c")["stop"]
    while stop["thread"] != "late":  # where tracing is needed to stop there, the thread that is traced does not
        stop = program.do("c")["stop"]
    assert program.do("c")["status"] == 0


def test_steps_over_a_program_that_traces_itself(debug: Any) -> None:
    program = debug("python app.py", dedent(TRACER))
    program.do("b 13")
    program.do("c")
    assert [program.do("n")["stop"]["line"] for _ in range(7)] == [14, 15, 16, 17, 18, 19, 20]


def test_profiling_and_breakpoints(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import cProfile, sys
            def f():
                return 1
            seen = []
            sys.setprofile(lambda *args: seen.append(args[1]))
            f()
            sys.setprofile(None)
            profile = cProfile.Profile()
            profile.runcall(f)
            end = 1
            """
        ),
    )
    program.do("b 3")
    assert [program.do("c")["stop"]["line"] for _ in range(2)] == [3, 3]
    program.do("b 10")
    program.do("c")
    assert program.do("p 'call' in seen, bool(profile.getstats())")["out"] == "(True, True)\n"
