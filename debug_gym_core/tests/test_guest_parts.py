"""Parts of the guest, each on its own."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest
import support
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core.sandbox.guest.streams import Output
from debug_gym_core.sandbox.guest.tar import unpack
from debug_gym_core.sandbox.guest.tree import Outside, Tree, remove_below


@support.examples(200)
@given(st.lists(st.binary(max_size=30), max_size=20), st.integers(0, 40))
def test_output_keeps_head_and_tail_of_everything(pieces: list[bytes], limit: int) -> None:
    output = Output(limit)
    for piece in pieces:
        output.add(piece)
    fields, kept = output.take()
    everything = b"".join(pieces)
    assert len(kept) + fields.get("cut", 0) == len(everything)
    head = fields.get("head", len(kept))
    assert everything.startswith(kept[:head]) and everything.endswith(kept[head:])
    assert len(kept) <= limit if fields.get("cut") else kept == everything
    assert output.take() == ({}, b"")


def archive_of(format: int, *members: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format) as archive:
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    file.seek(0)
    return file


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.mtime = kind, link, mode, 1_000_000_000
    return info


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_each_format_are_unpacked(tmp_path: Path, format: int) -> None:
    long = "/".join(["directory"] * 20 if format != tarfile.USTAR_FORMAT else ["directory"] * 12) + "/file"
    archive = archive_of(
        format,
        (member("closed", tarfile.DIRTYPE, mode=0o555), b""),
        (member("closed/program", mode=0o755), b"#!/bin/sh\n"),
        (member(long), b"x" * 1000),
        (member("link", tarfile.SYMTYPE, "closed/program"), b""),
    )
    tree = Tree(os.fsencode(tmp_path))
    assert unpack(archive, tree.root, tree.open_directory) == 4  # type: ignore[arg-type]
    assert (tmp_path / "link").read_text() == "#!/bin/sh\n" and os.access(tmp_path / "link", os.X_OK)
    assert (tmp_path / long).stat().st_size == 1000 and (tmp_path / long).stat().st_mtime == 1_000_000_000
    assert (tmp_path / "closed").stat().st_mode & 0o777 == 0o555


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "way/out"])
def test_an_archive_stays_in_the_workspace(tmp_path: Path, name: str) -> None:
    (tmp_path / "root").mkdir()
    archive = archive_of(tarfile.PAX_FORMAT, (member("way", tarfile.SYMTYPE, ".."), b""), (member(name), b"text"))
    tree = Tree(os.fsencode(tmp_path / "root"))
    with pytest.raises(OSError):
        unpack(archive, tree.root, tree.open_directory)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_paths_lead_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "root/inner").mkdir(parents=True)
    (tmp_path / "root/way").symlink_to("..")
    (tmp_path / "root/inner/back").symlink_to("../inner")
    (tmp_path / "secret").write_text("secret")
    tree = Tree(os.fsencode(tmp_path / "root"))
    assert tree.real({"path": "inner/back"}) == tree.root + b"/inner"
    with pytest.raises(Outside):
        tree.real({"path": "way/secret"})
    with pytest.raises(OSError):  # where a link has come into the way meanwhile
        tree.open_directory(tree.root + b"/way", create=False)
    assert not tree.holds(tree.root + b"2") and tree.holds(tree.root)


def test_a_deep_tree_is_removed_and_no_link_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("")
    place = tmp_path / "gone"
    place.mkdir()
    descriptor = os.open(place, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", 0o700, dir_fd=descriptor)
        os.symlink(tmp_path / "kept", "link", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    top = os.open(tmp_path, os.O_RDONLY)
    remove_below(top, b"gone")
    os.close(top)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"] and (tmp_path / "kept/file").exists()
