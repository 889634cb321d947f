"""Repositories that lie in images: taken out of them once, kept on this machine by the image's content."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core.components.component import construct
from debug_gym_core.errors import RequirementError, SandboxError
from debug_gym_core.places import cache
from debug_gym_core.sandbox import ownership
from debug_gym_core.workspace.snapshot import LEFT_OUT

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from debug_gym_core.sandbox.terminal import Terminal
    from debug_gym_core.tasks.task import Task

BLOCK = 1 << 20

_UNFINISHED = ".unfinished"
_taking: dict[str, threading.Lock] = {}
"""Held by who takes a repository out, by the name of its place."""


def directory() -> Path:
    """Where they are kept: `debug-gym/repositories` below `$XDG_CACHE_HOME`, or `~/.cache`."""
    return cache() / "repositories"


def repository_of(
    task: Task, backend: type[Terminal], settings: Mapping[str, Any], tell: Callable[[str], None] = lambda text: None
) -> Path:
    """The directory of a task's repository on the host, taken out of the task's image when it lies there.

    Args:
        task: what is worked on
        backend: the terminal that runs its image
        settings: the terminal's settings, with the image
        tell: is told in a line what takes long

    Raises:
        RequirementError: the image is not there, has no such directory, or the backend takes none out of it
        SandboxError: it cannot be read
    """
    if task.repository is not None:
        return task.repository
    terminal = construct(backend, **settings)
    facts = f"{terminal.identify_image()} {task.image_directory}"
    place = directory() / hashlib.sha256(facts.encode()).hexdigest()[:32]
    # Of many workers one takes it; another process does it again, and the first one's stays.
    with _taking.setdefault(place.name, threading.Lock()):
        if not place.is_dir():
            tell(f"taking {task.image_directory} out of {settings.get('image') or task.image}")
            _take(terminal, task.image_directory, place)
    return place


def reap() -> list[Path]:
    """Remove what processes that were killed meanwhile have left; returns which directories."""
    removed = []
    for path in sorted(directory().glob(f"{_UNFINISHED}*")):
        if ownership.gone("/".join(path.name.split("~")[1:-1])):
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path)
    return removed


def remove_all() -> tuple[list[str], list[str]]:
    """Remove all kept repositories, which the next task takes out again.

    Returns:
        what was removed, and what could not be, a line each
    """
    removed, failed = [], []
    for path in sorted(directory().glob("[!.]*")):
        name = f"repository of an image, {path.name}"
        try:
            gone = path.rename(path.with_name(f"{_unfinished()}{path.name}"))  # so that nobody takes the rest for whole
            shutil.rmtree(gone)
            removed.append(name)
        except OSError as error:
            failed.append(f"{name}: {error}")
    return removed, failed


def _unfinished() -> str:
    """How the name of a directory begins that this process makes or removes."""
    return f"{_UNFINISHED}~{ownership.owner().replace('/', '~')}~"


def tests_of_image(
    task: Task, backend: type[Terminal], settings: Mapping[str, Any], tell: Callable[[str], None] = lambda text: None
) -> Path | None:
    """The directory of a task's tests on the host, taken out of the task's image; None: they are elsewhere.

    See `repository_of`.
    """
    if task.image_tests is None:
        return None
    return repository_of(dataclasses.replace(task, image_directory=task.image_tests[0]), backend, settings, tell)


def image_settings(task: Task, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a terminal that a task's image needs.

    Args:
        task: what is worked on
        settings: those that somebody chose

    Returns:
        those that are different: what stays of the image in the workspace, and what must not be seen of it
    """
    needed: dict[str, Any] = {}
    if task.image_kept:
        needed["kept"] = (*settings.get("kept", ()), *task.image_kept)
    if task.image_tests is not None:  # in the repository, where they are to be seen
        needed["tmpfs"] = tuple(dict.fromkeys((*settings.get("tmpfs", ()), task.image_tests[0])))
    return needed


