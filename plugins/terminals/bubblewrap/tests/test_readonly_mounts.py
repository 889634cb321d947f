"""Read-only mounts made from outside, in real sandboxes."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest

from debug_gym_core.errors import SandboxLost
from debug_gym_core.sandbox.interpreter import Interpreter, probe
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import Protected, SandboxSpec
from debug_gym_core.workspace.snapshot import FileState, archive_of
from debug_gym_terminal_bubblewrap import BubblewrapTerminal, readonly_mounts

SYSTEM = Path("/usr/bin/python3")


@pytest.fixture(autouse=True)
def needed() -> None:
    reason = BubblewrapTerminal.unavailable()
    if reason:
        pytest.skip(reason)


def open_sandbox(interpreter: Interpreter, files: dict[str, str], source: Path | None = None) -> Session:
    spec = SandboxSpec(run="test", interpreter=interpreter, source=source, protects=True)
    session = Session.start(BubblewrapTerminal(), spec)
    session.put(archive_of({path: FileState(text.encode()) for path, text in files.items()}))
    return session


@pytest.mark.parametrize("python", [Path(sys.executable), SYSTEM], ids=["this Python", "the system's"])
def test_files_directories_and_what_is_above_them(python: Path) -> None:
    """By root this is one sandbox of each mode: the system's Python can be run by another user."""
    if not python.exists():
        pytest.skip(f"there is no {python}")
    with open_sandbox(probe(python), {"a/b/c.txt": "1\n", "d/e.txt": "1\n", "free.txt": "1\n"}) as session:
        session.terminal.protect(Protected(directories=("d",), files=("a/b/c.txt",)))
        assert not [note for note in session.terminal.notes() if "read-only" in note]
        attempts = "echo > a/b/c.txt", "rm -f a/b/c.txt", "mv a x", "mv a/b a/x", "touch d/new", "mv d x", "umount d"
        for command in (*attempts, "mount -o remount,bind,rw d"):
            assert session.run(command).exit_status != 0, command
        assert session.run("echo 2 > free.txt; mkdir a/new; mv a/new a/newer; cat a/b/c.txt").output == "1\n"
        assert session.run("find / -xdev -name '*.gone' 2>/dev/null; cat d/e.txt").output == "1\n"


def test_what_was_mounted_in_the_workspace_stays(tmp_path: Path) -> None:
    source = tmp_path / "repository"
    venv.create(source / "env" / ".venv", symlinks=True)
    interpreter = probe(source / "env" / ".venv" / "bin" / "python")
    with open_sandbox(interpreter, {"env/test_a.py": "1\n"}, source) as session:
        session.terminal.protect(Protected(files=("env/test_a.py",)))
        assert session.run("echo > env/test_a.py").exit_status != 0
        result = session.run([session.python, "-c", "import sys; print(sys.prefix)"])
        assert result.output == f"{source}/env/.venv\n"


def test_what_cannot_be_mounted_is_said() -> None:
    with Path("/dev/null").open() as none:
        said = readonly_mounts.protect(none.fileno(), Protected(files=("a",), links=("b",)))
    assert said[0] == "read-only: changes of 1 symbolic link are undone after each step"
    assert said[1].startswith("read-only: the kernel refuses mounts (") and "ioctl" in said[1]
    with open_sandbox(probe(sys.executable), {"a": "1\n"}) as session:
        session.terminal.protect(Protected(files=("a", "missing")))
        notes = [note for note in session.terminal.notes() if note.startswith("read-only")]
        assert notes == [
            "read-only: the kernel refuses mounts (No such file or directory); changes are undone after each step"
        ]
        assert session.run("echo > a").exit_status != 0


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (Protected(directories=("a", "b", "c"), files=("d",)), "1 directory and 1 file"),
        (Protected(directories=("a", "b", "c", "d"), links=("e", "f")), "2 directories"),
        (Protected(files=("x/a", "x/b", "x/c", "x/d")), "3 files"),
    ],
)
def test_all_that_has_no_mount_is_counted(paths: Protected, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readonly_mounts, "MOUNTS", 2)
    with Path("/dev/null").open() as none:
        notes = readonly_mounts.protect(none.fileno(), paths)
    assert notes[0] == f"read-only: more than 2 mounts would be needed; changes of {said} are undone after each step"
    links = ["read-only: changes of 2 symbolic links are undone after each step"] if paths.links else []
    assert notes[1:-1] == links and "the kernel refuses" in notes[-1]


def test_a_sandbox_that_is_gone() -> None:
    with open_sandbox(probe(sys.executable), {"a": "1\n"}) as session:
        session.run("kill -9 1")  # in vain
        assert session.terminal.alive()
        session.terminal.stop()
        with pytest.raises(SandboxLost):
            session.terminal.protect(Protected(files=("a",)))
