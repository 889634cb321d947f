"""What changed in a live task: its patch, patches that are applied, and read-only files that are put back."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_workspace import LONG, Live, applied, state_in
from support import examples

from debug_gym_core.errors import ActionError, SandboxError
from debug_gym_core.sandbox.session import Session
from debug_gym_core.workspace import changes
from debug_gym_core.workspace.files import Workspace
from debug_gym_core.workspace.program_changes import TEXT_LIMIT, UNKNOWN
from debug_gym_core.workspace.restoring import ReadOnlyFiles
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import FileState, Snapshot


def test_an_untouched_workspace_has_no_patch(live: Live) -> None:
    assert len(live.workspace.changes()) == 0
    assert live.workspace.patch() == b""


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_bytes_of_any_kind_are_written_and_told(live: Live, kind: type) -> None:
    data = bytearray(b"x = 3\n")
    live.workspace.write_bytes("pkg/app.py", kind(data))
    data[:] = b"y = 4\n"
    assert [(path, new) for path, _, new in live.events] == [("pkg/app.py", b"x = 3\n")]
    assert live.workspace.read_bytes("pkg/app.py") == b"x = 3\n"


def test_the_patch_gives_exactly_the_workspace(live: Live, linked_repository: Path) -> None:
    live.workspace.write_bytes("pkg/app.py", b"x = 1\r\ny = 3\r\n")
    live.workspace.write_bytes("new/deep.py", b"no newline")
    live.session.run(
        "mv pkg/long.txt moved.txt; chmod -x run.sh; rm to_test; ln -s elsewhere pkg/link; ln -sfn run.sh inside;"
        r"""printf '\0\1\377' > bin; printf 'a\fb\n' > "$(printf 'caf\351 \nx')" """
    )
    live.session.write("empty", b"")
    live.session.write("tool", b"#!/bin/sh\n", 0o755)
    patch = live.workspace.patch()
    assert applied(linked_repository, patch) == state_in(live.session)
    assert b"rename from pkg/long.txt\nrename to moved.txt\n" in patch
    assert b"old mode 100755\nnew mode 100644\n" in patch
    assert set(live.workspace.changes()) == {
        *("pkg/app.py", "new/deep.py", "moved.txt", "pkg/long.txt", "run.sh", "to_test", "pkg/link", "inside", "bin"),
        *("empty", "tool", "caf\udce9 \nx"),
    }


operations = st.lists(
    st.tuples(
        st.sampled_from(["write", "remove", "link", "chmod", "move"]),
        st.sampled_from(["pkg/app.py", "pkg/long.txt", "run.sh", "n w.txt", "deep/er/x", "inside"]),
        st.sampled_from([b"", b"a\r\nb", LONG.encode() + b"end", b"\x00\x01", b"caf\xe9\x0c\n"]),
    ),
    max_size=5,
)


@examples(25)
@given(operations)
def test_whatever_is_done_the_patch_gives_exactly_the_workspace(
    local_sandbox: Session, linked_repository: Path, done: list[tuple[str, str, bytes]]
) -> None:
    with Snapshot.take(linked_repository) as snapshot:
        live = Live(local_sandbox, snapshot)
        root = Path(local_sandbox.root)
        for what, path, data in done:
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            there = place.is_symlink() or place.exists()
            if what == "write":
                place.unlink(missing_ok=True)
                place.write_bytes(data)
            elif what == "link":
                place.unlink(missing_ok=True)
                place.symlink_to("pkg/app.py")
            elif there and what == "remove":
                place.unlink()
            elif there and what == "chmod" and not place.is_symlink():
                place.chmod(0o755 if place.stat().st_mode & 0o100 == 0 else 0o644)
            elif there and what == "move":
                place.rename(root / "moved")
        patch = live.workspace.patch()
        reached = state_in(local_sandbox)
        assert applied(linked_repository, patch) == reached
        again = Live(local_sandbox, snapshot)
        again.workspace.apply(patch)
        assert state_in(local_sandbox) == reached
        assert again.workspace.patch() == patch


def test_ignored_files_caches_and_rewrites_of_the_same_are_not_in_the_patch(live: Live) -> None:
    live.session.run("mkdir -p pkg/__pycache__ .pytest_cache; echo > pkg/__pycache__/a.pyc; echo > .pytest_cache/x")
    live.session.run("echo more >> hidden/key.txt; cp pkg/app.py t; cat t > pkg/app.py; rm t; chmod g-r run.sh")
    assert dict(live.workspace.changes()) == {}


def test_an_edit_that_keeps_size_and_time_is_found(live: Live) -> None:
    live.session.run(
        "touch -r pkg/app.py stamp; printf 'x = 9\\r\\ny = 2\\r\\n' > pkg/app.py; touch -r stamp pkg/app.py"
    )
    assert live.workspace.changes()["pkg/app.py"] == FileState(b"x = 9\r\ny = 2\r\n", 0o644)


def test_what_was_found_the_same_is_read_again_when_its_stamp_moves(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, read_paths = live.session.read_later, []
    monkeypatch.setattr(live.session, "read_later", lambda path, *more: read_paths.append(path) or read(path, *more))
    live.session.run("touch pkg/app.py run.sh")
    for read_each_time in (["pkg/app.py", "run.sh"], []):
        assert dict(live.workspace.changes()) == {} and sorted(read_paths) == read_each_time
        del read_paths[:]
        live.session.run("mkdir d; for each in $(seq 300); do : > d/$each; done; rm -r d")  # compares everything
    live.session.run(
        "touch -r pkg/app.py stamp; printf 'x = 9\\r\\ny = 2\\r\\n' > pkg/app.py; touch -r stamp pkg/app.py"
    )
    assert live.workspace.changes()["pkg/app.py"] == FileState(b"x = 9\r\ny = 2\r\n", 0o644)


def test_what_set_up_made_is_no_change(local_sandbox: Session, linked_repository: Path) -> None:
    with Snapshot.take(linked_repository) as snapshot:
        Live(local_sandbox, snapshot)
        local_sandbox.run("echo built > built.txt; echo >> run.sh; rm pkg/long.txt")
        workspace = Workspace(local_sandbox, snapshot, Rules.of(snapshot))
        assert not workspace.changes()
        local_sandbox.run("echo again > built.txt")
        assert list(workspace.changes()) == ["built.txt"]


def test_what_is_called_like_an_environment_elsewhere_is_in_the_patch(
    local_sandbox: Session, linked_repository: Path
) -> None:
    (linked_repository / "env").mkdir()
    (linked_repository / "env" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    with Snapshot.take(linked_repository) as snapshot:
        assert snapshot.environments == ("env",)
        live = Live(local_sandbox, snapshot)
        local_sandbox.run(
            "mkdir -p env/lib pkg/env; echo 1 > env/lib/x; echo 1 > pkg/env/new.py; echo 1 > pkg/env/old.py"
        )
        assert sorted(live.workspace.changes()) == ["pkg/env/new.py", "pkg/env/old.py"]
        local_sandbox.write("pkg/env/old.py", b"2")
        local_sandbox.write("env/y", b"2")
        assert sorted(live.workspace.changes()) == ["pkg/env/new.py", "pkg/env/old.py"]


def test_what_is_too_large_or_no_file_is_left_out_and_named(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "FILE_LIMIT", 1000)
    live.session.run("head -c 1001 /dev/zero > large; mkfifo pipe; head -c 999 /dev/zero > small")
    found = live.workspace.changes()
    assert list(found) == ["small"]
    assert found.left_out == {"large": "1001 bytes are too many", "pipe": "neither file nor link"}


def test_an_applied_patch_tells_of_every_file(live: Live) -> None:
    patch = (
        b"--- a/pkg/app.py\n+++ b/pkg/app.py\n@@ -1,2 +1,2 @@\n x = 1\r\n-y = 2\r\n+y = 3\r\n"
        b"--- /dev/null\n+++ b/n.py\n@@ -0,0 +1 @@\n+a\n"
    )
    live.workspace.apply(patch)
    assert sorted(live.events) == [("n.py", None, b"a\n"), ("pkg/app.py", b"x = 1\r\ny = 2\r\n", b"x = 1\r\ny = 3\r\n")]
    live.workspace.apply(b"\n")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("test_app.py", "read-only"),
        ("hidden/key.txt", "ignored"),
        ("../out", "outside"),
        ("etc/new", "through a symbolic link"),
        ("run.sh/new", "is a file"),
        ("pkg", "is a directory with"),
    ],
)
def test_a_patch_that_may_not_be_applied_changes_nothing(live: Live, path: str, reason: str) -> None:
    before = state_in(live.session)
    patch = "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1 @@\n+a\n"
    if path in ("test_app.py", "hidden/key.txt"):
        line = {"test_app.py": "import pkg.app", "hidden/key.txt": "secret"}[path]
        patch += f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{line}\n+other\n"
    else:
        patch += f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+a\n"
    with pytest.raises(ActionError, match=reason):
        live.workspace.apply(patch.encode())
    assert state_in(live.session) == before and live.events == []


def test_a_patch_of_which_a_file_is_refused_is_taken_back_as_far_as_it_can(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, refused = live.session.write, iter([False, False, True, True])

    def fail(path: str, *args: object) -> None:
        if next(refused, False):
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(live.session, "write", fail)
    live.session.run("echo 1 > a; echo 1 > b; echo 1 > c")
    before = state_in(live.session)
    patch = "".join(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-1\n+2\n" for name in "abc")
    with pytest.raises(ActionError, match="No space left"):
        live.workspace.apply(patch.encode())
    assert state_in(live.session) == before


def test_readonly_files_are_put_back_whatever_was_done(live: Live) -> None:
    before = state_in(live.session)
    assert list(live.workspace.refresh().restored) == []
    live.session.run(
        "rm test_app.py; mkdir test_app.py; echo > test_app.py/x; echo > test_new.py; echo '*' > .debugignore"
    )
    assert list(live.workspace.refresh().restored) == [".debugignore", "test_app.py", "test_app.py/x", "test_new.py"]
    assert state_in(live.session) == before
    live.session.run("echo >> pkg/app.py; mkdir test_x.py.d")
    assert list(live.workspace.refresh().restored) == []


def test_a_readonly_file_comes_back_when_its_directory_was_replaced(local_sandbox: Session, tmp_path: Path) -> None:
    (tmp_path / "repo" / "tests").mkdir(parents=True)
    (tmp_path / "repo" / "tests" / "a.py").write_text("1\n")
    (tmp_path / "repo" / ".debugreadonly").write_text("tests/\n")
    with Snapshot.take(tmp_path / "repo") as snapshot:
        live = Live(local_sandbox, snapshot)
        live.session.run("mv tests other; ln -s other tests; mkdir other/__pycache__; echo > other/__pycache__/x.pyc")
        assert list(live.workspace.refresh().restored) == ["tests/a.py"]
        assert live.workspace.read_text("tests/a.py") == "1\n"
        local_sandbox.run("echo 2 > tests/a.py; mkdir tests/__pycache__; echo > tests/__pycache__/x.pyc")
        assert list(live.workspace.refresh().restored) == ["tests/a.py"]
        assert local_sandbox.stat("tests/__pycache__/x.pyc") is not None


def test_a_refresh_that_fails_loses_nothing(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    live.session.run("for name in a b c; do echo 1 > $name; done; echo 1 > test_app.py")
    read = live.session.read

    def fail(path: str, *args: int) -> bytes:
        if path == "b":
            raise SandboxError("the worker died")
        return read(path, *args)

    monkeypatch.setattr(live.session, "read", fail)
    for _ in range(2):
        with pytest.raises(SandboxError):
            live.workspace.refresh()
    monkeypatch.undo()
    found = live.workspace.refresh()
    assert [change.path for change in found.changes] == ["a", "b", "c"]
    assert found.restored == ("test_app.py",)
    assert live.workspace.refresh().changes == ()


def test_a_readonly_file_that_cannot_be_put_back_keeps_no_other_from_it(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.session.run("echo 1 > .debugreadonly; echo 1 > test_app.py; echo 1 > new.txt")
    write = live.session.write

    def fail(path: str, *args: object) -> None:
        if path == ".debugreadonly":
            raise SandboxError("the worker died")
        write(path, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(live.session, "write", fail)
    found = live.workspace.refresh()
    assert found.failed == {".debugreadonly": "the worker died"} and found.restored == ("test_app.py",)
    assert [change.path for change in found.changes if change.path == "new.txt"] == ["new.txt"]
    monkeypatch.undo()
    live.session.run("touch .debugreadonly")
    assert live.workspace.refresh().restored == (".debugreadonly",)


def test_of_a_large_file_no_more_is_read_than_is_kept(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = live.session.stat("test_app.py")
    live.session.run("truncate -s 200M big; mkdir d; truncate -s 200M d/big; truncate -s 200M test_app.py")
    read, sizes = live.session.read, []

    def watched(path: str, *args: int) -> bytes:
        data = read(path, *args)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(live.session, "read", watched)
    live.workspace.write_bytes("big", b"small")
    live.workspace.remove("d")
    assert live.events == [("big", UNKNOWN, b"small"), ("d/big", UNKNOWN, None)]
    readonly = ReadOnlyFiles(live.session, live.snapshot, Rules.of(live.snapshot))
    assert readonly.broken({"test_app.py": entry}) == ["test_app.py"]  # grown since the entry was seen
    assert 0 < max(sizes) <= TEXT_LIMIT + 1
    large = bytes(TEXT_LIMIT + 5)
    live.session.write("large", large)
    live.workspace.write_bytes("large", large)
    assert len(live.events) == 2


def test_a_patch_of_a_file_too_large_to_read_is_refused(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("debug_gym_core.workspace.patching.FILE_LIMIT", 10)
    with pytest.raises(ActionError, match="cannot be read"):
        live.workspace.apply(b"diff --git a/pkg/app.py b/pkg/app.py\nold mode 100644\nnew mode 100755\n")
    entry = live.session.stat("pkg/app.py")
    assert entry is not None and entry.mode == 0o644


def test_a_workspace_that_cannot_be_walked_is_a_typed_error(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied")

    live.session.run("echo > new")
    monkeypatch.setattr(live.session, "walk", fail)
    monkeypatch.setattr(live.session, "changed", fail)
    for look in (live.workspace.changes, live.workspace.patch, live.workspace.refresh):
        with pytest.raises(SandboxError, match=r"cannot be walked: .*Permission denied"):
            look()
