"""What changed in a workspace since it was looked through: told once, or said to be unknown."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from debug_gym_core.errors import SandboxError
from debug_gym_core.sandbox.replies import CommandLost
from debug_gym_core.sandbox.session import Session


def test_what_changed_is_told_once(session: Session) -> None:
    session.write("d/a", b"1")
    session.write("b", b"1")
    session.write("__pycache__/c", b"1")
    assert session.changed() is None  # nothing is watched yet
    list(session.walk(prune=["__pycache__"], watch=[]))
    assert session.changed() == {}
    session.run("echo > d/a; chmod 600 b; mkdir -p e/f; echo > e/f/g; echo > __pycache__/c; mkdir e/__pycache__")
    session.run("echo > e/__pycache__/x; echo > h; rm h")
    found = session.changed()
    assert found is not None and found["b"] is not None and found["b"].mode == 0o600
    assert sorted(found) == ["b", "d/a", "e", "e/__pycache__", "e/f", "e/f/g", "h"] and found["h"] is None
    session.run("echo >> e/f/g; echo > e/__pycache__/x; rm -r d")
    found = session.changed()
    assert found is not None and sorted(found) == ["d", "d/a", "e/f/g"]
    assert found["d"] is found["d/a"] is None
    assert session.changed() == {}


@pytest.mark.parametrize(
    "command",
    [
        "mv d e",
        "ln d/a d/b; echo > d/b",
        "mkdir new; ln d/a new/b",
        pytest.param("for n in $(seq 9000); do : > n$n; done; rm n*", marks=pytest.mark.faults),
        # Its own keeper, which it does not outlive, last; and again, as the list may lack some while others end.
        "for i in 1 2 3; do for n in $(cat /proc/$GUEST/task/*/children); do [ $n = $PPID ] || kill -9 $n; done; done; "
        "kill -9 $PPID",
    ],
)
def test_what_cannot_be_told_is_unknown(session: Session, command: str) -> None:
    session.write("d/a", b"1")
    list(session.walk(watch=[]))
    with contextlib.suppress(CommandLost):  # the last one kills its own keeper, and the worker that watches
        session.run(command, env={"GUEST": str(session.guest()["pid"])})
    assert session.changed() is None
    assert session.changed() is None
    list(session.walk(watch=[]))
    assert session.changed() == {}


def test_a_file_that_is_watched_closely_is_told_of_by_any_name(session: Session, tmp_path: Path) -> None:
    session.write("d/a", b"1")
    session.write("d/b", b"1")
    list(session.walk(watch=["d/a"]))
    session.run(["sh", "-c", 'ln d/a "$1"/other', "sh", str(tmp_path)])
    assert session.changed() is None
    list(session.walk(watch=["d/a"]))
    session.run(["sh", "-c", 'echo >> "$1"/other; rm "$1"/other', "sh", str(tmp_path)])
    found = session.changed()
    assert found is not None and list(found) == ["d/a"]


def test_a_walk_that_failed_leaves_no_watch_that_says_nothing_happened(session: Session) -> None:
    session.write("file", b"1")
    session.walk(watch=())
    for path in ("missing", "file"):
        with pytest.raises(OSError):
            session.walk(path, watch=())
        session.write("file", b"2")
        told = session.changed()
        assert told is None or "file" in told


def test_what_goes_wrong_in_the_worker_costs_that_request_only(session: Session) -> None:
    session.walk(watch=())
    if session.changed() is None:
        pytest.skip("this machine's guest cannot watch: install a Python with ctypes")
    session.write("new", b"")
    with pytest.raises(SandboxError, match="TypeError") as caught:
        session._ask("read", understand=bytes, make=lambda *_: None, path="new", offset="x")()
    assert not isinstance(caught.value, CommandLost)
    assert "new" in (session.changed() or ())  # by the same worker


def test_a_workspace_that_was_removed_is_made_again(session: Session) -> None:
    session.write("d/file", b"1")
    session.walk(watch=())
    assert session.run('rm -rf "$PWD"').exit_status == 0
    assert session.changed() is None
    assert list(session.walk(watch=())) == []
    session.write("d/file", b"2")
    assert session.run("cat d/file").output == "2"
    assert session.run('mv "$PWD" "$PWD.old"; echo > "$PWD"').exit_status == 0
    assert session.changed() is None
    assert list(session.walk()) == []
    session.run('rm -rf "$PWD.old"')
