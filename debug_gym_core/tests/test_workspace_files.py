"""The files of a live task: where paths lead, what is read, written, removed and listed."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_workspace import Live
from support import examples

from debug_gym_core.errors import ActionError
from debug_gym_core.workspace import files

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


def test_a_file_that_was_removed_is_not_the_one_that_was_meant(live: Live) -> None:
    live.session.remove("pkg/app.py")
    with pytest.raises(ActionError) as refused:
        live.workspace.read_bytes("pkg/app.py")
    assert "pkg/app.py; did you mean pkg/app.py" not in str(refused.value)


def test_the_file_that_was_meant_is_one_that_is_there(live: Live) -> None:
    live.session.run("rm -rf pkg; mkdir -p new hidden; echo x > new/app.py; echo x > hidden/app.py; ln -s a new/key.py")
    live.workspace.refresh()
    with pytest.raises(ActionError, match=r"there is no file pkg/app\.py; did you mean new/app\.py\?$"):
        live.workspace.read_bytes("pkg/app.py")
    live.workspace.write_bytes("new/tool.py", b"")
    with pytest.raises(ActionError, match=r"did you mean new/tool\.py\?$"):
        live.workspace.read_bytes("tool.py")
    live.workspace.remove("new")
    with pytest.raises(ActionError) as refused:
        live.workspace.read_bytes("tool.py")
    assert "new/" not in str(refused.value)


def test_files_that_a_program_made_hide_none_of_the_repositorys_from_being_meant(live: Live) -> None:
    live.session.run("mkdir many; cd many; seq 6000 | xargs touch")
    live.workspace.refresh()
    with pytest.raises(ActionError, match=r"did you mean pkg/app\.py\?$"):
        live.workspace.read_bytes("pgk/ap.py")


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


def test_an_entry_is_its_path(live: Live) -> None:
    found = live.workspace.list("pkg")
    assert "pkg/app.py" in found and sorted(found) == sorted(entry.path for entry in found)
    assert json.loads(json.dumps(found)) == [str(entry) for entry in found] == [f"{entry}" for entry in found]
    for again in (copy.copy(found[0]), pickle.loads(pickle.dumps(found[0]))):
        assert (again, again.kind, again.size) == (found[0], found[0].kind, found[0].size)


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


@pytest.mark.parametrize(
    ("name", "first", "declared", "encoding"),
    [
        ("a.py", b"\n# coding: Latin-1\n", "Latin-1", "iso8859-1"),
        ("a.txt", b"# coding: latin-1\n", "", "utf-8"),
        ("a.pyi", b"# coding: utf-7\n", "utf-7", "utf-8"),
        ("a.pyw", b"#" * 1_000_000 + b"\n# coding: latin-1\n", "", "utf-8"),
    ],
)
def test_any_lines_know_what_the_first_ones_declare(
    live: Live, name: str, first: bytes, declared: str, encoding: str
) -> None:
    live.session.write(name, first + b"x\n" * 500_000)
    _, found = live.workspace.read_lines(name, 400_000, 1, 100)
    assert (found.data, found.declared, found.encoding) == (b"x\n", declared, encoding)


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


def test_a_file_that_would_fill_the_hosts_memory_is_not_read_whole(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FILE_LIMIT", 1000)
    live.session.run("truncate -s 1000 most; truncate -s 1T huge")
    assert live.workspace.read_bytes("most") == bytes(1000)
    with pytest.raises(ActionError, match=r"^huge has more than 1000 bytes; read_lines reads parts of it$"):
        live.workspace.read_text("huge")