def _take(terminal: Terminal, source: str, place: Path) -> None:
    """Unpack a directory of an image beside its place, then rename it."""
    try:
        place.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=_unfinished(), dir=place.parent))
    except OSError as error:
        raise RequirementError(
            f"repositories of images are kept in {directory()}: {error.strerror or error}; make room there, or set"
            " XDG_CACHE_HOME to another directory"
        ) from error
    try:
        unpack(terminal.image_archive(source), temporary)
        try:
            temporary.rename(place)
        except OSError as error:
            if not place.is_dir():  # else another process was faster
                raise SandboxError(f"{place}: what was taken out of the image cannot be kept: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def unpack(archive: Iterator[bytes], into: Path) -> None:
    """Unpack a tar of one directory into another one, without version control and caches.

    Nothing is written through a link of the archive, or outside: it is of an image that somebody else made.

    Args:
        archive: the tar, whose entries lie below one directory
        into: an empty directory

    Raises:
        SandboxError: it is no such archive, or cannot be written
    """
    made: set[str] = {""}
    aside: dict[str, Path] = {}
    try:
        with (
            tempfile.TemporaryDirectory(prefix=_unfinished(), dir=into.parent) as place,
            tarfile.open(fileobj=io.BufferedReader(_Blocks(archive), BLOCK), mode="r|") as tar,
        ):
            for entry in tar:
                parts = [part for part in entry.name.split("/") if part not in ("", ".")][1:]
                if not parts or LEFT_OUT.intersection(parts):
                    if entry.isreg() and ".git" not in parts:  # a file that stays may be a link to it, as uv makes them
                        aside["/".join(parts)] = kept = Path(place) / str(len(aside))
                        _copy(tar, entry, kept)
                    continue
                if ".." in parts or "/".join(parts[:-1]) not in made:
                    raise SandboxError(f"the archive of the image is odd at {entry.name}")
                _write(tar, entry, into, "/".join(parts), made, aside)
    except (tarfile.TarError, OSError) as error:
        raise SandboxError(f"the repository in the image cannot be taken out: {error}") from error


def _copy(tar: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    """Write a new file with an entry's content."""
    content = tar.extractfile(entry)
    assert content is not None
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, entry.mode & 0o777 | 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 (a descriptor)
        shutil.copyfileobj(content, file, BLOCK)


def _write(
    tar: tarfile.TarFile,
    entry: tarfile.TarInfo,
    into: Path,
    path: str,
    made: set[str],
    aside: Mapping[str, Path],
) -> None:
    """Write one entry; what is neither file, directory nor link is left out.

    Args:
        tar: that it is of
        entry: it
        into: the directory that is made
        path: where in it
        made: paths of the directories in it, to which its own is added
        aside: files that are left out, by their paths
    """
    target = into / path
    if entry.isdir():
        target.mkdir(mode=entry.mode & 0o777 | 0o700)
        made.add(path)
    elif entry.issym():
        target.symlink_to(entry.linkname)
    elif entry.isreg():
        _copy(tar, entry, target)
    elif entry.islnk():
        first = "/".join([part for part in entry.linkname.split("/") if part not in ("", ".")][1:])
        strays = ".." in first.split("/") or os.path.dirname(first) not in made  # noqa: PTH120 (of the archive)
        if (strays and first not in aside) or os.path.lexists(target):
            raise SandboxError(f"the archive of the image is odd at {entry.name}")
        source = aside.get(first, into / first)
        shutil.copyfile(source, target, follow_symlinks=False)
        shutil.copymode(source, target, follow_symlinks=False)


class _Blocks(io.RawIOBase):
    """Blocks as a stream."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """That it is."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Give what is left of a block, or the next one."""
        if not self._rest:
            self._rest = memoryview(next(filter(None, self._blocks), b""))
        wanted = memoryview(buffer).cast("B")
        count = min(len(wanted), len(self._rest))
        wanted[:count], self._rest = self._rest[:count], self._rest[count:]
        return count
