"""Whole directories: what lies below them, and what of it has changed since."""

import contextlib
import os
import stat

from .frames import encode, to_bytes, to_text
from .tree import LONGEST_PATH, describe, identity, names_in, permit
from .watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .frames import Exchange
    from .tree import Tree

    Reply = tuple[dict[str, Any], bytes]

BATCH = 500  # entries that are sent at once


class Walks:
    """Operations on directories: each takes header and body, returns the fields and body of its reply."""

    def __init__(self, tree: "Tree", host: "Exchange") -> None:
        self.tree = tree
        self.host = host
        self.watch = None  # type: Watch | None

    def walk(self, header: "dict[str, Any]", _body: bytes) -> "Reply":
        """The entries below a directory, each directory just before what it holds, names sorted by their bytes."""
        prune = frozenset(to_bytes(name) for name in header.get("prune") or ())
        prefix = to_bytes(header["path"]).rstrip(b"/")
        prefix = b"" if prefix in (b"", b".") else prefix + b"/"
        alone = frozenset(to_bytes(path) for path in header.get("watch") or ())
        batch = []
        directory = self.tree.open_directory(self.tree.real(header), create=False)
        watch = self._new_watch(prune, directory) if header.get("watch") is not None else None
        open_up = bool(header.get("open_up"))
        try:
            for path, name, status, above in self._below(
                directory, prefix, prune, header.get("depth"), watch, open_up=open_up
            ):
                batch.append(describe(to_text(path), name, status, above))
                if watch is not None and path in alone:
                    watch.add_file(name, above, path)
                if len(batch) >= BATCH:
                    self.host.send({"id": header["id"], "t": "data"}, encode(batch).encode("ascii"))
                    batch = []
        except BaseException:
            if watch is not None:
                watch.close()
            raise
        if watch is not None:
            self.watch = watch
        return {}, encode(batch).encode("ascii")

    def _below(
        self,
        directory: int,
        prefix: bytes,
        prune: "frozenset[bytes]",
        depth: "int | None" = None,
        watch: "Watch | None" = None,
        open_up: bool = False,
    ) -> "Iterator[tuple[bytes, bytes, os.stat_result, int]]":
        """What is below an open directory, which is closed at the end: path, name, status, the directory it is in.

        `open_up`: directories of ours that cannot be read, or nothing be removed from, get the permissions for it.
        """
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        # Each directory is opened in the one above it, which is still open: none can be replaced by a link meanwhile.
        todo = [(directory, prefix)]
        names = []  # type: list[list[bytes]]
        try:
            if watch is not None:
                watch.add_directory(directory, prefix)
            names.append(names_in(directory))
            while todo:
                directory, prefix = todo[-1]
                if not names[-1]:
                    names.pop()
                    os.close(todo.pop()[0])
                    continue
                name = names[-1].pop()
                try:
                    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                except OSError:  # gone since
                    continue
                if open_up and stat.S_ISDIR(status.st_mode) and status.st_mode & 0o700 != 0o700:
                    with contextlib.suppress(OSError):  # gone since, or not ours
                        permit(name, 0o700, directory)
                        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                path = prefix + name
                yield path, name, status, directory
                if len(path) >= LONGEST_PATH:
                    continue
                if (
                    stat.S_ISDIR(status.st_mode)
                    and (depth is None or len(todo) < depth)
                    and not (name in prune or b"/" + path in prune)
                ):
                    try:
                        todo.append((os.open(name, flags, dir_fd=directory), path + b"/"))
                    except OSError:  # gone since, not readable, or too deep
                        continue
                    if watch is not None:
                        watch.add_directory(todo[-1][0], path + b"/")
                    try:
                        names.append(names_in(todo[-1][0]))
                    except OSError:
                        names.append([])
        finally:
            for directory, _ in todo:
                os.close(directory)

    def _new_watch(self, prune: "frozenset[bytes]", directory: int) -> "Watch | None":
        """A watch that is to take the place of the one so far, of which there is none until the walk has ended."""
        if self.watch is not None:
            self.watch.close()
            self.watch = None
        with contextlib.suppress(OSError, AttributeError):
            watch = Watch(prune)
            watch.top = identity(os.fstat(directory))
            return watch
        return None

    def changed(self, header: "dict[str, Any]", _body: bytes) -> "Reply":
        """What may have changed since the walk that watches, or since this was last asked.

        Pairs of a path and its entry, null where there is nothing. `known` false: it may be anything.
        """
        watch = self.watch
        found = watch.take() if watch is not None else None
        if watch is None or found is None or watch.top != identity(os.stat(self.tree.root)):
            return {"known": False}, b""
        changed, fresh = found
        batch = []  # type: list[Any]
        several = False  # names of one file: it may have been changed by one that is not watched
        for path in sorted(changed - {b""}):
            directory = -1
            try:
                above, name = os.path.split(path)
                directory = self.tree.open_directory(os.path.join(self.tree.root, above), create=False)
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                batch.append([to_text(path), describe(to_text(path), name, status, directory)])
                several = several or (stat.S_ISREG(status.st_mode) and status.st_nlink > 1)
            except OSError:
                batch.append([to_text(path), None])
            finally:
                if directory >= 0:
                    os.close(directory)
        for top in sorted(fresh):
            if os.path.basename(top) in watch.prune or b"/" + top in watch.prune:
                continue
            try:
                directory = self.tree.open_directory(os.path.join(self.tree.root, top), create=False)
            except PermissionError:  # closed: a walk that opens it must be made
                watch.complete = False
                continue
            except OSError:  # gone since, or replaced: that is told next
                continue
            with contextlib.suppress(OSError):
                below = self._below(directory, top + b"/", watch.prune, None, watch, open_up=True)
                for path, name, status, inner in below:
                    batch.append([to_text(path), describe(to_text(path), name, status, inner)])
                    several = several or (stat.S_ISREG(status.st_mode) and status.st_nlink > 1)
        if several or not watch.complete:
            watch.complete = False
            return {"known": False}, b""
        for start in range(BATCH, len(batch), BATCH):
            part = batch[start : start + BATCH]
            self.host.send({"id": header["id"], "t": "data"}, encode(part).encode("ascii"))
        return {"known": True}, encode(batch[:BATCH]).encode("ascii")
