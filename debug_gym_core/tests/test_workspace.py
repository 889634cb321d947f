"""The files of a live task: where paths lead, what edits keep, what the patch says."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from debug_gym_core.errors import ActionError, SandboxError
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_core.workspace import changes, files
from debug_gym_core.workspace.files import Workspace
from debug_gym_core.workspace.program_changes import TEXT_LIMIT, UNKNOWN
from debug_gym_core.workspace.restoring import ReadOnlyFiles
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import FileState, Snapshot
from debug_gym_terminal_local import LocalTerminal

LONG = "".join(f"line {number}\n" for number in range(40))


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session.start(LocalTerminal(), SandboxSpec(run="tests")) as live:
        yield live


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
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


@pytest.fixture
def live(session: Session, repository: Path) -> Iterator[Live]:
    with Snapshot.take(repository) as snapshot:
        yield Live(session, snapshot)


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


# Where paths lead


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("pkg/app.py", "pkg/app.py"),
        ("./pkg//x/../app.py", "pkg/app.py"),
        ("/testbed/pkg/app.py", "pkg/app.py"),
        ("/testbed", "."),
        (".", "."),
        ("inside", "pkg/app.py"),
        ("not/yet/there.py", "not/yet/there.py"),
    ],
)
def test_paths_are_relative_to_the_root_without_links(live: Live, path: str, real: str) -> None:
    assert live.workspace.resolve(path) == real


@pytest.mark.parametrize(
    "path",
    ["../x", "/etc/passwd", "pkg/../../x", "/testbed/../etc/passwd", "/testbedx/a", "passwd", "etc/passwd", "etc"],
)
def test_what_leads_outside_is_refused_everywhere(live: Live, path: str) -> None:
    for use in (
        live.workspace.resolve,
        live.workspace.read_bytes,
        live.workspace.list,
        lambda path: live.workspace.read_lines(path, 1, 1, 100),
        lambda path: live.workspace.write_bytes(path, b"x"),
    ):
        with pytest.raises(ActionError, match=r"outside the workspace|leads out of the workspace"):
            use(path)
    assert live.events == []


def test_a_link_that_appears_later_is_seen_at_the_time_of_use(live: Live, tmp_path: Path) -> None:
    assert live.workspace.read_bytes("pkg/app.py")
    live.session.run(f"mv pkg old && ln -s {tmp_path} pkg")
    (tmp_path / "app.py").write_text("outside")
    with pytest.raises(ActionError, match="through a symbolic link"):
        live.workspace.read_bytes("pkg/app.py")
    with pytest.raises(ActionError, match="through a symbolic link"):
        live.workspace.write_bytes("pkg/app.py", b"changed")
    with pytest.raises(ActionError, match="through a symbolic link"):
        live.workspace.remove("pkg/app.py")
    assert (tmp_path / "app.py").read_text() == "outside"


@pytest.mark.parametrize(
    "path", ["hidden/key.txt", "hidden", "hidden/new", "peek", ".git/config", "a/__pycache__/x.pyc"]
)
def test_what_is_ignored_is_refused_by_any_way(live: Live, path: str) -> None:
    for use in (live.workspace.resolve, live.workspace.read_bytes, lambda path: live.workspace.write_bytes(path, b"")):
        with pytest.raises(ActionError, match=r"is ignored in this task|is a directory"):
            use(path)
    with pytest.raises(ActionError, match="is ignored in this task"):
        live.workspace.resolve(path)


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 300, "loop", "pkg/app.py/below", "\ud800"])
def test_impossible_paths_are_the_agents_error(live: Live, path: str) -> None:
    with pytest.raises(ActionError):
        live.workspace.read_bytes(path)
    with pytest.raises(ActionError):
        live.workspace.write_bytes(path, b"")


@pytest.mark.parametrize("path", [None, 5, b"a", Path("a")])
def test_a_path_that_is_no_text_is_the_callers_error(live: Live, path: Any) -> None:
    with pytest.raises(TypeError, match="a path is text, relative to the repository's root, not "):
        live.workspace.read_bytes(path)


def test_a_missing_file_without_a_like_says_how_one_is_named(live: Live) -> None:
    with pytest.raises(
        ActionError, match=r"there is no file zzz; paths count from the repository's root, as in pkg/app\.py$"
    ):
        live.workspace.read_bytes("zzz")


def test_a_missing_file_names_the_one_that_was_meant(live: Live) -> None:
    with pytest.raises(ActionError, match=r"there is no file app\.py; did you mean pkg/app\.py\?"):
        live.workspace.read_bytes("app.py")
    with pytest.raises(ActionError) as refused:
        live.workspace.read_bytes("key.txt")
    assert "hidden" not in str(refused.value)


# Reading and writing


def test_links_inside_are_followed(live: Live) -> None:
    assert live.workspace.read_text("inside") == "x = 1\r\ny = 2\r\n"
    live.workspace.write_bytes("inside", b"z\n")
    assert live.workspace.read_bytes("pkg/app.py") == b"z\n"
    assert live.events == [("pkg/app.py", b"x = 1\r\ny = 2\r\n", b"z\n")]
    assert "inside" not in live.workspace.changes()


def test_content_is_never_shell_or_option(live: Live) -> None:
    for content in (
        b"-n",
        b"-e \\n",
        b"DEBUGGYM_EOF\ntouch INJECTED\n",
        b"$(touch INJECTED)`touch INJECTED`\n",
        b"\xf0\x9f\x98\x80" * 40_000,
    ):
        live.workspace.write_bytes("odd name; touch INJECTED", content)
        assert live.workspace.read_bytes("odd name; touch INJECTED") == content
    assert live.session.stat("INJECTED") is None


@examples(50)
@given(st.binary(max_size=200))
def test_any_bytes_come_back(live: Live, data: bytes) -> None:
    live.workspace.write_bytes("pkg/any", data)
    assert live.workspace.read_bytes("pkg/any") == data
    assert live.workspace.read_text("pkg/any").encode("utf-8", "surrogateescape") == data
    live.workspace.write_text("pkg/copy", live.workspace.read_text("pkg/any"))
    assert live.workspace.read_bytes("pkg/copy") == data


def test_readonly_files_are_not_written_removed_or_reached_by_a_link(live: Live) -> None:
    for path in ("test_app.py", "to_test", "test_new.py", ".debugignore", "/testbed/test_app.py"):
        with pytest.raises(ActionError, match="is read-only in this task"):
            live.workspace.write_bytes(path, b"")
    with pytest.raises(ActionError, match="is read-only in this task"):
        live.workspace.remove("test_app.py")
    assert live.workspace.is_readonly("test_app.py") and not live.workspace.is_readonly("pkg/app.py")
    assert live.events == [] and not live.workspace.changes()


def test_equal_content_is_no_change(live: Live) -> None:
    before = live.session.stat("pkg/app.py")
    live.workspace.write_bytes("pkg/app.py", b"x = 1\r\ny = 2\r\n")
    assert live.session.stat("pkg/app.py") == before and live.events == []


def test_removing_files_links_and_directories(live: Live) -> None:
    live.workspace.remove("inside")
    assert live.session.stat("pkg/app.py") is not None
    live.workspace.remove("pkg")
    assert [(path, new) for path, _, new in live.events] == [("pkg/app.py", None), ("pkg/long.txt", None)]
    with pytest.raises(ActionError, match="there is no file pkg"):
        live.workspace.remove("pkg")
    live.session.run("mkdir both && cp test_app.py both && mkdir over && mv hidden over/")
    with pytest.raises(ActionError, match="read-only"):
        live.workspace.remove("both")
    with pytest.raises(ActionError, match="ignored"):
        live.workspace.remove("over")
    with pytest.raises(ActionError, match="itself"):
        live.workspace.remove(".")


def test_listing_leaves_out_what_is_ignored_and_marks_what_is_readonly(live: Live) -> None:
    live.session.run("mkdir -p pkg/__pycache__ pkg/sub && touch pkg/__pycache__/a.pyc pkg/sub/test_b.py pkg-2")
    found = live.workspace.list()
    assert [(entry.path, entry.kind) for entry in found if "pkg" in entry.path] == [
        ("pkg", "directory"),
        ("pkg/app.py", "file"),
        ("pkg/long.txt", "file"),
        ("pkg/sub", "directory"),
        ("pkg/sub/test_b.py", "file"),
        ("pkg-2", "file"),
    ]
    assert not any(entry.path.startswith("hidden") for entry in found)
    assert {entry.path for entry in found if entry.readonly} == {
        *("test_app.py", "pkg/sub/test_b.py", ".debugignore", ".debugreadonly")
    }
    assert [entry.path for entry in live.workspace.list("/testbed/pkg", depth=1)] == [
        "pkg/app.py",
        "pkg/long.txt",
        "pkg/sub",
    ]
    assert {entry.path: entry.target for entry in found if entry.kind == "link"}["passwd"] == "/etc/passwd"
    with pytest.raises(ActionError, match=r"run\.sh is a file, not a directory"):
        live.workspace.list("run.sh/")
    with pytest.raises(ActionError, match="there is no directory"):
        live.workspace.list("nowhere")


def test_a_file_is_listed_as_its_only_entry(live: Live) -> None:
    live.session.run("ln -s pkg/app.py to_app")
    for path in ("pkg/app.py", "/testbed/./pkg/app.py", "to_app"):
        (entry,) = live.workspace.list(path, depth=1)
        size = len(live.workspace.read_bytes("pkg/app.py"))
        assert (entry.path, entry.kind, entry.readonly, entry.size) == ("pkg/app.py", "file", False, size)
    assert [entry.readonly for entry in live.workspace.list("test_app.py")] == [True]
    for hidden in ("hidden", "../x", "passwd"):
        with pytest.raises(ActionError):
            live.workspace.list(hidden)


def test_lines_of_a_large_file_are_read_without_the_rest(live: Live) -> None:
    live.session.run("yes 'some text of a line' | head -n 1000000 > big.txt")
    real, found = live.workspace.read_lines("big.txt", 500_000, 2, 1000)
    assert (real, found.total, found.data) == ("big.txt", 1_000_000, b"some text of a line\n" * 2)
    _, found = live.workspace.read_lines("big.txt", 1, 1_000_000, 50)
    assert (len(found.data), found.length) == (50, 20_000_000)


@examples(100)
@given(
    st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"\x00", b"b" * 300_000]), max_size=8).map(b"".join),
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from([0, 1, 5, 1 << 22]),
)
def test_lines_are_those_of_the_content(live: Live, data: bytes, start: int, count: int, limit: int) -> None:
    live.session.write("lines", data)
    parts = data.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
    _, found = live.workspace.read_lines("lines", start, count, limit)
    wanted = b"".join(lines[start - 1 : start - 1 + count])
    assert (found.total, found.length, found.data) == (len(lines), len(wanted), wanted[:limit])


# What changed


def test_an_untouched_workspace_has_no_patch(live: Live) -> None:
    assert len(live.workspace.changes()) == 0
    assert live.workspace.patch() == b""


def test_the_patch_gives_exactly_the_workspace(live: Live, repository: Path) -> None:
    live.workspace.write_bytes("pkg/app.py", b"x = 1\r\ny = 3\r\n")
    live.workspace.write_bytes("new/deep.py", b"no newline")
    live.session.run(
        "mv pkg/long.txt moved.txt; chmod -x run.sh; rm to_test; ln -s elsewhere pkg/link; ln -sfn run.sh inside;"
        r"""printf '\0\1\377' > bin; printf 'a\fb\n' > "$(printf 'caf\351 \nx')" """
    )
    live.session.write("empty", b"")
    live.session.write("tool", b"#!/bin/sh\n", 0o755)
    patch = live.workspace.patch()
    assert applied(repository, patch) == state_in(live.session)
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
    session: Session, repository: Path, done: list[tuple[str, str, bytes]]
) -> None:
    with Snapshot.take(repository) as snapshot:
        live = Live(session, snapshot)
        root = Path(session.root)
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
        reached = state_in(session)
        assert applied(repository, patch) == reached
        again = Live(session, snapshot)
        again.workspace.apply(patch)
        assert state_in(session) == reached
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


def test_what_set_up_made_is_no_change(session: Session, repository: Path) -> None:
    with Snapshot.take(repository) as snapshot:
        Live(session, snapshot)
        session.run("echo built > built.txt; echo >> run.sh; rm pkg/long.txt")
        workspace = Workspace(session, snapshot, Rules.of(snapshot))
        assert not workspace.changes()
        session.run("echo again > built.txt")
        assert list(workspace.changes()) == ["built.txt"]


def test_what_is_called_like_an_environment_elsewhere_is_in_the_patch(session: Session, repository: Path) -> None:
    (repository / "env").mkdir()
    (repository / "env" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    with Snapshot.take(repository) as snapshot:
        assert snapshot.environments == ("env",)
        live = Live(session, snapshot)
        session.run("mkdir -p env/lib pkg/env; echo 1 > env/lib/x; echo 1 > pkg/env/new.py; echo 1 > pkg/env/old.py")
        assert sorted(live.workspace.changes()) == ["pkg/env/new.py", "pkg/env/old.py"]
        session.write("pkg/env/old.py", b"2")
        session.write("env/y", b"2")
        assert sorted(live.workspace.changes()) == ["pkg/env/new.py", "pkg/env/old.py"]


def test_what_is_too_large_or_no_file_is_left_out_and_named(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "FILE_LIMIT", 1000)
    live.session.run("head -c 1001 /dev/zero > large; mkfifo pipe; head -c 999 /dev/zero > small")
    found = live.workspace.changes()
    assert list(found) == ["small"]
    assert found.left_out == {"large": "1001 bytes are too many", "pipe": "neither file nor link"}


def test_a_file_that_would_fill_the_hosts_memory_is_not_read_whole(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FILE_LIMIT", 1000)
    live.session.run("truncate -s 1000 most; truncate -s 1T huge")
    assert live.workspace.read_bytes("most") == bytes(1000)
    with pytest.raises(ActionError, match=r"^huge has more than 1000 bytes; read_lines reads parts of it$"):
        live.workspace.read_text("huge")


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


def test_a_readonly_file_comes_back_when_its_directory_was_replaced(session: Session, tmp_path: Path) -> None:
    (tmp_path / "repo" / "tests").mkdir(parents=True)
    (tmp_path / "repo" / "tests" / "a.py").write_text("1\n")
    (tmp_path / "repo" / ".debugreadonly").write_text("tests/\n")
    with Snapshot.take(tmp_path / "repo") as snapshot:
        live = Live(session, snapshot)
        live.session.run("mv tests other; ln -s other tests; mkdir other/__pycache__; echo > other/__pycache__/x.pyc")
        assert list(live.workspace.refresh().restored) == ["tests/a.py"]
        assert live.workspace.read_text("tests/a.py") == "1\n"
        session.run("echo 2 > tests/a.py; mkdir tests/__pycache__; echo > tests/__pycache__/x.pyc")
        assert list(live.workspace.refresh().restored) == ["tests/a.py"]
        assert session.stat("tests/__pycache__/x.pyc") is not None


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
