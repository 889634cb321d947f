"""A guest that is killed, stopped or spoken for, by programs in the sandbox: the host gets the truth or a typed error.

It reads no more than it asked for, it is back in bounded time, and never takes another's words for the guest's.

DEBUG_GYM_TEST_IMAGE: the image for the tests in docker.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import posixpath
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest
from impersonations import ATTACKS, LIE, LITTER, attack
from impostors import IMPOSTORS, NEVER_STARTS, impostor
from patience import shorten
from podman_service import SETTINGS, missing, serving

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.sandbox import file_requests
from debug_gym_core.sandbox.grep import Query
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import Stream, Terminal
from debug_gym_core.testing import wait_until
from debug_gym_core.testing.sandboxes import SandboxTests
from debug_gym_core.testing.waiting import processes_with
from debug_gym_core.workspace.rules import Rules
from debug_gym_terminal_bubblewrap import BubblewrapTerminal
from debug_gym_terminal_docker import DockerTerminal

IMAGE = os.environ.get("DEBUG_GYM_TEST_IMAGE", "")

BACKSTOP = 60.0
"""Seconds after which whoever asked counts as forgotten; the limits below are much shorter."""

MEMORY = 64 << 20
"""Bytes by which this process may grow at most, whatever is sent."""

LISTING = 4 << 20
"""Bytes of a walk; entries take several times as much."""

SIZE = 100

TRIES = 4
"""How often the host asks: what was damaged may cost some requests."""

NOTHING_IGNORED = Rules().ignore_patterns()


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits, which are about a minute, made short, and that of a listing low; that of a command stays."""
    monkeypatch.setattr(file_requests, "LISTING", LISTING)
    shorten(monkeypatch, start=8.0, stall=4.0, silence=1.0, answer=4.0, file=6.0, control=6.0)


class Asked:
    """What the host asks of a sandbox, and what it was told."""

    def __init__(self, session: Session, content: bytes) -> None:
        """Expect the truth.

        Args:
            session: whose guest is asked
            content: of the file `known`, one line
        """
        self.session = session
        self.content = content
        self.line = content.decode().rstrip("\n")
        self.word = uuid.uuid4().hex
        self.answered: set[str] = set()

    def all(self) -> None:
        """Ask until each was answered, or the sandbox is gone.

        Raises:
            AssertionError: an answer is not true, or none came in time
        """
        for _ in range(TRIES):
            for what, question in QUESTIONS.items():
                answer = bounded(functools.partial(question.ask, self))
                if isinstance(answer, BaseException):
                    assert is_typed(answer), f"{what}: {answer!r}"
                    assert LIE not in str(answer)
                else:
                    assert answer == question.truth(self), f"{what}: {str(answer)[:500]}"
                    self.answered.add(what)
            if self.answered == set(QUESTIONS) or not self.session.terminal.alive():
                return
        raise AssertionError(f"the sandbox stands and answers only {sorted(self.answered)}")


class Question(NamedTuple):
    """Something that can be asked of a sandbox.

    Attributes:
        ask: asks it
        truth: what a guest answers
    """

    ask: Callable[[Asked], object]
    truth: Callable[[Asked], object]


def entry(asked: Asked) -> int | None:
    found = asked.session.stat("known")
    return None if found is None else found.size


def search(asked: Asked) -> list[str]:
    query = Query(asked.line, regex=False, timeout=5)
    files = asked.session.grep("known", query, NOTHING_IGNORED).files
    return [line.text for file in files for line in file.lines]


def walk(asked: Asked) -> dict[str, int]:
    return {one.path: one.size for one in asked.session.walk(prune=[LITTER]) if one.path != LITTER}


def program(asked: Asked) -> str:
    with asked.session.process(["echo", asked.word], channel=False, timeout=5) as started:
        started.wait()
        return started.take_output()[0]


def said(asked: Asked) -> str:
    return f"{asked.word}\n"


QUESTIONS: Mapping[str, Question] = {
    "a file": Question(lambda asked: asked.session.read("known", 0, SIZE), lambda asked: asked.content),
    "lines": Question(lambda asked: asked.session.lines("known", 1, 1, SIZE).data, lambda asked: asked.content),
    "an entry": Question(entry, lambda asked: SIZE),
    "a path": Question(lambda asked: posixpath.basename(asked.session.realpath("known")), lambda asked: "known"),
    "a search": Question(search, lambda asked: [asked.line]),
    "a walk": Question(walk, lambda asked: {"known": SIZE}),
    "a command": Question(lambda asked: asked.session.run(["echo", asked.word], timeout=5).output, said),
    "a command of the shell": Question(lambda asked: asked.session.run(f"echo {asked.word}", timeout=5).output, said),
    "a program": Question(program, said),
}


def bounded(question: Callable[[], object]) -> object:
    """What a question is answered with, or the error; it may not take longer than `BACKSTOP`."""
    answers: list[object] = []

    def ask() -> None:
        try:
            answers.append(question())
        except BaseException as error:
            answers.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(BACKSTOP)
    assert answers, f"nothing came back within {BACKSTOP:g} s"
    return answers[0]


