"""The host's pristine copy of a task's repository: what every sandbox starts from and every patch is made against."""

from __future__ import annotations

import hashlib
import io
import json
import os
import posixpath
import stat
import tarfile
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Literal

from debug_gym_core.errors import UsageError
from debug_gym_core.sandbox import plain_files
from debug_gym_core.sandbox.patterns import Patterns
from debug_gym_core.sandbox.terminal import above_of
from debug_gym_core.workspace.lines import decode, encode, shown

LEFT_OUT = frozenset({".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox"})
"""Names that are never copied, in any directory; nor are virtual environments, and what was compiled of a source."""

MTIME = 1_577_836_800
"""Time of last change of every entry, 2020-01-01: equal repositories give equal archives, and any edit is later."""

BLOCK = 1 << 20

_RECORD = 16 << 20
"""Bytes of a `run.json` that are read; a whole config is in it."""


@dataclass(frozen=True)
class FileState:
    """A file or symbolic link as it stands.

    Attributes:
        data: the content, or where the link points
        mode: permission bits
        kind: what it is
    """

    data: bytes
    mode: int = 0o644
    kind: Literal["file", "link"] = "file"

    @property
    def executable(self) -> bool:
        """Whether it is a file that its owner may execute: all that git knows of permissions."""
        return self.kind == "file" and bool(self.mode & 0o100)


@dataclass(frozen=True)
class Member:
    """One entry of a snapshot.

    Attributes:
        path: relative to the root, `/` between parts; bytes that are not UTF-8 are surrogates
        kind: what it is
        mode: permission bits
        size: bytes of a file's content, else 0
        sha256: of a file's content, hexadecimal, else empty
        target: where a symbolic link points, else None
        offset: where the content begins in the archive
    """

    path: str
    kind: Literal["file", "directory", "link"]
    mode: int
    size: int = 0
    sha256: str = ""
    target: str | None = None
    offset: int = 0


