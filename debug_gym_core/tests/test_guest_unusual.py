"""What is rare in the guest: odd files and archives, requests that come late or make no sense, helpers that die."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import tarfile
import threading
import time
from pathlib import Path

import pytest

from debug_gym_core.errors import SandboxError
from debug_gym_core.sandbox.grep import Query
from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing import is_alive, wait_until
from debug_gym_core.workspace.rules import Rules

STUBBORN = "trap '' TERM; echo $$ > pid.new; mv pid.new pid; while :; do sleep 0.1; done"


def pid_of(session: Session) -> int:
    wait_until(lambda: session.stat("pid") is not None)
    return int(session.read("pid"))


def archive(*members: tarfile.TarInfo, data: bytes = b"data", form: int = tarfile.GNU_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as tar:
        for member in members:
            if member.isreg():
                member.size = len(data)
            tar.addfile(member, io.BytesIO(data) if member.isreg() else None)
    return file.getvalue()


def member(name: str, **fields: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(made, key, value)
    return made


# -- files


def test_lines_of_what_is_no_file(session: Session) -> None:
    session.write("dir/file", b"1\n")
    os.mkfifo(Path(session.root, "pipe"))
    with pytest.raises(IsADirectoryError):
        session.lines("dir", 1, 1, 100)
    with pytest.raises(OSError, match="Not a regular file"):
        session.lines("pipe", 1, 1, 100)
    assert session.lines("dir/file", 1, 1, 100).data == b"1\n"


@pytest.mark.parametrize("modified", [-86400, 0, 1 << 33])
def test_numbers_beyond_the_octal_ones_of_an_archive(session: Session, modified: int) -> None:
    """GNU tar writes those in base 256: times before 1970 and far away."""
    session.put(archive(member("file", mtime=modified, uid=1 << 30)))
    assert session.read("file") == b"data"
    assert Path(session.root, "file").stat().st_mtime == modified


def test_an_archives_file_does_not_replace_a_directory(session: Session) -> None:
    session.write("place/kept", b"kept")
    with pytest.raises(IsADirectoryError) as caught:
        session.put(archive(member("before"), member("place"), member("after")))
    assert caught.value.filename == "place"
    assert session.read("place/kept") == b"kept"
    assert session.read("before") == b"data"
    assert session.stat("after") is None


def test_devices_in_an_archive_are_passed_over(session: Session) -> None:
    device = member("device", type=tarfile.CHRTYPE, devmajor=1, devminor=3)
    pipe = member("pipe", type=tarfile.FIFOTYPE)
    session.put(archive(device, pipe, member("file")))
    assert [entry.path for entry in session.walk()] == ["file"]


def test_names_of_one_file_in_a_directory_moved_into_sight(session: Session, tmp_path: Path) -> None:
    list(session.walk(watch=[]))
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "a").write_text("1")
    (tmp_path / "new" / "b").hardlink_to(tmp_path / "new" / "a")
    session.run(["mv", str(tmp_path / "new"), "."])
    assert session.changed() is None


@pytest.mark.parametrize("pattern", ["(?i)ERROR", "(?x) err  or # comment", "err(?#comment)or", "(?P<a>e)rror"])
def test_patterns_with_flags_and_comments(session: Session, pattern: str) -> None:
    session.write("log.txt", b"fine\nan error\nfine\n")
    found = session.grep(".", Query(pattern), Rules().ignore_patterns())
    assert [(file.path, [line.number for line in file.lines]) for file in found.files] == [("log.txt", [2])]


def test_search_below_what_leads_out_is_refused(session: Session, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("secret")
    Path(session.root, "out").symlink_to(tmp_path)
    for path in ("out", "..", "out/file"):
        with pytest.raises(PermissionError, match="leads out of the workspace"):
            session.grep(path, Query("secret"), Rules().ignore_patterns())
    with pytest.raises(FileNotFoundError):
        session.grep("missing", Query("secret"), Rules().ignore_patterns())


# -- programs


def test_echo_of_a_program_without_a_terminal(session: Session) -> None:
    with session.process(["sleep", "100"], channel=False) as process:
        assert process.echo() is False
        assert process.echo(True) is False
        process.resize(10, 10)
        assert process.running
    assert process.echo() is False


def test_kill_during_the_grace_of_a_timeout(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends the grace: the program is gone when `kill` returns."""
    with session.process(["bash", "-c", STUBBORN], channel=False, timeout=0.3) as process:
        pid = pid_of(session)
        time.sleep(0.35)
        process.kill()
        assert not is_alive(pid)
        assert process.returncode == -signal.SIGKILL


def test_unknown_requests_are_refused_and_cost_nothing(session: Session) -> None:
    session.write("file", b"1")
    with session.process(["sleep", "100"], channel=False) as process:
        connection = session._held.connection
        assert connection is not None
        with pytest.raises(SandboxError, match="unknown request"):
            connection.request("nonsense", timeout=10, of=process._id)
        assert process.running and session.read("file") == b"1"


def test_idle_helpers_that_die_are_replaced(session: Session) -> None:
    """The ones that wait for the next command, and the one that serves files."""
    session.write("file", b"1")
    for _ in range(3):
        assert session.run("echo fine").output == "fine\n"
        guest = session.guest()["pid"]
        children = Path(f"/proc/{guest}/task/{guest}/children").read_text().split()
        assert children
        for child in map(int, children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        wait_until(lambda dead=children: not any(is_alive(int(child)) for child in dead))  # type: ignore[misc]
    assert session.read("file") == b"1"
    assert session.run("echo fine").output == "fine\n"
    assert session.restarts == 0


def test_host_that_goes_while_it_is_written_to(session: Session) -> None:
    """A stream that breaks while the guest has much to say: it ends what runs."""
    pid: list[int] = []
    process = session.process(["bash", "-c", "echo $$ > pid.new; mv pid.new pid; yes"], channel=False, follow=True)
    pid.append(pid_of(session))
    guest = session.guest()["pid"]
    stream = session.terminal.streams[-1]  # type: ignore[attr-defined]
    threading.Thread(target=stream.close).start()
    wait_until(lambda: not is_alive(pid[0]) and not is_alive(guest))
    wait_until(lambda: not process.running)  # the connection's own thread finds out
