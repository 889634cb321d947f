"""Files through a session; how a session starts, ends and counts its commands."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from file_names import names, quick
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.sandbox.connection import Connection
from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing import is_alive, wait_until


@quick
@given(parts=st.lists(names, min_size=1, max_size=4), data=st.binary(max_size=5000))
def test_any_bytes_under_any_name(session: Session, parts: list[str], data: bytes) -> None:
    path = "/".join(parts)
    session.write(path, data)
    assert session.read(path) == data
    entry = session.stat(path)
    assert entry is not None
    assert (entry.path, entry.kind, entry.size, entry.mode) == (path, "file", len(data), 0o644)
    walked = list(session.walk())
    assert [entry.path for entry in walked] == ["/".join(parts[: count + 1]) for count in range(len(parts))]
    assert walked[-1] == entry
    session.remove(parts[0])
    assert list(session.walk()) == []


@pytest.mark.parametrize("size", [0, 1, 65536, 262_143, 262_144, 262_145, 5_000_000])
def test_sizes(session: Session, size: int) -> None:
    data = os.urandom(size)
    session.write("file", data)
    assert session.read("file") == data
    assert session.read("file", offset=10, size=100) == data[10:110]
    assert session.read("file", offset=size // 2) == data[size // 2 :]
    assert session.read("file", offset=size + 1) == b""


def test_write_keeps_the_mode_or_sets_it(session: Session) -> None:
    def mode() -> int:
        entry = session.stat("script")
        assert entry is not None
        return entry.mode

    session.write("script", b"one")
    assert mode() == 0o644
    session.write("script", b"two", mode=0o755)
    assert mode() == 0o755
    session.write("script", b"three")
    assert mode() == 0o755


def test_write_is_atomic(session: Session) -> None:
    """Who has the old file open keeps reading it whole; no temporary file stays."""
    session.write("file", b"old" * 1000)
    with Path(session.root, "file").open("rb") as file:
        assert file.read(3) == b"old"
        session.write("file", b"new")
        assert file.read() == b"old" * 999
    assert [entry.path for entry in session.walk()] == ["file"]


def test_relative_paths_stay_in_the_workspace(session: Session, tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "file").write_bytes(b"outside")
    root = Path(session.root)
    (root / "link").symlink_to(tmp_path / "dir" / "file")
    (root / "above").symlink_to(tmp_path)
    for path in ("link", "above/dir/file", os.path.relpath(tmp_path / "dir" / "file", session.root)):
        with pytest.raises(PermissionError, match="leads out of the workspace"):
            session.read(path)
        assert session.lines(path, 1, 1, 100).data == b""
    for path in ("above/dir", os.path.relpath(tmp_path / "dir", session.root)):
        with pytest.raises(PermissionError, match="leads out of the workspace"):
            list(session.walk(path))
        with pytest.raises(PermissionError, match="leads out of the workspace"):
            session.stat(f"{path}/file")
    assert [entry.path for entry in session.walk()] == ["above", "link"]
    entry = session.stat("link")
    assert entry is not None and entry.kind == "link"
    assert session.read(f"{tmp_path}/dir/file") == b"outside"
    assert [entry.path for entry in session.walk(str(tmp_path / "dir"))] == [f"{tmp_path}/dir/file"]


def test_write_through_links(session: Session, tmp_path: Path) -> None:
    session.write("dir/target", b"old", mode=0o600)
    root = Path(session.root)
    (root / "link").symlink_to("dir/target")
    (root / "dirlink").symlink_to("dir")
    (root / "dangling").symlink_to("dir/new")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "outdir").symlink_to(tmp_path)
    (root / "loop").symlink_to("loop")
    session.write("link", b"through link")
    assert session.read("dir/target") == b"through link"
    assert (root / "link").is_symlink()
    session.write("dirlink/target", b"through directory")
    assert session.read("dir/target") == b"through directory"
    session.write("dangling", b"made")
    assert session.read("dir/new") == b"made"
    for path in ("out", "outdir/file", "../file", "dir/../../file", "/etc/debug-gym", f"{tmp_path}/file"):
        with pytest.raises(PermissionError, match="leads out of the workspace") as caught:
            session.write(path, b"escaped")
        assert caught.value.filename == path
    assert list(tmp_path.iterdir()) == []
    session.write("out", b"wanted", follow=True)
    assert (tmp_path / "outside").read_bytes() == b"wanted"
    with pytest.raises(OSError, match="symbolic links"):
        session.write("loop", b"")


@pytest.mark.parametrize(
    ("operation", "path", "error"),
    [
        ("read", "missing", FileNotFoundError),
        ("read", "missing/file", FileNotFoundError),
        ("read", "file/below", NotADirectoryError),
        ("read", "dir", IsADirectoryError),
        ("read", "pipe", OSError),
        ("read", "loop", OSError),
        ("read", "nul\0name", OSError),
        ("read", "x" * 300, OSError),
        ("write", "dir", IsADirectoryError),
        ("write", "dir/", IsADirectoryError),
        ("write", ".", IsADirectoryError),
        ("write", "file/below", NotADirectoryError),
        ("write", "x" * 300, OSError),
        ("walk", "missing", FileNotFoundError),
        ("walk", "file", NotADirectoryError),
        ("remove", ".", PermissionError),
        ("remove", "", PermissionError),
        ("remove", "..", PermissionError),
        ("remove", "outdir/file", PermissionError),
    ],
)
def test_errors_are_pythons_own(
    session: Session, tmp_path: Path, operation: str, path: str, error: type[OSError]
) -> None:
    session.write("file", b"")
    session.write("dir/file", b"")
    root = Path(session.root)
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to("loop")
    (root / "outdir").symlink_to(tmp_path)
    (tmp_path / "file").touch()
    call: Callable[..., object] = getattr(session, operation)
    with pytest.raises(error) as caught:
        call(path, b"data") if operation == "write" else call(path)
    assert caught.value.filename == path
    assert caught.value.errno
    assert (tmp_path / "file").exists()
    assert session.read("file") == b""


def test_remove(session: Session, tmp_path: Path) -> None:
    (tmp_path / "outside").touch()
    session.write("tree/a/b/file", b"")
    root = Path(session.root)
    (root / "tree/a/link").symlink_to(tmp_path)
    (root / "tree/a").chmod(0o500)
    session.remove("tree/a/link/../missing")
    session.remove("missing/deeper")
    session.remove("tree")
    session.remove("tree")
    assert list(session.walk()) == []
    (root / "link").symlink_to(tmp_path)
    session.remove("link")
    assert list(session.walk()) == []
    assert (tmp_path / "outside").exists()


def test_walk(session: Session, tmp_path: Path) -> None:
    for path in ("b/x", "b/.git/config", "a-b", "a/z", "a/c/d/e", "c"):
        session.write(path, path.encode())
    root = Path(session.root)
    (root / "link").symlink_to("a")
    (root / "broken").symlink_to("nowhere\udcff")
    os.mkfifo(root / "pipe")
    everything = [
        ("a", "directory"),
        ("a/c", "directory"),
        ("a/c/d", "directory"),
        ("a/c/d/e", "file"),
        ("a/z", "file"),
        ("a-b", "file"),
        ("b", "directory"),
        ("b/.git", "directory"),
        ("b/.git/config", "file"),
        ("b/x", "file"),
        ("broken", "link"),
        ("c", "file"),
        ("link", "link"),
        ("pipe", "other"),
    ]
    entries = list(session.walk())
    assert [(entry.path, entry.kind) for entry in entries] == everything
    assert {entry.path: entry.target for entry in entries if entry.target} == {"broken": "nowhere\udcff", "link": "a"}
    assert [entry.path for entry in session.walk(prune=[".git", "c"]) if "/" in entry.path] == [
        "a/c",
        "a/z",
        "b/.git",
        "b/x",
    ]
    assert [entry.path for entry in session.walk("a", depth=1)] == ["a/c", "a/z"]
    assert [entry.path for entry in session.walk("a/", depth=2)] == ["a/c", "a/c/d", "a/z"]
    assert [entry.path for entry in session.walk("./a/c")] == ["./a/c/d", "./a/c/d/e"]


def test_walk_over_many_entries(session: Session) -> None:
    root = Path(session.root)
    for number in range(2300):
        (root / f"{number:05}").touch()
    assert [entry.path for entry in session.walk()] == [f"{number:05}" for number in range(2300)]


def test_stamp_tells_every_change(session: Session) -> None:
    path = Path(session.root, "file")

    def stamp() -> str:
        entry = session.stat("file")
        assert entry is not None
        return entry.stamp

    session.write("file", b"12345")
    seen = [stamp()]
    assert stamp() == seen[0]
    before = path.stat()
    path.write_bytes(b"54321")  # same size, and the time put back
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    seen.append(stamp())
    path.chmod(0o600)
    seen.append(stamp())
    path.rename(path.with_name("other"))
    path.write_bytes(b"54321")
    seen.append(stamp())
    path.unlink()
    path.mkdir()
    seen.append(stamp())
    assert len(set(seen)) == len(seen)


def test_stat_and_realpath(session: Session) -> None:
    session.write("dir/file", b"abc")
    root = Path(session.root)
    (root / "link").symlink_to("dir/file")
    (root / "away").symlink_to("/etc")
    link = session.stat("link")
    assert link is not None
    assert (link.kind, link.target) == ("link", "dir/file")
    assert session.stat("missing") is None
    assert session.stat("dir/file/below") is None
    top = session.stat(".")
    assert top is not None and top.kind == "directory"
    assert session.realpath("link") == f"{session.root}/dir/file"
    assert session.realpath("away/passwd") == "/etc/passwd"
    assert session.realpath("missing/../new") == f"{session.root}/new"


@pytest.mark.parametrize("depth", [3, 1500])
def test_trees_are_removed_however_deep(session: Session, depth: int) -> None:
    make = (
        "import os\nfor name in ('keep', 'tree'): os.mkdir(name)\n"
        f"os.chdir('tree')\nfor number in range({depth}):\n"
        "    open('file', 'w').close(); os.symlink('/', 'link'); os.mkdir('a'); os.mkdir('b'); os.chdir('a')\n"
        "    if number % 500 == 0: os.chmod('../b', 0)\n"
    )
    assert session.run(["python3", "-c", make]).exit_status == 0
    session.remove("tree")
    assert [entry.path for entry in session.walk()] == ["keep"]


# -- the session


def test_mask(session: Session) -> None:
    assert session.mask(session.run("pwd; echo $PWD/a").output) == "/testbed\n/testbed/a\n"


def test_guest_that_does_not_start_names_the_cause(open_session: Callable[..., Session]) -> None:
    session = open_session()
    session.close()
    with pytest.raises(SandboxLost, match="closed"):
        session.run("true")
    terminal = type(session.terminal)("/bin/false")  # type: ignore[call-arg]
    with pytest.raises(SandboxError, match="child sandbox: the guest did not start"):
        Session.start(terminal, session.spec)
    terminal = type(session.terminal)("/bin/echo")  # type: ignore[call-arg]
    with pytest.raises(SandboxError, match="corrupt"):
        Session.start(terminal, session.spec)
    broken = type(session.terminal)("/bin/sh")  # type: ignore[call-arg]
    with pytest.raises(SandboxError, match=r"guest is gone.*; its log ends with: .*[Ii]llegal|invalid"):
        Session.start(broken, session.spec)


def test_close_twice(session: Session) -> None:
    session.close()
    session.close()


def test_closing_waits_for_no_guest_that_does_not_start(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is started again, and hangs; who waits for it learns that the session was closed."""
    monkeypatch.setattr("debug_gym_core.sandbox.connection.START_TIMEOUT", 30.0)
    hanging = tmp_path / "hanging"
    hanging.write_text(f"#!/bin/sh\ntouch {tmp_path}/begun; exec cat > /dev/null\n")
    hanging.chmod(0o755)
    os.kill(session.guest()["pid"], signal.SIGKILL)
    wait_until(lambda: session._held.connection is None or not session._held.connection.alive)
    session.terminal.python = str(hanging)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(session.run, "true")
        wait_until((tmp_path / "begun").exists)
        began = time.monotonic()
        session.close()
        with pytest.raises(SandboxError):
            waiting.result(60)
        assert time.monotonic() - began < 20
    with pytest.raises(SandboxLost, match="the session was closed"):
        session.run("true")


