"""Programs that hang, kill themselves or trace themselves: where they were, and how often the function was called."""

from __future__ import annotations

import signal
import socket
from collections.abc import ItemsView
from typing import Any

import pytest
from following import Follow
from support import handful, version_of

from debug_gym_tool_trace.tracee.channel import Channel
from debug_gym_tool_trace.tracee.telling import Telling

WAITING = {
    "a lock": "lock.acquire()",
    "a thread": "thread.join()",
    "a queue": "queue.Queue().get()",
    "a condition": "condition.wait()",
    "a process": "subprocess.run(['sleep', '60'])",
    "a socket": "pair[0].recv(1)",
}


@pytest.mark.parametrize("waits", handful("debugger", WAITING, "a lock", "a socket"))
def test_a_program_that_waits_in_c_code_tells_where(waits: str, trace: Follow) -> None:
    text = (
        "import queue, socket, subprocess, threading, time\n"
        "lock, pair, condition = threading.Lock(), socket.socketpair(), threading.Condition()\n"
        "thread = threading.Thread(target=time.sleep, args=(60,), daemon=True)\n"
        "lock.acquire(); condition.acquire(); thread.start()\n"
        f"def f():\n    print('now', flush=True) or {waits}\nf()\n"
    )
    found = trace(text, interrupt_when="now")
    assert (found.last["now"]["function"], found.last["now"]["line"]) == ("f", 6)
    assert found.lines[-1] == "it was not over"


def test_a_program_that_has_told_where_it_is_does_not_go_on(trace: Follow) -> None:
    text = "import os, signal\ndef f():\n    print('now', flush=True) or signal.pause() or os._exit(3)\nf()\n"
    found = trace(text, interrupt_when="now")
    assert found.status == -signal.SIGKILL and found.last["now"]["line"] == 3


ENDS = {"killed": "os.kill(os.getpid(), signal.SIGKILL)", "left": "os._exit(0)"}


@pytest.mark.parametrize("name", ENDS)
def test_calls_are_counted_however_the_program_ends(name: str, trace: Follow) -> None:
    text = (
        "import os, signal, threading\n"
        "def f(n):\n    return n\n"
        "for n in range(3): f(n)\n"
        "thread = threading.Thread(target=f, args=(3,)); thread.start(); thread.join()\n"
        f"{ENDS[name]}\n"
    )
    found = trace(text, call=9)
    assert found.last["calls"] == 4 and found.last["all"] and not found.last["blind"]


def test_of_many_calls_some_may_not_be_told_when_a_program_is_killed(trace: Follow) -> None:
    text = (
        "import os, signal\ndef f(n):\n    return n\nfor n in range(3000): f(n)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    found = trace(text, call=9000)
    assert 100 <= found.last["calls"] <= 3000 and not found.last["all"]


TRACED = """\
import sys, threading
seen = []
def mine(frame, event, arg):
    seen.append((event, frame.f_code.co_name, sys.gettrace() is mine))
def f(n):
    return n
f(1)
{}
assert sys.gettrace() is None
f(2)
thread = threading.Thread(target=f, args=(3,)); thread.start(); thread.join()
print(seen)
"""
IN_THREADS = (
    "threading.settrace(mine); t = threading.Thread(target=f, args=(2,)); t.start(); t.join(); threading.settrace(None)"
)
TRACING = {
    "itself": ("sys.settrace(mine); f(2); sys.settrace(None)", "[('call', 'f', True)]"),
    "its threads": (IN_THREADS, "('call', 'f', True)"),
}


@pytest.mark.parametrize("name", TRACING)
def test_calls_that_a_program_traces_itself_are_not_said_to_be_missing(name: str, trace: Follow, python: str) -> None:
    traces, printed = TRACING[name]
    found = trace(TRACED.format(traces), call=9)
    monitored = version_of(python) >= (3, 12)
    assert (found.last["blind"], found.last["calls"]) == ((False, 4) if monitored else (True, 3))
    assert printed in found.printed and "settrace" not in found.printed, found.printed


def test_a_call_that_cannot_be_looked_at_is_not_said_to_be_missing(trace: Follow) -> None:
    text = "import dis\ndef f(n):\n    return n\ndis.get_instructions = None\nf(1)\n"
    found = trace(text, may_fail=True)
    assert found.last["story"] is None and found.last["problem"].startswith("TypeError") and found.last["calls"] == 1


def test_what_tells_of_exceptions_is_not_the_program_s(trace: Follow) -> None:
    found = trace("import sys\ndef f(n):\n    return n\nsys.exc_info = None\nf(1)\n")
    assert found.lines[-1] == "returned 1 (line 3)"


def test_what_runs_while_a_message_is_sent_sends_none_itself() -> None:
    """As a signal's handler does that calls the function: it would wait for the message that it holds up."""
    ours, theirs = socket.socketpair()
    channel = Channel(theirs.detach())
    telling = Telling(channel)
    due = []

    class Message(dict[str, Any]):
        def items(self) -> ItemsView[str, Any]:
            due.append(telling.is_due(1))
            return super().items()

    with ours:
        channel.send(Message(a=1))
        assert due == [False] and telling.is_due(1)
