"""What the tests of terminals share: which terminal, and sandboxes of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest

from debug_gym_core.sandbox.interpreter import probe
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec, Terminal
from debug_gym_core.testing.waiting import FIND

SECRET = "a-secret-of-the-host"
"""What tests put on the host, and nothing in a sandbox may show."""


class SandboxTests:
    """Base of the classes that try a terminal in real sandboxes; skipped where it says that it is not available.

    Attributes:
        terminal: the backend's class
        settings: what every instance is made with
    """

    terminal: ClassVar[type[Terminal]]
    settings: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def unusable(cls) -> str | None:
        """Why no sandbox can be started here and what to install; None when one can.

        To be extended where the tests need more than the backend does, an image say.
        """
        return cls.terminal.unavailable()

    @classmethod
    def spec(cls, **environment: str) -> SandboxSpec:
        """What the sandboxes must offer: the interpreter that runs the tests, or the image's own."""
        interpreter = None if cls.terminal.runs_images else probe(sys.executable)
        return SandboxSpec("contract", interpreter, environment=environment)

    @classmethod
    def open_session(cls, **environment: str) -> Session:
        """Start a sandbox with the guest in it."""
        return Session.start(cls.terminal(**cls.settings), cls.spec(**environment))

    @classmethod
    def bounded_session(cls, **settings: Any) -> Session:
        """Start a sandbox with other settings."""
        return Session.start(cls.terminal(**{**cls.settings, **settings}), cls.spec())

    @pytest.fixture(scope="class")
    @staticmethod
    def available(request: pytest.FixtureRequest) -> None:
        """Skip where the backend does not work."""
        reason = request.cls.unusable()
        if reason:
            pytest.skip(f"terminal {request.cls.terminal.name}: {reason}")

    @pytest.fixture(scope="class")
    @staticmethod
    def shared(request: pytest.FixtureRequest, available: None) -> Iterator[Session]:
        """A sandbox for all tests that leave it as it is."""
        with request.cls.open_session(CONTRACT="yes") as session:
            yield session

    @pytest.fixture
    def session(self, shared: Session) -> Session:
        """The sandbox, emptied."""
        for entry in list(shared.walk(".", depth=1)):
            shared.remove(entry.path)
        return shared

    def processes(self, session: Session, marker: str) -> list[int]:
        """Processes in the sandbox with a text in their command line, or environment where that can be read."""
        find = session.run([session.python, "-c", FIND, marker], timeout=30)
        assert find.exit_status == 0, find.output
        return [int(pid) for pid in find.output.split()]
