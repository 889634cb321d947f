"""Files through a session, and the frames beneath."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.sandbox.frames import FrameReader, PrintedOutput, decode_output, pack
from debug_gym_core.sandbox.replies import CommandLost
from debug_gym_core.sandbox.session import Session

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

# A name is any bytes but NUL and the slash; those that are no UTF-8 are strings with lone surrogates in Python.
names = (
    st.binary(min_size=1, max_size=60)
    .map(lambda data: data.replace(b"\0", b"_").replace(b"/", b"_").decode("utf-8", "surrogateescape"))
    .filter(lambda name: name not in (".", ".."))
)


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
        assert session.hashes([path]) == {path: None}
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


def test_hashes(session: Session) -> None:
    session.write("empty", b"")
    session.write("dir/file", b"abc")
    os.mkfifo(Path(session.root, "pipe"))
    assert session.hashes(["empty", "dir/file", "dir", "missing", "pipe"]) == {
        "empty": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "dir/file": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "dir": None,
        "missing": None,
        "pipe": None,
    }


# -- archives


def tree(root: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content: object = None
        if path.is_symlink():
            content = path.readlink()
        elif path.is_file():
            content = path.read_bytes()
        mode = None if path.is_symlink() else stat.S_IMODE(status.st_mode)
        found[str(path.relative_to(root))] = (stat.S_IFMT(status.st_mode), mode, content, int(status.st_mtime))
    return found


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("piece", [1000, 512, 1 << 20])
def test_put(session: Session, tmp_path: Path, form: int, piece: int) -> None:
    source = tmp_path / "source"
    for path, data, mode in [
        ("empty", b"", 0o644),
        ("dir/script.sh", b"#!/bin/sh\n", 0o755),
        ("dir/deep/" + "d" * 90 + "/" + "f" * 95, b"long", 0o600),
        ("big", os.urandom(700_001), 0o444),
        ("bin\nary \u2603", bytes(range(256)), 0o644),
    ]:
        file = source / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(mode)
        os.utime(file, (1_000_000_000, 1_000_000_000))
    if form != tarfile.USTAR_FORMAT:
        (source / ("n" * 200)).write_bytes(b"longer")
        (source / "longlink").symlink_to("t" * 150)
    (source / "link").symlink_to("dir/script.sh")
    (source / "away").symlink_to("/etc/passwd")
    (source / "emptydir").mkdir()
    os.link(source / "big", source / "same")
    (source / "locked").mkdir()
    (source / "locked" / "file").write_bytes(b"inside")
    (source / "locked").chmod(0o555)
    os.mkfifo(source / "pipe")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        archive.add(source, ".")
    data = buffer.getvalue()
    session.put(data[start : start + piece] for start in range(0, len(data), piece))
    (source / "pipe").unlink()
    expected = tree(source)
    assert tree(Path(session.root)) == expected
    session.put(data)  # over itself
    assert tree(Path(session.root)) == expected


@quick
@given(files=st.dictionaries(names, st.binary(max_size=2000), max_size=8), size=st.integers(200, 3000))
def test_put_any_names(open_session: Callable[..., Session], files: dict[str, bytes], size: int) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    session = _shared(open_session)
    data = buffer.getvalue()
    session.put([data[start : start + size] for start in range(0, len(data), size)])
    assert {entry.path: session.read(entry.path) for entry in session.walk()} == files
    for name in files:
        session.remove(name)


_sessions: dict[int, Session] = {}


def _shared(open_session: Callable[..., Session]) -> Session:
    """One session for all examples of a property."""
    if id(open_session) not in _sessions:
        _sessions.clear()
        _sessions[id(open_session)] = open_session()
    return _sessions[id(open_session)]


def _archive(*members: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return buffer.getvalue()


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


@pytest.mark.parametrize(
    "members",
    [
        [_member("../escaped")],
        [_member("a/../../escaped")],
        [_member("/escaped")],
        [_member("out", tarfile.SYMTYPE, ".."), _member("out/escaped")],
        [_member("hard", tarfile.LNKTYPE, "../kept")],
    ],
)
def test_put_stays_in_the_workspace(session: Session, members: list[tarfile.TarInfo]) -> None:
    outside = Path(session.root).parent
    (outside / "kept").write_bytes(b"kept")
    with pytest.raises(OSError):
        session.put(_archive(*members))
    assert not (outside / "escaped").exists()
    assert (outside / "kept").stat().st_nlink == 1
    session.put(_archive(_member("fine")))
    assert session.read("fine") == b""


@pytest.mark.parametrize("damage", [lambda data: data[:700], lambda _: b"x" * 5000, lambda data: b"!" + data[1:]])
def test_damaged_archive_is_an_error(session: Session, damage: Callable[[bytes], bytes]) -> None:
    member = _member("file")
    member.size = 1000
    with pytest.raises(OSError, match="archive"):
        session.put(damage(_archive(member)))
    session.write("fine", b"")


def test_failing_source_of_an_archive(session: Session) -> None:
    def pieces() -> Iterator[bytes]:
        yield _archive(_member("first"))[:512]
        raise RuntimeError("source")

    with pytest.raises(RuntimeError, match="source"):
        session.put(pieces())
    assert session.read("first") == b""


def test_big_archive_is_held_back_not_buffered(session: Session) -> None:
    """Two hundred megabytes pass through the guest; none of its processes grows by them."""
    member = _member("big")
    member.size = 200_000_000
    block = b"x" * (1 << 20)

    def pieces() -> Iterator[bytes]:
        yield member.tobuf(tarfile.PAX_FORMAT)
        left = member.size
        while left:
            yield block[: min(left, len(block))]
            left -= min(left, len(block))
        yield bytes(1024 + -member.size % 512)

    session.put(pieces())
    entry = session.stat("big")
    assert entry is not None and entry.size == member.size
    pid = session.guest()["pid"]
    for process in [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]:
        status = Path(f"/proc/{process}/status").read_text()
        assert int(status.partition("VmHWM:")[2].split()[0]) < 60_000


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


# -- frames


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.text(), st.one_of(st.integers(), st.text(), st.none(), st.booleans())), st.binary()
        ),
        max_size=5,
    ),
    st.integers(1, 50),
)
def test_frames_survive_any_cuts(frames: list[tuple[dict[str, object], bytes]], size: int) -> None:
    frames = [({"id": 1, "t": "done", "fields": fields}, body) for fields, body in frames]
    data = b"".join(pack(header, body) for header, body in frames)
    reader = FrameReader()
    received = [frame for start in range(0, len(data), size) for frame in reader.feed(data[start : start + size])]
    assert received == frames


@given(st.binary(min_size=8, max_size=100))
def test_garbage_is_lost_or_incomplete_never_a_crash(data: bytes) -> None:
    try:
        list(FrameReader().feed(data))
    except SandboxLost as error:
        assert "corrupt" in str(error) or "cannot be understood" in str(error)


@given(st.text(max_size=200), st.integers(0, 300), st.integers(0, 300))
def test_cut_text_is_a_prefix_and_a_suffix(text: str, first: int, second: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    data = text.encode()
    start, end = sorted((min(first, len(data)), min(second, len(data))))
    output, cut = decode_output(data[:start], data[end:], end - start)
    if start == end:
        assert (output, cut) == (text, 0)
        return
    head, marker, tail = output.partition(f"[... {cut} bytes left out ...]\n")
    assert marker
    head = head if text.startswith(head) else head[:-1]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head.encode()) + len(tail.encode()) + cut == len(data)


@given(st.lists(st.binary(max_size=200), max_size=20), st.integers(2, 60))
def test_printed_output_is_bounded_and_counts(pieces: list[bytes], limit: int) -> None:
    """Whether a piece comes whole or already cut by the guest."""
    pieces = [piece.replace(b"\n", b"-").decode("latin-1").encode("ascii", "replace") for piece in pieces]
    printed = PrintedOutput(limit)
    half = limit // 2
    for piece in pieces:
        if len(piece) > limit:
            tail = piece[len(piece) - (limit - half) :]
            printed.add({"head": half, "cut": len(piece) - limit}, piece[:half] + tail)
        else:
            printed.add({}, piece)
    whole = b"".join(pieces).decode()
    text, cut = printed.take()
    assert printed.take() == ("", 0)
    if len(whole) <= limit:
        assert (text, cut) == (whole, 0)
        return
    head, marker, tail_text = text.partition(f"\n[... {cut} bytes left out ...]\n")
    assert marker
    assert whole.startswith(head)
    assert whole.endswith(tail_text)
    assert len(head) + len(tail_text) + cut == len(whole)
    assert len(head) + len(tail_text) <= limit


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
        "for n in $(seq 9000); do : > n$n; done; rm n*",
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


def test_commands_are_counted(session: Session) -> None:
    before = session.commands
    assert not session.busy
    session.run("true")
    process = session.process(["cat"], channel=False, stdin=True)
    assert (session.commands, session.busy) == (before + 2, True)
    process.kill()
    assert not session.busy


@pytest.mark.parametrize("depth", [3, 3000])
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
        session._ask("hash", understand=bytes, make=lambda *_: None, paths=5)()
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


@pytest.mark.parametrize(
    ("command", "timeout", "words"),
    [
        ("true", "5", "timeout is a number of seconds, or None, not '5'"),
        ("true", True, "timeout is a number of seconds"),
        (None, None, "a command is text, or a list of texts, not None"),
        (["echo", 5], None, r"a command is text, or a list of texts, not \['echo', 5\]"),
    ],
)
def test_a_command_that_is_none_costs_nothing(session: Session, command: Any, timeout: Any, words: str) -> None:
    guest = session.guest()["pid"]
    with pytest.raises(TypeError, match=words):
        session.run(command, timeout=timeout)
    assert session.guest()["pid"] == guest and session.restarts == 0