def test_a_guest_that_starts_when_the_session_was_closed_is_ended(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed between its last word at the start and its being taken into use."""
    os.kill(session.guest()["pid"], signal.SIGKILL)
    wait_until(lambda: session._held.connection is None or not session._held.connection.alive)
    started: list[Connection] = []

    def start(*arguments: Any) -> Connection:
        started.append(Connection(*arguments))
        session.close()
        return started[0]

    monkeypatch.setattr("debug_gym_core.sandbox.session.Connection", start)
    with pytest.raises(SandboxLost, match="the session was closed"):
        session.run("true")
    assert not started[0].alive and not is_alive(started[0].hello["pid"])


def test_commands_are_counted(session: Session) -> None:
    before = session.commands
    assert not session.busy
    session.run("true")
    process = session.process(["cat"], channel=False, stdin=True)
    assert (session.commands, session.busy) == (before + 2, True)
    process.kill()
    assert not session.busy


@pytest.mark.parametrize(
    ("command", "timeout", "words"),
    [
        ("true", "5", "timeout is a number of seconds, or None, not '5'"),
        ("true", True, "timeout is a number of seconds"),
        (None, None, "a command is text, or a list of texts, not None"),
        (["echo", 5], None, r"a command is text, or a list of texts, not \['echo', 5\]"),
        ([], None, r"a command is text, or a list of texts, not \[\]"),
    ],
)
def test_a_command_that_is_none_costs_nothing(session: Session, command: Any, timeout: Any, words: str) -> None:
    guest = session.guest()["pid"]
    with pytest.raises(TypeError, match=words):
        session.run(command, timeout=timeout)
    with pytest.raises(ValueError, match="not nan"):
        session.run("true", timeout=float("nan"))
    with pytest.raises(TypeError, match=r"variables of a command are texts, or None, not \{'X': 3\}"):
        session.run("true", env={"X": 3})  # type: ignore[dict-item]
    assert session.guest()["pid"] == guest and session.restarts == 0
