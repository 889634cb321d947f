"""A guest that does nothing any more, really stopped: whatever waits for it ends with a typed error in bounded time."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from patience import shorten

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.grading.measure import measure
from debug_gym_core.sandbox.frames import pack
from debug_gym_core.sandbox.grep import Query
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec, Stream
from debug_gym_core.testing import is_alive, wait_until
from debug_gym_terminal_local import LocalTerminal

pytestmark = pytest.mark.faults

BOUND = 20.0
"""Seconds within which everything must have ended: the limits below, on a machine that is busy."""

BIG = b"x" * (8 << 20)


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits, which are about a minute, made short; those of commands and programs stay."""
    shorten(monkeypatch, start=2.0, stall=2.0, silence=0.5, answer=2.0, file=3.0, control=3.0)


@pytest.fixture
def open_session() -> Iterator[Callable[[], Session]]:
    """Start sessions that end with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(Session.start(LocalTerminal(), SandboxSpec(run="test")))


def guest(live: Session) -> int:
    return int(live.guest()["pid"])


Call = Callable[[Session], object]

CALLS: dict[str, Call] = {
    "a command without a timeout": lambda live: live.run("sleep 600"),
    "a command with one": lambda live: live.run("sleep 600", timeout=1),
    "reading": lambda live: live.read("file"),
    "writing": lambda live: live.write("new", b"data"),
    "writing more than the stream holds": lambda live: live.write("new", BIG),
    "removing": lambda live: live.remove("file"),
    "looking": lambda live: live.stat("file"),
    "walking": lambda live: list(live.walk()),
    "what has changed": lambda live: live.changed(),
    "searching": lambda live: live.grep(".", Query("x"), {"rules": []}),
    "unpacking": lambda live: live.put(BIG),
    "starting a program": lambda live: live.process(["sleep", "600"]),
    "giving a program a file": lambda live: live.process(["sleep", "600"], blobs={"code": os.urandom(10)}),
    "an interactive program": lambda live: live.spawn("cat"),
    "measuring": lambda live: measure(live, "python -m pytest -q", timeout=1),
    "measuring by the exit status": lambda live: measure(live, "make test", timeout=1),
}


@pytest.mark.parametrize("together", [False, True])
def test_whatever_asks_a_stopped_guest_ends(open_session: Callable[[], Session], together: bool) -> None:
    """Each by itself, in a session of its own, and all at once in one."""
    shared = open_session()
    shared.write("file", b"x")
    ended: dict[str, BaseException | None] = {}

    def call(name: str, live: Session) -> None:
        try:
            CALLS[name](live)
            ended[name] = None
        except BaseException as error:
            ended[name] = error

    sessions = {name: shared if together else open_session() for name in CALLS}
    for pid in {guest(live) for live in sessions.values()}:
        os.kill(pid, signal.SIGSTOP)
    threads = [threading.Thread(target=call, args=one, daemon=True) for one in sessions.items()]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + BOUND
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    assert sorted(ended) == sorted(CALLS), f"still waiting: {sorted(set(CALLS) - set(ended))}"
    wrong = {name: error for name, error in ended.items() if not isinstance(error, SandboxLost)}
    assert not wrong
    assert shared.run("echo again", timeout=20).output == "again\n"


def test_whatever_waits_for_a_program_ends_when_the_guest_is_stopped(open_session: Callable[[], Session]) -> None:
    live = open_session()
    calls: dict[str, Callable[[], object]] = {}
    for name in ("receive", "wait", "take_output", "echo"):
        program = live.process(["sleep", "600"], pty=name == "echo")
        calls[name] = getattr(program, name)
    followed = live.process("sleep 600", channel=False, follow=True)
    calls["read_text"] = followed.read_text
    signalled = live.process("sleep 600", channel=False)
    calls["signal"] = lambda: signalled.signal(signal.SIGINT)
    calls["signal_since"] = lambda: signalled.signal_since(signal.SIGINT)
    typed = live.process("sleep 600", channel=False, stdin=True)
    calls["write_stdin"] = lambda: [typed.write_stdin(BIG) for _ in range(2)]
    ended: dict[str, BaseException | None] = {}
    killed = live.process("sleep 600", channel=False)
    os.kill(guest(live), signal.SIGSTOP)

    def call(name: str) -> None:
        try:
            calls[name]()
            ended[name] = None
        except BaseException as error:
            ended[name] = error

    threads = [threading.Thread(target=call, args=(name,), daemon=True) for name in calls]
    threads.append(threading.Thread(target=killed.kill, daemon=True))
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + BOUND
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads), sorted(set(calls) - set(ended))
    assert {name: type(error) for name, error in ended.items()} == dict.fromkeys(calls, SandboxLost)


def test_a_guest_that_is_busy_is_not_given_up(open_session: Callable[[], Session]) -> None:
    """It answers what it is asked, however long its commands are silent."""
    live = open_session()
    assert live.run("sleep 6; echo done").output == "done\n"
    assert live.restarts == 0


def test_a_guest_that_cannot_be_asked_is_closed_all_the_same(open_session: Callable[[], Session]) -> None:
    live = open_session()
    pid = guest(live)
    waiting = live.process("sleep 600", channel=False)
    os.kill(pid, signal.SIGSTOP)
    started = time.monotonic()
    live.close()
    assert time.monotonic() - started < BOUND
    with pytest.raises(SandboxLost):
        waiting.wait(BOUND)
    wait_until(lambda: not is_alive(pid))


class Stopping(LocalTerminal):
    """A terminal whose guest is stopped before it says anything, or once it has said what it understands."""

    after_boot = False

    def open(self, argv: Sequence[str]) -> Stream:
        if self.after_boot:
            # As the guest's first program does, which then does nothing any more; what it is sent is not read.
            frame = pack({"id": 0, "t": "boot", "magic": "none"})
            code = f"import os, signal; os.write(1, {frame!r}); os.kill(os.getpid(), signal.SIGSTOP)"
            return super().open([self.python, "-c", code])
        stream = super().open(argv)
        os.kill(self._streams[-1].process.pid, signal.SIGSTOP)
        return stream


@pytest.mark.parametrize("after_boot", [False, True])
def test_a_guest_that_never_says_hello_did_not_start(after_boot: bool) -> None:
    terminal = Stopping()
    terminal.after_boot = after_boot
    started = time.monotonic()
    with pytest.raises(SandboxError, match="the guest did not start"):
        Session.start(terminal, SandboxSpec(run="test"))
    assert time.monotonic() - started < BOUND
    assert not is_alive(terminal._streams[0].process.pid)
    assert not Path(terminal.root).exists()
