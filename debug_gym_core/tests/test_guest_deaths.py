"""What happens when parts of the guest die, hang or are missing."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from guest_programs import STUBBORN, children, pids, program
from warm_programs import AT_ONCE, Programs, zygotes

from debug_gym_core.errors import SandboxLost
from debug_gym_core.sandbox.connection import BOOT, guest_program
from debug_gym_core.sandbox.frames import FrameReader, pack
from debug_gym_core.sandbox.replies import CommandLost, Waiter
from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing import is_alive, wait_until


def test_killed_guest_is_a_typed_error_then_all_goes_on(session: Session) -> None:
    session.write("kept", b"content")
    pid = session.guest()["pid"]
    errors: list[BaseException] = []

    def wait_for_command() -> None:
        try:
            session.run("echo $$ > pid.new; mv pid.new pid; sleep 100")
        except BaseException as error:
            errors.append(error)

    process = session.process(program("while True: send(receive())"))
    thread = threading.Thread(target=wait_for_command)
    thread.start()
    (command,) = pids(session, "pid")
    os.kill(pid, signal.SIGKILL)
    thread.join(60)
    assert [type(error) for error in errors] == [SandboxLost]
    with pytest.raises(SandboxLost, match="child sandbox"):
        process.receive(60)
    with pytest.raises(SandboxLost):
        process.wait(60)
    process.kill()
    assert session.read("kept") == b"content"
    assert session.restarts == 1
    assert session.run("echo again").output == "again\n"
    assert session.guest()["pid"] != pid
    wait_until(lambda: not is_alive(command) and not is_alive(process.pid))


def test_lost_terminal_stays_lost(session: Session) -> None:
    os.kill(session.guest()["pid"], signal.SIGKILL)
    session.terminal.stands = False  # type: ignore[attr-defined]
    for _ in range(3):
        with pytest.raises(SandboxLost, match="gone"):
            session.run("true")
    assert session.restarts == 0


def test_killed_keeper_costs_one_command(session: Session) -> None:
    together = "touch here{}; until [ -e here0 -a -e here1 -a -e here2 ]; do sleep 0.01; done; echo $PPID"
    with ThreadPoolExecutor(3) as threads:  # so many keepers wait for the next commands then
        waiting = set(threads.map(lambda number: session.run(together.format(number)).output, range(3)))
    with session.process(program("while True: send(receive())")) as other:
        with pytest.raises(CommandLost, match="kill -KILL"):
            session.run("echo $$ > pid; sleep 100 & kill -KILL $PPID; sleep 100", timeout=60)
        assert not is_alive(pids(session, "pid")[0])
        other.send(b"unharmed")
        assert other.receive(60) == b"unharmed"
        # Whatever killed one may have killed those that waited, which nobody knows yet: they get no command.
        assert len(waiting) == 3 and session.run("echo $PPID").output not in waiting
    assert session.restarts == 0


def test_killed_keeper_of_a_process(session: Session) -> None:
    process = session.process(program("send(b'%d' % os.getppid()); receive()"))
    os.kill(int(process.receive(60) or b""), signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(CommandLost, match="the command killed it, or memory ran out"):
            process.receive(60)
    with pytest.raises(CommandLost):
        process.wait(60)
    assert not is_alive(process.pid)
    assert session.run("echo fine").output == "fine\n"


def test_stopped_keeper_goes_on(session: Session) -> None:
    started = time.monotonic()
    assert session.run("kill -STOP $PPID; echo on; sleep 100", timeout=0.5).output == "on\n"
    assert time.monotonic() - started < 30


@contextlib.contextmanager
def stopped(process: int) -> Iterator[None]:
    """Have a process get no time until the end of this block."""
    os.kill(process, signal.SIGSTOP)
    wait_until(lambda: _state(process) == "T")
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


@contextlib.contextmanager
def held_up(process: int) -> Iterator[None]:
    """Have a process get no time at all, whoever continues it; it can only be killed."""
    seize, interrupt = 0x4206, 0x4207  # linux/ptrace.h
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    if ptrace(seize, process, None, None) != 0:
        pytest.skip(f"ptrace is not allowed here: {os.strerror(ctypes.get_errno())}")
    ptrace(interrupt, process, None, None)
    wait_until(lambda: _state(process) == "t")
    try:
        yield
    finally:
        while not os.WIFSIGNALED(os.waitpid(process, 0x40000000)[1]):  # __WALL
            pass


@pytest.mark.faults
def test_a_keeper_that_gets_no_time_is_a_timeout(session: Session) -> None:
    """As of a command that takes all processors, a bomb: it has timed out, whoever ended it."""
    with ThreadPoolExecutor(1) as pool:
        command = "echo printed; echo $$ >command; echo $PPID >keeper; exec sleep 100"
        started = time.monotonic()
        waiting = pool.submit(session.run, command, timeout=1.0)
        process, keeper = pids(session, "command", "keeper")
        with held_up(keeper):
            result = waiting.result()
    assert result.timed_out and result.exit_status == -signal.SIGKILL
    assert result.output == "(What it printed is lost: it took all processor time.)\n"
    assert 1.0 <= result.seconds <= time.monotonic() - started < 30
    assert not is_alive(process)
    assert session.run("echo fine").output == "fine\n" and session.restarts == 0


@pytest.mark.parametrize("how", ["never reached it", "never read it"])
def test_what_a_kept_helper_has_not_taken_is_done_by_another(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """It was killed, as by `kill -9 -1`, and its death is not seen yet when the next request comes."""
    session, programs.warm = programs.session, AT_ONCE
    session.write("file", b"content")
    assert programs.run("say(0)") == (0, True)
    session.run("true")
    guest = session.guest()["pid"]
    helpers = children(guest)
    assert len(helpers) >= 3 and zygotes(guest)  # the file worker, the keeper of a zygote, one that waits
    connection = session._connect()
    sent: list[bytes] = []
    write = connection._write
    monkeypatch.setattr(connection, "_write", lambda frame: (write(frame), sent.append(frame)))
    requests = [lambda: session.read("file"), lambda: session.run("echo fine").output, lambda: programs.run("say(0)")]
    with ThreadPoolExecutor(3) as threads:
        with contextlib.ExitStack() as at_end:
            for process in [guest] if how == "never reached it" else helpers:
                at_end.enter_context((stopped if process == guest else held_up)(process))
            answers = [threads.submit(one) for one in requests]  # type: ignore[arg-type, var-annotated]
            wait_until(lambda: len(sent) == 3)
            if how == "never read it":
                connection.request("ping", timeout=60)  # what came before it was passed on
            for process in helpers:
                os.kill(process, signal.SIGKILL)
            wait_until(lambda: not any(map(is_alive, helpers)))
        assert [one.result() for one in answers] == [b"content", "fine\n", (0, False)]
    assert session.restarts == 0


def test_what_a_helper_may_have_begun_is_not_done_again(session: Session) -> None:
    """Though it has not read what was sent after its request."""
    session.run("true")
    known = set(children(session.guest()["pid"]))
    connection, waiter = session._connect(), Waiter()
    number = connection.submit(waiter, "put", path=".")
    assert connection.wait(waiter, "put", 60)[0]["t"] == "go"
    (worker,) = set(children(session.guest()["pid"])) - known
    with held_up(worker):
        connection.send({"op": "chunk", "of": number}, b"x")
        connection.request("ping", timeout=60)
        os.kill(worker, signal.SIGKILL)
    with pytest.raises(CommandLost, match="the file worker at put died"):
        connection.wait(waiter, "put", 60)
    session.write("file", b"content")
    assert session.read("file") == b"content" and session.restarts == 0


def test_hung_guest_is_given_up(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("debug_gym_core.sandbox.session.GRACE", 0.3)
    pid = session.guest()["pid"]
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(session.terminal.streams[-1], "close", lambda: os.kill(pid, signal.SIGKILL))  # type: ignore[attr-defined]
    with pytest.raises(SandboxLost, match="did not answer"):
        session.run("true", timeout=0.2)


def test_nothing_is_left_when_the_host_goes(python: str, tmp_path: Path) -> None:
    """Not a session: a host that vanishes without a word."""
    guest = subprocess.Popen(
        [python, "-I", "-S", "-c", BOOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
    )
    assert guest.stdin is not None and guest.stdout is not None
    guest.stdin.write(guest_program("none"))
    guest.stdin.write(pack({"id": 1, "op": "start", "root": str(tmp_path), "env": {}}))
    command = {"cwd": ".", "output_limit": 100, "timeout": None}
    code = STUBBORN + "time.sleep(100)"
    guest.stdin.write(pack({"id": 2, "op": "run", "argv": [sys.executable, "-c", code], **command}))
    guest.stdin.write(pack({"id": 3, "op": "process", "pty": True, "shell": "echo $$ > third; sleep 100", **command}))
    guest.stdin.flush()
    wait_until(lambda: all((tmp_path / name).exists() for name in ("first", "second", "third")))
    wait_until(lambda: all((tmp_path / name).read_text().endswith("\n") for name in ("first", "second", "third")))
    processes = [int((tmp_path / name).read_text()) for name in ("first", "second", "third")]
    helpers = children(guest.pid)
    assert all(map(is_alive, processes))
    assert helpers
    guest.stdin.close()
    assert guest.wait(60) == 0
    guest.stdout.close()
    assert not any(map(is_alive, processes + helpers))


def test_guest_waits_for_a_host_that_does_not_read(python: str, tmp_path: Path) -> None:
    size = 60_000_000
    with (tmp_path / "big").open("wb") as file:
        file.truncate(size)
    guest = subprocess.Popen(
        [python, "-I", "-S", "-c", BOOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
    )
    assert guest.stdin is not None and guest.stdout is not None
    guest.stdin.write(guest_program("none"))
    guest.stdin.write(pack({"id": 1, "op": "start", "root": str(tmp_path), "env": {}}))
    guest.stdin.write(pack({"id": 2, "op": "read", "path": "big"}))
    guest.stdin.flush()

    def peaks() -> list[int]:
        processes = [guest.pid, *children(guest.pid)]
        return [int(_status(process).partition("VmHWM:")[2].split()[0]) for process in processes]

    used: list[str] = []

    def idle() -> bool:
        used.append(_cpu(guest.pid))
        return len(used) > 40 and len(set(used[-40:])) == 1

    seen = 0
    reader = FrameReader()
    done = False
    while not done:
        for header, body in reader.feed(os.read(guest.stdout.fileno(), 1 << 16)):
            seen += len(body)
            done = header["t"] == "done"
            if header["t"] == "hello":  # and now the host looks away until nothing moves any more
                wait_until(idle)
                assert max(peaks()) < 45_000
    assert seen == size
    guest.stdin.close()
    assert guest.wait(60) == 0
    guest.stdout.close()


def _status(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _cpu(pid: int) -> str:
    """The processor time used, as text."""
    return " ".join(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])


# -- as the first process of a pid namespace


@pytest.fixture
def first_process(python: str, tmp_path: Path) -> subprocess.Popen[bytes]:
    command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", python, "-I", "-S", "-c", BOOT]
    if os.getuid() != 0:
        command[1:1] = ["--user", "--map-root-user"]
    if subprocess.run([*command[: command.index(python)], "true"], capture_output=True).returncode != 0:
        pytest.skip("no pid namespaces here")
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path)


class _Pipes:
    def __init__(self, guest: subprocess.Popen[bytes]) -> None:
        assert guest.stdin is not None and guest.stdout is not None
        self.guest, self.stdin, self.stdout = guest, guest.stdin, guest.stdout

    def read(self, size: int) -> bytes:
        return os.read(self.stdout.fileno(), size)

    def write(self, data: bytes | memoryview) -> None:
        self.stdin.write(data)
        self.stdin.flush()

    def close(self) -> None:
        self.stdin.close()
        self.guest.wait(60)


def test_first_process_of_a_namespace(
    session: Session, first_process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipes = _Pipes(first_process)
    session.terminal.streams[-1].close()  # type: ignore[attr-defined]
    monkeypatch.setattr(session.terminal, "open", lambda argv: pipes)
    wait_until(lambda: not session._held.connection.alive)  # type: ignore[union-attr]
    assert session.guest()["pid"] == 1
    assert session.run("echo hello").output == "hello\n"
    # Nothing in the namespace can end it, and orphans are not left as zombies.
    assert session.run("kill -KILL 1; kill -TERM 1; kill -INT 1; echo survived").output == "survived\n"
    with pytest.raises(CommandLost):
        session.run("kill -KILL -1; echo not; kill -KILL $PPID; sleep 100", timeout=60)
    result = session.run(["python3", "-c", STUBBORN + "time.sleep(100)"], timeout=0.5)
    assert result.timed_out
    listing = session.run("ps -A -o stat= -o args=").output
    assert "Z" not in {line.split()[0][0] for line in listing.splitlines()}, listing
    assert "STUBBORN" not in listing and "setsid" not in listing
    session.close()
    assert first_process.returncode == 0
    pipes.stdout.close()


# -- without what the system usually offers


@pytest.mark.faults
def test_orphans_are_found_without_ctypes(
    open_session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a marker in their environment, since there is no prctl to become their parent."""
    hidden = BOOT.replace("import os, sys\n", "import os, sys\nsys.modules['ctypes'] = None\n")
    monkeypatch.setattr("debug_gym_core.sandbox.connection.BOOT", hidden)
    session = open_session()
    assert any("ctypes" in note for note in session.guest()["notes"])
    result = session.run(["python3", "-c", STUBBORN + "time.sleep(100)"], timeout=3)
    assert (result.timed_out, result.output) == (True, "grandchild\n")
    assert not any(map(is_alive, pids(session, "first", "second")))
    assert session.run(["python3", "-c", STUBBORN + "time.sleep(0.2)"]).exit_status == 0
    assert not any(map(is_alive, pids(session, "first", "second")))
    argv = ["python3", "-c", "import os, sys; print(os.read(int(sys.argv[1]), 9))", "{blob:x}"]
    with session.process(argv, channel=False, blobs={"x": b"blob"}) as process:
        assert process.wait(60) == 0
        assert process.take_output() == ("b'blob'\n", 0)
