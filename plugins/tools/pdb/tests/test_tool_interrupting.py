"""Programs and commands that take too long, and those that are stopped from outside."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tool_environment import Environment

from debug_gym_core.debugging.inside.process import INTERRUPT_SIGNAL
from debug_gym_tool_pdb import Pdb


def test_quit_of_a_program_that_will_not_end(env: Environment, pdb: Pdb) -> None:
    env.session.write("app.py", b"while True:\n    try:\n        x = 1\n    except Exception:\n        pass\n")
    pdb.use(env, "b app.py:3\nc")
    started = time.monotonic()
    assert pdb.use(env, "q").text.startswith("The session ended.")
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("pdb", [0.5], indirect=True)
def test_command_past_its_time_is_interrupted(env: Environment, pdb: Pdb) -> None:
    env.session.write("app.py", b"import time\n\ndef wait():\n    x = 5\n    time.sleep(1000)\n\nwait()\n")
    pdb.use(env, "b app.py:100\nb app.py:7")
    pdb.use(env, "c")
    observation = pdb.use(env, "c")
    assert "stopped: interrupt at app.py:5 in wait (MainThread)" in observation.text
    assert "The command ran longer than 0.5 s and was interrupted; the session is stopped" in observation.text
    assert pdb.use(env, "p x").text == "5"
    assert "interrupted" in pdb.use(env, "p [time.sleep(0.01) for _ in range(10 ** 9)]").text
    assert pdb.use(env, "p x").text == "5"


def test_another_thread_stops_a_program_where_it_is(env: Environment, pdb: Pdb) -> None:
    env.session.write("app.py", b"import time\nx = 5\nopen('runs', 'w').close()\nwhile True:\n    time.sleep(0.01)\n")
    assert not env.interruption.ask()
    pdb.use(env, "p 1")
    assert not env.interruption.ask()
    with ThreadPoolExecutor(1) as threads, env.interruption.ending():
        told = threads.submit(pdb.use, env, "c\nq")
        while env.session.stat("runs") is None:
            assert not told.done()
        assert env.interruption.ask()
        observation = told.result(60)
        assert "stopped: interrupt at app.py:" in observation.text and not observation.data["timed_out"]
        assert observation.text.endswith("[1 more command not carried out]") and pdb.interrupt()
        assert pdb.use(env, "p x").text == "[1 more command not carried out]"  # as it was interrupted before it began
    assert pdb.use(env, "p x").text == "5" and not env.interruption.ask()


SWALLOWS = f"""\
import signal, time

def wait():
    signal.pthread_sigmask(signal.SIG_BLOCK, [{int(INTERRUPT_SIGNAL)}])
    signal.sigwait([{int(INTERRUPT_SIGNAL)}])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [{int(INTERRUPT_SIGNAL)}])
    time.sleep(1000)

wait()
"""


@pytest.mark.parametrize("pdb", [0.5], indirect=True)
def test_a_signal_that_is_not_heard_is_sent_again(env: Environment, pdb: Pdb) -> None:
    """As one that comes just before a system call, which nobody can time."""
    env.session.write("app.py", SWALLOWS.encode())
    observation = pdb.use(env, "c")
    assert "stopped: interrupt at app.py:7 in wait (MainThread)" in observation.text
    assert "time.sleep(1000)" in pdb.use(env, "w").text


@pytest.mark.debugger
@pytest.mark.parametrize(
    ("pdb", "program", "said", "how"),
    [
        (
            0.5,
            b"def f():\n    return sum(range(10 ** 12))\n\nf()\n",
            ["cannot be interrupted: the program was ended", 'File "/testbed/app.py", line 2 in f'],
            "stuck",
        ),
        (
            1,
            b"import os; os.execl('/bin/sh', 'sh', '-c', 'sleep 600')",
            ["one (os.exec), not debugged, which ran longer than 1 s and was ended."],
            "replaced",
        ),
    ],
    ids=["a long call of C code, with its stack", "another program in its place"],
    indirect=["pdb"],
)
def test_what_cannot_be_interrupted_is_ended(
    env: Environment, pdb: Pdb, program: bytes, said: list[str], how: str
) -> None:
    env.session.write("app.py", program)
    observation = pdb.use(env, "c")
    assert [one for one in said if one not in observation.text] == []
    assert "0x" not in observation.text and "debug-gym" not in observation.text
    assert observation.data["ended"] == {"how": how, "status": None, "exception": None}
    assert pdb.use(env, "p 1").text.startswith("Started")