class Snapshot:
    """A pristine repository: an uncompressed tar in a temporary file without a name, and what is in it.

    It is never changed after it was taken, may be read from several threads at once, and is gone with `close` or with
    the process, however that ends.

    Attributes:
        members: all entries by path, sorted, directories before what is in them
        digest: hexadecimal; equal for equal repositories: names, kinds, permissions, contents, links
        environments: virtual environments that were left out, by path
    """

    def __init__(self, file: BinaryIO, members: Mapping[str, Member], environments: Iterable[str] = ()) -> None:
        """Keep a finished archive; see `take`.

        Args:
            file: the archive; belongs to the snapshot from now on
            members: what is in it
            environments: virtual environments that are not
        """
        self.environments = tuple(environments)
        self._file = file
        weakref.finalize(self, file.close)
        self._size = file.seek(0, os.SEEK_END)
        self.members: Mapping[str, Member] = MappingProxyType(dict(members))
        digest = hashlib.sha256()
        for member in self.members.values():
            facts = (member.path, member.kind, oct(member.mode), member.sha256, member.target or "")
            digest.update("\0".join(facts).encode("utf-8", "surrogateescape") + b"\0\0")
        self.digest = digest.hexdigest()

    @classmethod
    def take(cls, directory: Path | str, exclude: Iterable[str] = ()) -> Snapshot:
        """Copy a directory.

        Version control, caches and virtual environments are left out, and so is what is neither file, directory nor
        symbolic link. Symbolic links are copied as links.

        Args:
            directory: read, never written
            exclude: patterns with `.gitignore`'s syntax of more to leave out

        Raises:
            UsageError: the directory is not there or cannot be read
        """
        root = Path(directory)
        if not root.is_dir():
            raise UsageError(f"{root} is not a directory" if root.exists() else f"there is no directory {root}")
        file = tempfile.TemporaryFile(prefix="debug-gym-")  # noqa: SIM115 (closed by close)
        try:
            archiver = _Archiver(root, file, Patterns(exclude, lenient=False))
            archiver.run()
            return cls(file, archiver.members, archiver.environments)
        except OSError as error:
            file.close()
            name = error.filename
            where = decode(name) if isinstance(name, bytes) else name
            raise UsageError(f"{shown(str(where or root))} cannot be copied: {error.strerror or error}") from error
        except BaseException:
            file.close()
            raise

    def with_changes(self, changes: Mapping[str, FileState | None]) -> Snapshot:
        """A copy in which files are different; directories that are empty now stay, but where a file takes their place.

        Args:
            changes: the new state by path, None for a file that is gone
        """
        there = {path for path, state in changes.items() if state is not None}
        members = {path: member for path, member in self.members.items() if path not in changes}
        members = {path: member for path, member in members.items() if there.isdisjoint(above_of(path))}
        for path, state in changes.items():
            if state is None:
                continue
            members[path] = Member(path, state.kind, 0o777 if state.kind == "link" else state.mode)
            while path := posixpath.dirname(path):
                members.setdefault(path, Member(path, "directory", 0o755))
        file = tempfile.TemporaryFile(prefix="debug-gym-")  # noqa: SIM115 (closed by close)
        try:
            written = {}
            # The order of `take`: a directory's entries by name, before what comes after the directory.
            for path in sorted(members, key=lambda path: encode(path).split(b"/")):
                member, state = members[path], changes.get(path)
                if member.kind == "directory":
                    file.write(_header(member))
                elif member.kind == "link":
                    target = member.target if state is None else decode(state.data)
                    member = Member(path, "link", 0o777, target=target)
                    file.write(_header(member))
                else:
                    data = self.read(path) if state is None else state.data
                    file.write(_header(Member(path, "file", member.mode, len(data))))
                    digest = hashlib.sha256(data).hexdigest()
                    member = Member(path, "file", member.mode, len(data), digest, offset=file.tell())
                    file.write(data)
                    file.write(tarfile.NUL * (-len(data) % tarfile.BLOCKSIZE))
                written[path] = member
            file.write(tarfile.NUL * (2 * tarfile.BLOCKSIZE))
            file.flush()
            return Snapshot(file, written, self.environments)
        except BaseException:
            file.close()
            raise

    def archive(self) -> Iterator[bytes]:
        """The tar in blocks; every iterator reads from the beginning, whatever others do."""
        for offset in range(0, self._size, BLOCK):
            yield self._read(offset, min(BLOCK, self._size - offset))

    def read(self, path: str) -> bytes:
        """The content of a file, or where a link points.

        Args:
            path: one of `members`

        Raises:
            KeyError: there is no such file or link
        """
        member = self.members[path]
        if member.kind == "link":
            return encode(member.target or "")
        if member.kind == "directory":
            raise KeyError(path)
        return self._read(member.offset, member.size)

    def state(self, path: str) -> FileState | None:
        """A file or link as it was; None when there is none of that path."""
        member = self.members.get(path)
        if member is None or member.kind == "directory":
            return None
        return FileState(self.read(path), member.mode, member.kind)

    def _read(self, offset: int, size: int) -> bytes:
        parts = []
        while size > 0:
            part = os.pread(self._file.fileno(), size, offset)
            if not part:
                raise OSError("the snapshot's file is cut short")
            parts.append(part)
            offset += len(part)
            size -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Remove the copy; may be called twice."""
        self._file.close()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Archiver:
    """Writes a directory as a tar that depends on nothing but names, contents, permissions and links."""

    def __init__(self, root: Path, file: BinaryIO, exclude: Patterns) -> None:
        self._root = os.fsencode(root)
        self._file = file
        self._exclude = exclude
        self.members: dict[str, Member] = {}
        self.environments: list[str] = []

    def run(self) -> None:
        """Write the whole archive."""
        ahead = [self._entries("")]  # of a directory and those that it is in; a repository can be deeper than the stack
        while ahead:
            entry = next(ahead[-1], None)
            if entry is None:
                ahead.pop()
            elif self._entry(*entry):
                ahead.append(self._entries(entry[0]))
        self._file.write(tarfile.NUL * (2 * tarfile.BLOCKSIZE))
        self._file.flush()

    def _entries(self, path: str) -> Iterator[tuple[str, os.DirEntry[bytes]]]:
        """The paths and entries of a directory, in order."""
        with os.scandir(os.path.join(self._root, encode(path))) as found:  # noqa: PTH118 (bytes)
            entries = sorted(found, key=lambda entry: entry.name)
        names = {decode(entry.name) for entry in entries}
        for entry in entries:
            name = decode(entry.name)
            # Python reads nothing that was compiled of a source beside it, which may have been another one then.
            stale = name.endswith((".pyc", ".pyo")) and name[:-1] in names
            if name not in LEFT_OUT and not stale:
                yield f"{path}/{name}" if path else name, entry

    def _entry(self, path: str, entry: os.DirEntry[bytes]) -> bool:
        """Write an entry, unless it is left out; returns whether it is a directory that was written."""
        information = entry.stat(follow_symlinks=False)
        is_dir = stat.S_ISDIR(information.st_mode)
        if self._exclude.match(path, is_dir) or (is_dir and _is_run(entry.path)):
            return False
        if is_dir and _is_environment(entry.path):
            self.environments.append(path)
            return False
        mode = stat.S_IMODE(information.st_mode) & 0o777
        if is_dir:
            self.members[path] = Member(path, "directory", mode | 0o700)
            self._header(self.members[path])
        elif stat.S_ISLNK(information.st_mode):
            target = decode(os.readlink(entry.path))  # noqa: PTH115 (bytes)
            self.members[path] = Member(path, "link", 0o777, target=target)
            self._header(self.members[path])
        elif stat.S_ISREG(information.st_mode):
            self.members[path] = self._content(path, entry.path)
        return is_dir

    def _header(self, member: Member) -> int:
        """Write a tar header; returns where the content begins."""
        self._file.write(_header(member))
        return self._file.tell()

    def _content(self, path: str, source: bytes) -> Member:
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb", buffering=0) as content:  # noqa: PTH123 (a descriptor)
            information = os.fstat(descriptor)
            mode, size = stat.S_IMODE(information.st_mode) & 0o777 | 0o400, information.st_size
            if size > BLOCK and size > _room(self._file):
                raise UsageError(
                    f"{shown(path)} has {size:,} bytes, more than there is room for in {tempfile.gettempdir()}; remove"
                    " it, or set TMPDIR to another directory"
                )
            offset = self._header(Member(path, "file", mode, size))
            digest = hashlib.sha256()
            missing = size
            while missing > 0:
                block = content.read(min(BLOCK, missing))
                if not block:
                    raise UsageError(f"{decode(source)} changed while it was copied")
                self._file.write(block)
                digest.update(block)
                missing -= len(block)
        self._file.write(tarfile.NUL * (-size % tarfile.BLOCKSIZE))
        return Member(path, "file", mode, size, digest.hexdigest(), offset=offset)


def _room(file: BinaryIO) -> int:
    """Bytes that its file system has left: a file that is nearly all hole can be of any size."""
    about = os.fstatvfs(file.fileno())
    return about.f_bavail * about.f_frsize


def _is_run(directory: bytes) -> bool:
    """Whether a directory is what a run of ours left: it holds the patches of earlier episodes."""
    try:
        facts = json.loads(plain_files.read(os.path.join(directory, b"run.json"), _RECORD) or b"")  # noqa: PTH118
    except (ValueError, RecursionError):
        return False
    return isinstance(facts, dict) and {"config", "versions", "seed"} <= set(facts)


def _is_environment(directory: bytes) -> bool:
    """Whether a directory is a virtual environment."""
    return os.path.lexists(os.path.join(directory, b"pyvenv.cfg"))  # noqa: PTH118 (bytes)


def _header(member: Member) -> bytes:
    """The tar header of an entry; GNU's format keeps long names and any bytes in them."""
    information = tarfile.TarInfo(member.path)
    information.type = {"file": tarfile.REGTYPE, "directory": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}[member.kind]
    information.mode, information.mtime, information.size = member.mode, MTIME, member.size
    information.linkname = member.target or ""
    return information.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def archive_of(files: Mapping[str, FileState], directories: Mapping[str, int] | None = None) -> bytes:
    """A tar of files and links, for `Session.put`.

    Args:
        files: by path relative to the workspace; directories above them need not be there
        directories: directories to make, or to give permissions: the permission bits by path
    """
    out = io.BytesIO()
    for path, mode in sorted((directories or {}).items()):
        out.write(_header(Member(path, "directory", mode)))
    for path, state in sorted(files.items()):
        if state.kind == "link":
            out.write(_header(Member(path, "link", 0o777, target=decode(state.data))))
        else:
            out.write(_header(Member(path, "file", state.mode, len(state.data))))
            out.write(state.data)
            out.write(tarfile.NUL * (-len(state.data) % tarfile.BLOCKSIZE))
    out.write(tarfile.NUL * (2 * tarfile.BLOCKSIZE))
    return out.getvalue()
