"""Interrupts: wherever a program is, it stops there at once, and a command ends."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from debugged_programs import dedent
from support import handful, repeated

INTERRUPTED = {
    "sleep": "time.sleep(100)",
    "lock": "lock.acquire()",
    "loop": "while True: pass",
    "input": "input()",
    "catcher": "\n    while True:\n        try: time.sleep(0.01)\n        except BaseException: pass",
    "select": "select.select([0], [], [])",
    "subprocess": "subprocess.call(['sleep', '100'])",
    "join": "t = threading.Thread(target=time.sleep, args=(100,), daemon=True); t.start(); t.join()",
    "asyncio": "asyncio.new_event_loop().run_until_complete(asyncio.sleep(100))",
}


@pytest.mark.parametrize("what", handful("debugger", list(INTERRUPTED), "sleep", "lock", "loop"))
def test_interrupt_stops_in_the_frame_at_once(debug: Any, what: str) -> None:
    source = "import asyncio, select, subprocess, threading, time\nlock = threading.Lock()\nlock.acquire()\n"
    source += f"def wait():\n    here = 5\n    print('waiting', flush=True)\n    {INTERRUPTED[what]}\n\nwait()\n"
    program = debug("python app.py", {"app.py": source})
    program.send({"cmd": "c"})
    while b"waiting" not in program.printed:
        with pytest.raises(TimeoutError):
            program.receive(0.05)
    for _ in range(2):
        started = time.monotonic()
        stop = program.interrupt()["stop"]
        assert time.monotonic() - started < 30
        assert stop["reason"] == "interrupt"
        assert any(one["function"] == "wait" for one in stop["stack"])
        program.do("b 1000000")
        program.send({"cmd": "c"})
        with pytest.raises(TimeoutError):
            program.receive(0.05)
    program.interrupt()
    if what == "catcher":
        assert program.do("n")["stop"]["function"] == "wait"


def test_interrupt_ends_a_command_and_keeps_the_session(debug: Any) -> None:
    program = debug("python app.py", dedent("import time\nx = 1\ny = 2\n"))
    program.do("b 3")
    program.do("c")
    program.send({"cmd": "p [time.sleep(0.01) for _ in range(10 ** 9)]"})
    with pytest.raises(TimeoutError):
        program.receive(0.1)
    answer = program.interrupt()
    assert answer["interrupted"] and "stop" not in answer
    assert program.do("p x")["out"] == "1\n"


def test_interrupt_ends_a_command_in_a_thread(debug: Any) -> None:
    source = (
        "import threading\ndef work():\n    x = 1\n    y = 2\nt = threading.Thread(target=work)\nt.start()\nt.join()\n"
    )
    program = debug("python app.py", dedent(source))
    program.do("b 4")
    program.do("c")
    program.send({"cmd": "p [None for _ in iter(int, 1)]"})
    with pytest.raises(TimeoutError):
        program.receive(0.1)
    assert program.interrupt()["interrupted"]
    assert program.do("p x")["out"] == "1\n"


def test_interrupt_at_a_prompt_does_nothing(debug: Any) -> None:
    program = debug("python app.py", dedent("x = 1\n"))
    os.kill(program.process.pid, program.hello["signals"]["interrupt"])
    assert program.do("p 1")["out"] == "1\n"


def test_interrupt_while_the_interpreter_waits_for_a_thread_at_the_end(debug: Any) -> None:
    source = """\
    import threading, time

    def work():
        print("at work", flush=True)
        time.sleep(100)

    threading.Thread(target=work, name="worker").start()
    """
    program = debug("python app.py", dedent(source))
    program.send({"cmd": "c"})
    while b"at work" not in program.printed:
        with pytest.raises(TimeoutError):
            program.receive(0.05)
    stop = program.interrupt()["stop"]
    assert [(one["name"], one["function"], one["line"]) for one in stop["threads"]] == [("worker", "work", 5)]


LONG_CALL = """\
    import threading

    def work():
        print("go", flush=True)
        return sum(range(10 ** 12))

"""


@pytest.mark.parametrize(
    ("call", "stacks"),
    [
        ("work()", [b"line 5 in work"]),
        *repeated(
            "debugger",
            (
                "thread = threading.Thread(target=work); thread.start(); thread.join()",
                [b"line 5 in work", b" in <module>"],
            ),
        ),
    ],
)
def test_stacks_of_all_threads_in_a_long_call_of_c_code(debug: Any, call: str, stacks: list[bytes]) -> None:
    program = debug("python app.py", dedent(LONG_CALL + f"    {call}\n"))
    program.send({"cmd": "c"})
    while b"go" not in program.printed:
        with pytest.raises(TimeoutError):
            program.receive(0.05)
    for name in ("interrupt", "stack"):
        os.kill(program.process.pid, program.hello["signals"][name])
        with pytest.raises(TimeoutError):
            program.receive(0.3)
    assert all(stack in program.printed for stack in stacks)
