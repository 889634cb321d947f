"""Forked children under the tool, over a session in a local terminal."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterator

import pytest
from support import repeated
from tool_environment import Environment

from debug_gym_core.sandbox.session import Session
from debug_gym_tool_pdb import Pdb

Use = Callable[[str], str]


@pytest.fixture
def start(session: Session) -> Iterator[Callable[..., Use]]:
    """Give the tool a program."""
    tools = []

    def start(program: str, timeout: float = 10) -> Use:
        session.write("app.py", textwrap.dedent(program).encode())
        env = Environment(session)
        tool = Pdb(timeout=timeout)
        tools.append(tool)
        return lambda command: tool.use(env, command).text  # type: ignore[arg-type]

    yield start
    for tool in tools:
        tool.close()


CHILD = """\
    import os, time
    def f():
        x = 1
        y = 2
        {then}
    pid = os.fork()
    if pid == 0:
        f()
        os._exit(0)
    {parent}
    print("status", os.waitpid(pid, 0)[1])
"""


def test_the_process_is_named(start: Callable[..., Use]) -> None:
    use = start(CHILD.format(then="pass", parent="pass"))
    assert "stopped: breakpoint 1 at app.py:4 in f (MainThread of process child 1)" in use("b app.py:4\nc")
    assert use("p x") == "1"
    assert "status 0" in use("c")


def test_a_child_past_its_time_is_interrupted(start: Callable[..., Use]) -> None:
    use = start(CHILD.format(then="time.sleep(1000)", parent="pass"), timeout=0.5)
    use("b app.py:5\nc")
    said = use("n")
    assert "stopped: interrupt at app.py:5 in f (MainThread of process child 1)" in said
    assert use("p y") == "2"
    assert "interrupted" in use("p [time.sleep(0.01) for _ in range(10 ** 9)]")
    assert use("p y") == "2"


def test_the_first_process_stops_when_the_child_cannot(start: Callable[..., Use]) -> None:
    use = start(CHILD.format(then="sum(range(10 ** 12))", parent="pass"), timeout=0.5)
    use("b app.py:5\nc")
    said = use("n")
    assert "stopped: interrupt at app.py:11 in <module> (MainThread)" in said
    assert "was interrupted; the session is stopped" in said
    assert use("p pid > 0") == "True"


def test_a_child_that_is_killed_at_its_prompt(start: Callable[..., Use], session: Session) -> None:
    use = start(CHILD.format(then="pass", parent="os.mkdir('asleep'); time.sleep(1000)"))
    use("b app.py:4\nc")
    # The parent may be anywhere after the fork by now.
    session.run(["sh", "-c", "until rmdir asleep 2>/dev/null; do sleep 0.02; done"])
    session.run(f"kill -9 {use('p os.getpid()')}")
    said = use("p x")
    assert "The process that was stopped has ended; the command was not carried out." in said
    assert "stopped: interrupt at app.py:10 in <module> (MainThread)" in said
    assert use("p pid > 0") == "True"


def test_a_program_that_ends_while_its_child_is_stopped(start: Callable[..., Use]) -> None:
    use = start(CHILD.format(then="pass", parent="time.sleep(0.1); os._exit(5)"))
    use("b app.py:4\nc")
    time.sleep(0.5)
    started = time.monotonic()
    assert "The program ended at once with exit status 5 (os._exit)." in use("p x")
    assert time.monotonic() - started < 30
    assert use("p 1").startswith("Started")


def test_quit_in_a_child_ends_all(start: Callable[..., Use]) -> None:
    use = start(CHILD.format(then="pass", parent="time.sleep(1000)"))
    use("b app.py:4\nc")
    started = time.monotonic()
    assert use("q") == "The session ended. The next pdb command starts a new session."
    assert time.monotonic() - started < 30


def test_restart_in_a_child_starts_all_again(start: Callable[..., Use]) -> None:
    use = start(CHILD.format(then="pass", parent="pass"))
    use("tbreak app.py:3\nb app.py:4, x == 1\nc")
    assert "stopped: breakpoint 2 at app.py:4" in use("c")
    assert use("restart").startswith("Started")
    said = use("b")
    assert "app.py:4" in said and "app.py:3" not in said and "x == 1" in said
    assert "process child 1" in use("c")


def test_what_does_not_stop_is_told(start: Callable[..., Use]) -> None:
    use = start("import subprocess, sys\nsubprocess.call([sys.executable, '-c', '1'])\nx = 1\ny = 2\n")
    said = use("b app.py:4\nc")
    assert "note: the program started another Python interpreter: breakpoints do not stop there" in said
    assert "note:" not in use("c")


def test_what_does_not_stop_is_told_once_whatever_process_says_it(start: Callable[..., Use]) -> None:
    program = "import os, subprocess, sys\ndef f():\n    x = 1\nsubprocess.call([sys.executable, '-c', '1'])\n"
    program += "for _ in range(2):\n    if os.fork() == 0:\n        f()\n        os._exit(0)\n    os.wait()\nf()\n"
    use = start(program)
    answers = [use("b f\nc"), use("c"), use("c"), use("c")]
    assert [answer.count("note: the program started another") for answer in answers] == [1, 0, 0, 0]
    assert "of process child 2" in answers[1]


@pytest.mark.parametrize(
    "read", ["input()", *repeated("debugger", "sys.stdin.read() or 1 / 0", "sys.stdin.readline() or 1 / 0")]
)
def test_a_program_that_reads_sees_the_end_of_the_input(start: Callable[..., Use], read: str) -> None:
    program = f"import sys\nfor n in range(3):\n    try:\n        {read}\n    except (EOFError, ZeroDivisionError):\n"
    use = start(program + "        print('end of input')\n")
    started = time.monotonic()
    said = use("c")
    assert said.count("end of input") == 3 and "The program exited with status 0" in said
    assert time.monotonic() - started < 30


def test_a_program_sees_a_terminal_for_its_output_only(start: Callable[..., Use]) -> None:
    use = start("import sys\nprint([one.isatty() for one in (sys.stdin, sys.stdout, sys.stderr)])\n")
    assert "[False, True, True]" in use("c")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            "import threading\ndef work():\n    return sum(range(10 ** 12))\nthread = threading.Thread(target=work)\n"
            "thread.start()\nthread.join()\n",
            'File "/testbed/app.py", line 3 in work',
        ),
        pytest.param(
            "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\ntime.sleep(1000)\n",
            "with signals blocked",
            marks=pytest.mark.debugger,
        ),
    ],
)
@pytest.mark.debugger
def test_what_cannot_be_interrupted_is_ended_and_starts_again(
    start: Callable[..., Use], program: str, said: str
) -> None:
    use = start(program, timeout=0.5)
    use("b app.py:3, 0")
    found = use("c")
    assert "cannot be interrupted: the program was ended. Breakpoints are kept." in found and said in found
    assert use("b").startswith("Started") and "app.py:3" in use("b")
