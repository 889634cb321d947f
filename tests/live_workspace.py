"""A workspace in a live sandbox, what it tells, and what git makes of its patch."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from debug_gym_core.sandbox.session import Session
from debug_gym_core.workspace.files import Workspace
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import Snapshot

LONG = "".join(f"line {number}\n" for number in range(40))


def make_linked_repository(root: Path) -> Path:
    """Files that may be read, changed or not seen, and links that lead to each, outside and nowhere."""
    (root / "pkg").mkdir(parents=True)
    (root / "pkg" / "app.py").write_bytes(b"x = 1\r\ny = 2\r\n")
    (root / "pkg" / "long.txt").write_text(LONG)
    (root / "test_app.py").write_text("import pkg.app\n")
    (root / "hidden").mkdir()
    (root / "hidden" / "key.txt").write_text("secret\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "inside").symlink_to("pkg/app.py")
    (root / "peek").symlink_to("hidden/key.txt")
    (root / "to_test").symlink_to("test_app.py")
    (root / "passwd").symlink_to("/etc/passwd")
    (root / "etc").symlink_to("/etc")
    (root / "loop").symlink_to("loop")
    (root / ".debugignore").write_text("hidden/\n")
    (root / ".debugreadonly").write_text("test_*.py\n")
    return root


class Live:
    """A workspace and what it told."""

    def __init__(self, session: Session, snapshot: Snapshot) -> None:
        for entry in list(session.walk(depth=1)):
            session.remove(entry.path)
        session.put(snapshot.archive())
        self.events: list[tuple[str, bytes | None, bytes | None]] = []
        self.session, self.snapshot = session, snapshot
        self.workspace = Workspace(session, snapshot, Rules.of(snapshot), lambda *event: self.events.append(event))


def applied(repository: Path, patch: bytes) -> dict[str, tuple[str, bytes, bool]]:
    """What git makes of the repository with a patch."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "copy"
        subprocess.run(["cp", "-a", str(repository), str(copy)], check=True)
        if patch:
            environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull}
            command = ["git", "apply", "--whitespace=nowarn", "-"]
            subprocess.run(command, input=patch, cwd=copy, check=True, env=environment)
        with Snapshot.take(copy) as snapshot:
            return state_of(snapshot)


def state_of(snapshot: Snapshot) -> dict[str, tuple[str, bytes, bool]]:
    states = {path: snapshot.state(path) for path in snapshot.members}
    return {path: (state.kind, state.data, state.executable) for path, state in states.items() if state is not None}


def state_in(session: Session) -> dict[str, tuple[str, bytes, bool]]:
    """All files of the sandbox."""
    with Snapshot.take(session.root) as snapshot:
        return state_of(snapshot)
