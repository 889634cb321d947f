"""Archives put into a workspace: whole, under any name, and never a byte outside of it."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from file_names import names, quick
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core.sandbox.session import Session


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
    """A hundred megabytes pass through the guest; none of its processes grows by them."""
    member = _member("big")
    member.size = 100_000_000
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
