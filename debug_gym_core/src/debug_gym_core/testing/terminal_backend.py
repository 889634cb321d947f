"""What a terminal's own methods promise, before any guest runs in the sandbox."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import Stream, Terminal
from debug_gym_core.testing.sandboxes import SandboxTests
from debug_gym_core.testing.waiting import wait_until


class BackendTests(SandboxTests):
    """Sandboxes start, carry bytes and stop, by the methods that a backend writes."""

    @pytest.fixture
    def start(self, available: None) -> Iterator[Callable[[], Terminal]]:
        """Start sandboxes without a guest; they are stopped at the end."""
        made: list[Terminal] = []

        def start() -> Terminal:
            made.append(self.terminal(**self.settings))
            made[-1].start(self.spec())
            return made[-1]

        yield start
        for terminal in made:
            terminal.stop()

    def test_it_says_what_it_is(self) -> None:
        """Whether it isolates, and quickly why it cannot work here."""
        assert isinstance(self.terminal.isolates, bool) and isinstance(self.terminal.runs_images, bool)
        started = time.monotonic()
        reason = self.terminal.unavailable()
        assert time.monotonic() - started < 30
        assert reason is None or (isinstance(reason, str) and reason.strip() and "\n" not in reason.strip())

    def test_it_starts_empty_and_stops_twice(self, start: Callable[[], Terminal]) -> None:
        """After `start` it stands, after `stop` it is gone, and stays so."""
        terminal = start()
        assert terminal.alive()
        assert read_all(terminal.open(["/bin/sh", "-c", f"ls -A '{terminal.root}'; pwd"])) == f"{terminal.root}\n"
        terminal.stop()
        terminal.stop()
        assert not terminal.alive()
        with pytest.raises(SandboxError):
            terminal.open(["/bin/cat"])

    def test_stop_without_start_does_nothing(self, available: None) -> None:
        """A sandbox that never was can be stopped."""
        terminal = self.terminal(**self.settings)
        terminal.stop()
        assert not terminal.alive()

    def test_streams_carry_bytes_unchanged(self, start: Callable[[], Terminal]) -> None:
        """Eight megabytes of any bytes, both ways at once."""
        stream = start().open(["/bin/cat"])
        sent = os.urandom(1 << 16) * 128
        writer = threading.Thread(target=stream.write, args=(sent,))
        writer.start()
        received = bytearray()
        while len(received) < len(sent) and (data := stream.read(1 << 20)):
            received += data
        writer.join()
        assert received == sent
        stream.close()

    def test_close_wakes_who_reads_and_may_be_called_twice(self, start: Callable[[], Terminal]) -> None:
        """A `read` that waits returns nothing once the stream is closed."""
        stream = start().open(["/bin/sh", "-c", "echo up; exec sleep 1000"])
        assert stream.read(3) == b"up\n"
        results: list[bytes] = []
        reader = threading.Thread(target=lambda: results.append(stream.read(1)))
        reader.start()
        stream.close()
        reader.join(10)
        assert results == [b""]
        stream.close()
        with pytest.raises(OSError):
            stream.write(b"x")

    def test_a_command_that_ends_ends_the_stream(self, start: Callable[[], Terminal]) -> None:
        """What it wrote to standard error is in the log."""
        terminal = start()
        stream = terminal.open(["/bin/sh", "-c", "echo words >&2; echo out"])
        assert read_all(stream, close=False) == "out\n"
        wait_until(lambda: "words" in terminal.log(), "the log has no words of the command's")
        stream.close()

    def test_open_works_again_over_the_same_files_or_the_sandbox_is_lost(self, start: Callable[[], Terminal]) -> None:
        """A guest that died is started again; a backend that cannot do that says that the sandbox is gone."""
        terminal = start()
        assert read_all(terminal.open(["/bin/sh", "-c", f"echo kept > '{terminal.root}/kept'; kill -9 $$"])) == ""
        try:
            again = terminal.open(["/bin/cat", f"{terminal.root}/kept"])
        except SandboxLost:
            wait_until(lambda: not terminal.alive(), "it says that the sandbox is lost, and that it is alive")
        else:
            assert read_all(again) == "kept\n"

    def test_notes_log_and_clean_are_harmless(self, session: Session) -> None:
        """They may be asked for at any time; what lives is not cleaned away."""
        terminal = session.terminal
        assert all(isinstance(one, str) and one.strip() for one in terminal.notes())
        assert isinstance(terminal.log(), str)
        assert all(isinstance(one, str) for one in type(terminal).clean())
        assert session.run("echo fine", timeout=20).output == "fine\n"


def read_all(stream: Stream, *, close: bool = True) -> str:
    """What comes over a stream until its end."""
    output = b""
    while data := stream.read(65536):
        output += data
    if close:
        stream.close()
    return output.decode()
