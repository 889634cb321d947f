"""What is left when a guest dies, a sandbox stops, or who drives it is killed."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import Stream
from debug_gym_core.testing.sandboxes import SandboxTests
from debug_gym_core.testing.waiting import processes_with, wait_until

_RUNNER = """
import importlib, json, sys
from debug_gym_core.sandbox.interpreter import probe
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
module, name, settings, marker = json.loads(sys.argv[1])
terminal = getattr(importlib.import_module(module), name)(**settings)
spec = SandboxSpec("contract", None if terminal.runs_images else probe(sys.executable), environment={"MARKER": marker})
session = Session.start(terminal, spec)
process = session.process("trap '' TERM; setsid sleep 1000 & sleep 1000", channel=False)
print("up", flush=True)
sys.stdin.read()
"""


class LossTests(SandboxTests):
    """Losses are errors of ours, and nothing stays behind.

    Attributes:
        outlives_guest: whether a sandbox whose guest is killed gets another one; else it is lost with it, which is told
    """

    outlives_guest: ClassVar[bool] = True

    def test_a_guest_that_dies_is_a_typed_error(self, available: None, monkeypatch: pytest.MonkeyPatch) -> None:
        """Then there is another one over the same files, or the sandbox is gone for good; never a hang."""
        streams: list[Stream] = []
        terminal = self.terminal(**self.settings)
        open_stream = terminal.open

        def opened(argv: Sequence[str]) -> Stream:
            streams.append(open_stream(argv))
            return streams[-1]

        monkeypatch.setattr(terminal, "open", opened)
        with Session.start(terminal, self.spec()) as session:
            session.write("kept", b"kept")
            process = session.process(["sleep", "1000"], channel=False)
            streams[0].close()
            with pytest.raises(SandboxError):
                process.wait(20)
            try:
                assert session.read("kept") == b"kept"
            except SandboxLost:
                assert not session.terminal.alive()

    def test_a_guest_that_is_killed_is_replaced_or_out_of_reach(self, available: None) -> None:
        """By a command that knows its number: an error of ours at worst, and then the same files."""
        with self.open_session() as session:
            session.write("kept", b"kept")
            for _ in range(3):
                guest = session.guest()["pid"]
                with contextlib.suppress(SandboxError):
                    session.run(f"kill -KILL {guest}; sleep 0.2", timeout=20)
                deadline = time.monotonic() + 20
                while True:
                    try:
                        assert session.read("kept") == b"kept"
                        break
                    except SandboxError:
                        if not self.outlives_guest and not session.terminal.alive():
                            return
                        assert time.monotonic() < deadline
            assert session.run("cat kept", timeout=20).output == "kept"

    def test_a_stopped_sandbox_is_lost(self, available: None) -> None:
        """Whoever waits for something in it learns that, and whoever asks later."""
        with self.open_session() as session, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(session.run, "sleep 1000")
            wait_until(lambda: "sleep" in session.run("cat /proc/[0-9]*/cmdline", timeout=20).output, "no start")
            session.terminal.stop()
            with pytest.raises(SandboxLost):
                waiting.result(20)
            with pytest.raises(SandboxLost):
                session.run("true", timeout=20)

    def test_close_leaves_no_process_thread_or_descriptor(self, available: None) -> None:
        """Of a sandbox in which programs ran to the end of the session."""
        counts = []
        for _ in range(2):  # the first one may load what stays
            marker = f"marker-{time.monotonic_ns()}"
            with self.open_session(MARK=marker) as session:
                session.process("trap '' TERM; setsid sleep 1000 & sleep 1000", channel=False)
                session.run("mkdir -p locked/inner; touch locked/inner/file; chmod 500 locked/inner; chmod 0 locked")
                root = Path(session.root)
            assert not session.terminal.alive()
            assert processes_with(marker) == []
            if not self.terminal.isolates:
                assert not root.exists(), f"{root} is left"
            threads = threading.active_count()
            counts.append((len(list(Path("/proc/self/fd").iterdir())), threads))
        assert counts[1] <= counts[0], f"descriptors and threads: {counts}"

    def test_a_session_that_is_dropped_leaves_no_process_thread_or_descriptor(self, available: None) -> None:
        """Nobody called `close`, and nobody can any more: what the garbage collector finds is ended."""
        roots: list[Path] = []

        def drop(marker: str) -> None:
            session = self.open_session(MARK=marker)
            session.process("trap '' TERM; setsid sleep 1000 & sleep 1000", channel=False)
            if not self.terminal.isolates:
                roots.append(Path(session.root))

        first = None
        for _ in range(2):  # the first one may load what stays
            marker = f"marker-{time.monotonic_ns()}"
            drop(marker)
            gc.collect()
            wait_until(functools.partial(_is_gone, marker, roots, first), f"{marker}, {roots}, {first}", seconds=60)
            first = _held()

    def test_a_killed_runner_leaves_no_process(self, available: None, tmp_path: Path) -> None:
        """SIGKILL on the program that drives the sandbox; nobody is there to clean up.

        Its temporary directory is one of the test's, since files may be left.
        """
        marker = f"marker-{time.monotonic_ns()}"
        what = [self.terminal.__module__, self.terminal.__qualname__, dict(self.settings), marker]
        runner = subprocess.Popen(
            [sys.executable, "-c", _RUNNER, json.dumps(what)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        with runner:
            assert runner.stdout is not None
            assert runner.stdout.readline() == b"up\n"
            runner.kill()
            runner.wait()
        wait_until(lambda: processes_with(marker) == [], "processes are left", seconds=30)
        self.terminal.clean()


def _held() -> int:
    """Descriptors and threads of this process."""
    return len(list(Path("/proc/self/fd").iterdir())) + threading.active_count()


def _is_gone(marker: str, roots: Sequence[Path], held: int | None) -> bool:
    """Whether the processes and directories of a sandbox are, and no more is held than before it."""
    return (
        processes_with(marker) == [] and not any(root.exists() for root in roots) and (held is None or _held() <= held)
    )