def is_typed(error: object) -> bool:
    """Whether an error says that guest or sandbox failed, or that a program could not be started for want of room."""
    return isinstance(error, SandboxError) or (
        isinstance(error, OSError) and error.errno in (errno.EAGAIN, errno.ENOMEM, errno.ENOSPC)
    )


@contextlib.contextmanager
def little_memory() -> Iterator[None]:
    """Expect that this process grows by less than `MEMORY` meanwhile, at its largest."""
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    yield
    assert memory("VmHWM") - before < MEMORY


def memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


class ImpersonationTests(SandboxTests):
    """What holds on a terminal that isolates."""

    @contextlib.contextmanager
    def opened(self, terminal: Terminal | None = None) -> Iterator[Session]:
        """A sandbox of which nothing is left afterwards."""
        marker = f"marker-{uuid.uuid4().hex}"
        made = terminal or self.terminal(**self.settings)
        with Session.start(made, self.spec(MARK=marker)) as session:
            yield session
        assert not made.alive()
        wait_until(lambda: processes_with(marker) == [], "processes are left", seconds=30)

    def attacked(self, name: str) -> None:
        content = f"{os.urandom(SIZE).hex():.{SIZE - 1}}\n".encode()
        with self.opened() as session:
            session.write("known", content)
            with little_memory():
                done = bounded(lambda: session.run([session.python, "-c", attack(name)], timeout=6))
                assert not isinstance(done, BaseException) or is_typed(done), repr(done)
                asked = Asked(session, content)
                asked.all()
            with contextlib.suppress(SandboxLost):  # then it says no more
                assert session.stat(f"{LITTER}/began") is not None
                assert session.stat(f"{LITTER}/failed") is None, session.read(f"{LITTER}/failed").decode()

    def impersonated(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """What has the stream can lie; it is not believed more than it was asked, and what it breaks is typed."""
        for what, question in QUESTIONS.items():
            answered = False
            terminal = self.terminal(**self.settings)
            monkeypatch.setattr(terminal, "open", speaking(terminal, impostor(name)))
            with little_memory(), contextlib.suppress(SandboxError), self.opened(terminal) as session:
                answer = bounded(functools.partial(question.ask, Asked(session, b"")))
                answered = True
                if isinstance(answer, bytes):
                    assert len(answer) <= SIZE
                elif not (what == "a walk" and isinstance(answer, dict)):
                    assert isinstance(answer, SandboxError), f"{what}: {str(answer)[:500]!r}"
            assert answered is (name != NEVER_STARTS)
            assert not terminal.alive()


def speaking(terminal: Terminal, program: str) -> Callable[[Sequence[str]], Stream]:
    """What opens a stream of a terminal, with another program at its other end than the guest."""
    open_stream = terminal.open
    return lambda argv: open_stream([terminal.python, "-I", "-S", "-B", "-c", program])


def rows(names: Mapping[str, str], *gate: str) -> pytest.MarkDecorator:
    """A parameter for each program; all but those for the gate are marked `terminals`."""
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=() if name in gate else pytest.mark.terminals) for name in names]
    )


class TestBubblewrap(ImpersonationTests):
    terminal = BubblewrapTerminal

    @rows(ATTACKS, "kills the guest", "takes descriptors")
    def test_the_guest_is_attacked(self, available: None, name: str) -> None:
        self.attacked(name)

    @pytest.mark.terminals
    @rows(IMPOSTORS, "an infinite id")
    def test_something_else_has_the_stream(self, monkeypatch: pytest.MonkeyPatch, available: None, name: str) -> None:
        self.impersonated(name, monkeypatch)


class InDocker(ImpersonationTests):
    terminal = DockerTerminal
    settings: ClassVar[Mapping[str, Any]] = {"image": IMAGE}

    @classmethod
    def unusable(cls) -> str | None:
        missing = None if IMAGE else "set DEBUG_GYM_TEST_IMAGE to an image with Python; `.ci/images` makes one"
        return missing or super().unusable()

    @rows(ATTACKS)
    def test_the_guest_is_attacked(self, available: None, name: str) -> None:
        self.attacked(name)


@pytest.mark.terminals
class TestDocker(InDocker):
    @rows(IMPOSTORS)
    def test_something_else_has_the_stream(self, monkeypatch: pytest.MonkeyPatch, available: None, name: str) -> None:
        self.impersonated(name, monkeypatch)


@pytest.mark.terminals
class TestUnfencedDocker(InDocker):
    """The kernel keeps commands from signalling the guest only where nobody gains privileges, and not before 6.12."""

    settings: ClassVar[Mapping[str, Any]] = {**InDocker.settings, "no_new_privileges": False}


@pytest.mark.terminals
class TestPodman(ImpersonationTests):
    terminal = DockerTerminal
    settings = SETTINGS

    @classmethod
    def unusable(cls) -> str | None:
        return missing()

    @pytest.fixture(scope="class")
    @staticmethod
    def podman(available: None) -> Iterator[None]:
        with serving():
            yield

    @rows(ATTACKS)
    def test_the_guest_is_attacked(self, podman: None, name: str) -> None:
        self.attacked(name)
