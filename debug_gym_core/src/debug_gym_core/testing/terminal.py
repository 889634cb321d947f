"""What a terminal promises."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pexpect
import pytest

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import Stream, Terminal
from debug_gym_core.testing.commands import COMMANDS
from debug_gym_core.testing.component import ComponentContract
from debug_gym_core.testing.sandboxes import SandboxTests
from debug_gym_core.testing.waiting import FIND, processes_with, wait_until

GRACE = 30.0
"""Seconds over its timeout within which a command is back."""

# How a command stays alive when it should not.
SURVIVORS = {
    "sleeps": "sleep 1000",
    "ignores SIGTERM": "trap '' TERM INT HUP; while :; do sleep 1000; done",
    "has children": "sleep 1000 & sleep 1000 & wait",
    "starts a new session": "setsid sleep 1000 & sleep 1000",
    "forks twice": "(setsid sh -c 'sleep 1000 & sleep 1000' &) ; sleep 1000",
    "holds the output": "setsid sh -c 'exec sleep 1000' & exec sleep 1000",
    "is stopped": "kill -STOP $$",
    "prints for ever": "yes",
    "closes its streams": "exec <&- >&- 2>&-; sleep 1000",
}

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


class TerminalContract(SandboxTests, ComponentContract):
    """The tests that every sandbox backend must pass, in real sandboxes.

    They are skipped where the backend says that it is not available. Those about isolation are skipped for a backend
    that says that it does not isolate; one that does is also tried by `EscapeProbes`.

    Attributes:
        terminal: the backend's class
    """

    _kind: ClassVar[str] = "terminals"

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

    # The backend's own methods

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

    # Commands

    @pytest.mark.parametrize(("command", "status", "output"), COMMANDS, ids=[repr(one[0])[1:-1] for one in COMMANDS])
    def test_command(self, session: Session, command: str, status: int | None, output: str | None) -> None:
        """Commands end as they do in any shell, whatever they do to it."""
        result = session.run(command, timeout=20)
        assert not result.timed_out and result.output_cut == 0 and result.seconds < 30
        assert result.exit_status == status or (status is None and result.exit_status != 0)
        assert output is None or result.output == output

    def test_arguments_are_passed_as_they_are(self, session: Session) -> None:
        """A list of arguments meets no shell."""
        argv = ["printf", "%s|", "a b", "", "'", '"', "$HOME", "\\n", "ü", "\n", "*", "-n"]
        assert session.run(argv, timeout=20).output == "a b||'|\"|$HOME|\\n|ü|\n|*|-n|"

    def test_environment_is_the_sandboxs_own(self, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing of the host's environment is there; what the task and the call say is."""
        monkeypatch.setenv("DEBUG_GYM_CONTRACT_SECRET", "of the host")
        with self.open_session(OWN="value = 'of it'\n") as fresh:
            said = fresh.run(["env"], timeout=20).output
            assert "CONTRACT_SECRET" not in said
            assert "OWN=value = 'of it'\n" in said
            assert "PYTHONHASHSEED=" in said and "PATH=" in said and "HOME=" in said
        assert session.run("echo $CONTRACT $X", env={"X": "1 2"}, timeout=20).output == "yes 1 2\n"
        assert session.run("echo ${CONTRACT-unset}", env={"CONTRACT": None}, timeout=20).output == "unset\n"
        assert session.run('test -w "$HOME" && cd && touch file', timeout=20).exit_status == 0

    def test_working_directory(self, session: Session) -> None:
        """The workspace, or what the call says below it."""
        assert session.mask(session.run("pwd", timeout=20).output) == "/testbed\n"
        session.write("a b/file", b"")
        assert session.run("ls", cwd="a b", timeout=20).output == "file\n"
        with pytest.raises(OSError):
            session.run("ls", cwd="nowhere", timeout=20)

    def test_temporary_files_can_be_made(self, session: Session) -> None:
        """Outside of the workspace."""
        result = session.run('d=$(mktemp -d) && touch "$d/x" && rm -r "$d" && echo made', timeout=20)
        assert result.output == "made\n"

    def test_standard_input(self, session: Session) -> None:
        """Any bytes, also more than a pipe holds."""
        data = bytes(range(256)) * 4096
        result = session.run("wc -c; od -An -tx1 -N0", stdin=data, timeout=20)
        assert result.output.split()[0] == str(len(data))
        assert session.run("cat", stdin=b"a\0b\xff", timeout=20).output == "a\0b\\xff"

    def test_standard_input_that_nobody_reads_holds_nobody_up(self, session: Session) -> None:
        """Of a command that ends, or closes it; without any it is empty."""
        data = bytes(10_000_000)
        assert session.run("true", stdin=data, timeout=20).exit_status == 0
        assert session.run("exec <&-; echo closed", stdin=data, timeout=20).output == "closed\n"
        assert session.run("head -c 3", stdin=b"abcdef", timeout=20).output == "abc"
        assert session.run("wc -c", timeout=20).output.strip() == "0"

    def test_long_arguments(self, session: Session) -> None:
        """As long as the system takes them; longer ones are an error, not the end of the guest."""
        text = "x" * 100_000
        assert session.run(["printf", "%s", text], timeout=20, output_limit=200_000).output == text
        assert session.run(f": {text}; echo long", timeout=20).output == "long\n"
        many = ["true", *["word"] * 20_000]
        assert session.run(many, timeout=20).exit_status == 0
        with pytest.raises(OSError):
            session.run(["true", "x" * 3_000_000], timeout=20)
        assert session.run("echo alive", timeout=20).output == "alive\n"

    def test_every_byte_comes_out(self, session: Session) -> None:
        """What is no UTF-8 is shown as an escape, the rest as it is."""
        output = session.run("cat", stdin=bytes(range(256)), timeout=20).output
        assert output[:128] == bytes(range(128)).decode()
        assert output[128:] == "".join(f"\\x{byte:02x}" for byte in range(128, 256))

    def test_long_output_keeps_head_and_tail(self, session: Session) -> None:
        """And says how much is missing."""
        result = session.run("echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last", timeout=60)
        assert result.output.startswith("first\n") and result.output.endswith("\nlast\n")
        assert result.output_cut > 19_000_000 and len(result.output) < 100_000

    def test_programs_that_do_not_exist(self, session: Session) -> None:
        """An error at once, as Python's own."""
        with pytest.raises(FileNotFoundError):
            session.run(["/no/such/program"], timeout=20)
        with pytest.raises(OSError):
            session.run(["/"], timeout=20)

    def test_python_runs(self, session: Session) -> None:
        """The task's interpreter is there; that of the host is called `python` too."""
        code = "import sys; print(sys.executable)"
        assert session.run([session.python, "-c", code], timeout=30).output.strip() == session.python
        if not self.terminal.runs_images:
            assert session.run("python -c 'print(6 * 7)'", timeout=30).output == "42\n"

    # How commands end

    @pytest.mark.parametrize("survivor", SURVIVORS)
    def test_a_timeout_ends_the_command_and_all_that_it_started(self, session: Session, survivor: str) -> None:
        """Back within two seconds of it, with what was printed, and no process is left."""
        marker = f"marker-{time.monotonic_ns()}"
        started = time.monotonic()
        result = session.run(f"echo begun; {SURVIVORS[survivor]}", env={"MARK": marker}, timeout=0.7)
        seconds = time.monotonic() - started
        assert result.timed_out and result.output.startswith("begun\n")
        assert 0.7 <= seconds < 0.7 + GRACE
        assert self.processes(session, marker) == []

    def test_background_processes_end_with_their_command(self, session: Session) -> None:
        """Nothing goes on running after a command is back."""
        marker = f"marker-{time.monotonic_ns()}"
        command = "sleep 1000 & setsid sleep 1000 & (setsid sh -c 'trap \"\" TERM; sleep 1000 & wait' &); echo done"
        assert session.run(command, env={"MARK": marker}, timeout=20).output == "done\n"
        assert self.processes(session, marker) == []

    def test_programs_are_started_signalled_and_ended(self, session: Session) -> None:
        """A program that goes on beside others."""
        handler = "trap 'echo caught; exit 9' USR1; echo ready; while :; do sleep 0.05; done"
        with session.process(handler, channel=False, follow=True) as process:
            assert process.read_text(20) == b"ready\n"
            assert session.run("echo beside", timeout=20).output == "beside\n"
            process.signal(signal.SIGUSR1)
            assert process.wait(20) == 9
        marker = f"marker-{time.monotonic_ns()}"
        with session.process("trap '' TERM; setsid sleep 1000 & sleep 1000", channel=False, env={"MARK": marker}):
            wait_until(lambda: len(self.processes(session, marker)) >= 2, "the program did not start")
        assert self.processes(session, marker) == []

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGUSR1])
    def test_a_programs_end_by_a_signal_is_told(self, session: Session, number: signal.Signals) -> None:
        """As minus its number."""
        with session.process("echo ready; exec sleep 1000", channel=False, follow=True) as process:
            assert process.read_text(20) == b"ready\n"
            process.signal(number)
            assert process.wait(20) == -number

    def test_terminals_for_interactive_programs(self, session: Session) -> None:
        """A PTY with a size, keys that interrupt, and an end."""
        child = session.spawn(["/bin/sh", "-c", "tty >/dev/null && stty size; trap 'echo INT' INT; cat; echo over"])
        try:
            child.expect(r"\d+ \d+\n", timeout=20)
            child.sendline("ümläut")
            child.expect_exact("ümläut\n", timeout=20)
            child.sendintr()
            child.expect_exact("INT", timeout=20)
            child.expect_exact("over", timeout=20)
            child.expect(pexpect.EOF, timeout=20)
            assert child.wait() == 0
        finally:
            child.close()

    def test_a_terminals_size_and_echo_can_be_changed(self, session: Session) -> None:
        """A program learns its size, and a new one; it echoes nothing unless told to."""
        child = session.spawn(["/bin/sh", "-c", 'stty size; while read line; do stty size; echo "<$line>"; done'])
        try:
            child.expect(r"\d+ \d+\n", timeout=20)
            child.setwinsize(33, 77)
            child.sendline("one")
            child.expect_exact("33 77\n<one>\n", timeout=20)
            assert child.before == "" and not child.getecho()
            child.setecho(True)
            child.sendline("two")
            child.expect_exact("two\n33 77\n<two>\n", timeout=20)
            child.sendeof()
            child.expect(pexpect.EOF, timeout=20)
            assert child.wait() == 0
        finally:
            child.close()

    def test_jobs_can_be_stopped_and_continued(self, session: Session) -> None:
        """Ctrl-Z and Ctrl-C reach the job in the foreground and not the shell."""
        child = session.spawn(["/bin/sh", "-i"], env={"PS1": "ready> ", "ENV": None})
        try:
            child.expect_exact("ready> ", timeout=20)
            # On `local` the processes of others are seen too.
            job = f"sleep {1000 + os.getpid()}"
            child.sendline(job)
            wait_until(lambda: job in _command_lines(session), "it did not start")
            child.sendcontrol("z")
            child.expect_exact("ready> ", timeout=20)
            child.sendline("jobs; fg >/dev/null")
            child.expect("(?i)stopped|suspended", timeout=20)
            wait_until(lambda: _state(session, job) in "SR", "it was not continued")
            child.sendintr()
            child.expect_exact("ready> ", timeout=20)
            assert job not in _command_lines(session)
            child.sendline("exit 3")
            child.expect(pexpect.EOF, timeout=20)
            assert child.wait() == 3
        finally:
            child.close()

    def test_many_commands_at_once(self, session: Session) -> None:
        """Each gets its own output; slow ones hold nobody up."""
        with session.process(["sleep", "1000"], channel=False), ThreadPoolExecutor(12) as pool:
            commands = [f"echo {number}; sleep 0.5; echo {number}" for number in range(24)]
            started = time.monotonic()
            results = list(pool.map(lambda command: session.run(command, timeout=30).output, commands))
        assert results == [f"{number}\n{number}\n" for number in range(24)]
        assert time.monotonic() - started < 24 * 0.5

    def test_many_files_and_programs_at_once(self, session: Session) -> None:
        """From threads, on one sandbox: nobody gets another's answer."""

        def work(number: int) -> None:
            data = bytes([number]) * (1000 + 10_000 * number)
            session.write(f"file-{number}", data)
            with session.process(f"cat file-{number} | wc -c", channel=False, follow=True) as process:
                assert session.read(f"file-{number}") == data
                assert session.run(f"wc -c < file-{number}; exit {number}", timeout=60).exit_status == number
                assert int(process.read_text(60)) == len(data)
                assert process.wait(60) == 0
            session.remove(f"file-{number}")

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(work, range(48)))
        assert list(session.walk(".")) == []

    # Files

    def test_large_files(self, session: Session) -> None:
        """64 MiB in and out, unchanged, in seconds, and in not much more memory than they have."""
        data = os.urandom(1 << 20) * 64
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.monotonic()
        session.write("large", data)
        assert session.run("cksum < large; cp large copy", timeout=60).exit_status == 0
        assert session.read("copy") == data
        assert session.read("copy", 63 << 20, 1 << 19) == data[63 << 20 : (63 << 20) + (1 << 19)]
        assert time.monotonic() - started < 60
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
        assert grown < 6 * 64, f"{grown} MiB more memory"

    @pytest.mark.parametrize(
        "data",
        [bytes(range(256)) * 3, b"", b"\n", b"a", b"\xff\xfe\0\r\n\x0c", "ümläut 漢字".encode(), bytes(3_000_000)],
    )
    def test_files_keep_every_byte(self, session: Session, data: bytes) -> None:
        """Written by us and read by a program, and the other way round."""
        session.write("file", data)
        assert session.read("file") == data
        assert int(session.run("wc -c < file", timeout=20).output) == len(data)
        session.run("cat file > copy", timeout=20)
        assert session.read("copy") == data

    @pytest.mark.parametrize(
        "name", ["a b", "-n", "ümläut", "new\nline", "quote'\"", "*", "n" * 200, "a/b/c/d", "$HOME"]
    )
    def test_files_of_any_name(self, session: Session, name: str) -> None:
        """No name meets a shell."""
        session.write(name, b"content")
        assert session.read(name) == b"content"
        assert session.run(["cat", "--", name], timeout=20).output == "content"
        session.remove(name)
        assert session.stat(name) is None

    def test_links_modes_and_directories(self, session: Session) -> None:
        """They are what they are, and writing does not lead out of the workspace."""
        session.run(
            "mkdir d; echo x > d/f; chmod 751 d/f; ln -s d/f link; ln -s /etc out; ln -s nowhere broken", timeout=20
        )
        kinds = {entry.path: entry.kind for entry in session.walk(".")}
        assert kinds == {"d": "directory", "d/f": "file", "link": "link", "out": "link", "broken": "link"}
        assert session.read("link") == b"x\n"
        found = session.stat("d/f")
        assert found is not None and found.mode == 0o751
        session.write("link", b"y\n")
        assert session.read("d/f") == b"y\n"
        with pytest.raises(OSError):
            session.write("out/debug-gym-contract", b"")
        with pytest.raises(IsADirectoryError):
            session.read("d")

    def test_archives_are_unpacked(self, session: Session) -> None:
        """How a repository comes in."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for name, mode, data in (
                ("run.sh", 0o755, b"#!/bin/sh\necho ran\n"),
                ("deep/er/data", 0o644, bytes(100_000)),
            ):
                member = tarfile.TarInfo(name)
                member.mode, member.size = mode, len(data)
                tar.addfile(member, io.BytesIO(data))
        session.put(archive.getvalue())
        assert session.run(["./run.sh"], timeout=20).output == "ran\n"
        assert len(session.read("deep/er/data")) == 100_000

    # What is left

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

    # Isolation

    @pytest.fixture
    def isolated(self, session: Session) -> Session:
        """The sandbox, of a backend that isolates."""
        if not self.terminal.isolates:
            pytest.skip(f"{self.terminal.name} says that it does not isolate")
        return session

    def test_files_of_the_host_are_not_there(self, isolated: Session, tmp_path: Path) -> None:
        """Neither the home directory nor what lies in temporary directories; the system cannot be written."""
        (tmp_path / "secret").write_text("of the host")
        for file in (tmp_path / "secret", Path.home() / ".ssh", Path.home() / ".bash_history"):
            assert isolated.run(["cat", str(file)], timeout=20).exit_status != 0
        for path in ("/usr/contract", "/etc/contract", "/contract", "/bin/sh"):
            assert isolated.run(f"echo x >> {path}", timeout=20).exit_status != 0

    def test_network_of_the_host_is_not_there(self, isolated: Session) -> None:
        """Not even its loopback."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 3)"
            result = isolated.run([isolated.python, "-c", code], timeout=20)
            assert result.exit_status == 1 and "Error" in result.output
            assert isolated.run("ls /sys/class/net 2>/dev/null | grep -v '^lo$'", timeout=20).output in (
                "",
                "bonding_masters\n",
            )

    def test_commands_have_no_privileges(self, isolated: Session) -> None:
        """No root, no capability, no way to gain one, and system calls are filtered."""
        status = dict(
            line.split(":\t", 1)
            for line in isolated.run("cat /proc/self/status", timeout=20).output.splitlines()
            if ":\t" in line
        )
        assert set(status["Uid"].split()) != {"0"}
        assert {status[name].strip("0") for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {""}
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"

    def test_processes_of_the_host_are_not_seen(self, isolated: Session) -> None:
        """Nor can they be signalled."""
        assert isolated.run(f"grep -l {os.getpid()} /proc/*/environ", timeout=20).exit_status != 0
        marker = f"marker-{time.monotonic_ns()}"
        child = subprocess.Popen(["sleep", "1000"], env={"MARK": marker, "PATH": os.defpath})
        try:
            assert processes_with(marker) == [child.pid]
            assert self.processes(isolated, marker) == []
        finally:
            child.kill()
            child.wait()

    # Parts of the tests

    def processes(self, session: Session, marker: str) -> list[int]:
        """Processes in the sandbox with a text in their environment."""
        find = session.run([session.python, "-c", FIND, marker], timeout=30)
        assert find.exit_status == 0, find.output
        return [int(pid) for pid in find.output.split()]


def _command_lines(session: Session) -> str:
    return session.run("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '", timeout=20).output


def _state(session: Session, command: str) -> str:
    """The state of the process of a command, as /proc tells it."""
    look = 'for one in /proc/[0-9]*; do [ "$(tr "\\0" " " <$one/cmdline)" != "$1 " ] || cat $one/stat; done 2>/dev/null'
    found = session.run(["sh", "-c", look, "sh", command], timeout=20).output
    return found.rpartition(")")[2].split()[0] if found else "?"


def read_all(stream: Stream, *, close: bool = True) -> str:
    """What comes over a stream until its end."""
    output = b""
    while data := stream.read(65536):
        output += data
    if close:
        stream.close()
    return output.decode()
