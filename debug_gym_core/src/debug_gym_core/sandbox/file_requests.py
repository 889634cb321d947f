"""Files in a sandbox: requests to the guest in it."""

from __future__ import annotations

import abc
import functools
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from debug_gym_core.sandbox.answers import Entry, FileLines, changes_of, entries_of, entry_of, joined
from debug_gym_core.sandbox.frames import BODY_LIMIT, Header
from debug_gym_core.sandbox.replies import PIECE, ROOM, Waiter
from debug_gym_core.sandbox.search import search

if TYPE_CHECKING:
    from debug_gym_core.sandbox.connection import Connection
    from debug_gym_core.sandbox.grep import Found, Query

FILE_TIMEOUT = 120.0
"""Seconds that one file operation, or one piece of a long one, may take before the guest counts as hung."""

LISTING = 1 << 29
"""Bytes of a walk, or of what has changed: some hundred for each entry, of which a workspace has no end of."""

_Part = TypeVar("_Part")
_Made = TypeVar("_Made")

_CHUNK = 1 << 18
_WINDOW = 8


class FileRequests(abc.ABC):
    """What is asked of a sandbox's guest about files, over whichever connection there is; see `Session` of paths."""

    @abc.abstractmethod
    def _connect(self) -> Connection:
        """The live guest.

        Raises:
            SandboxError: there is none and none can be started
        """

    def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        """Bytes of a file.

        Args:
            path: relative to the workspace; links inside are followed, an absolute path is taken as it is
            offset: where to begin
            size: how many bytes at most; None: to the end

        Raises:
            FileNotFoundError: there is none
            IsADirectoryError: it is a directory
            PermissionError: the path leads out of the workspace, or may not be read
            OSError: it cannot be read
            SandboxLost: the guest is gone
        """
        return self._read(path, offset, size)()

    def read_later(self, path: str, size: int) -> Callable[[], bytes]:
        """Ask for a file, and go on: so many small ones come as fast as the guest reads them.

        Args:
            path: as of `read`
            size: how many bytes at most

        Returns:
            what waits for the bytes and returns them; raises as `read` does

        Raises:
            SandboxLost: the guest is gone
        """
        return self._read(path, 0, size)

    def _read(self, path: str, offset: int, size: int | None) -> Callable[[], bytes]:
        longest = BODY_LIMIT if size is None else size
        asked: dict[str, Any] = {"path": path, "offset": offset, "size": size}
        return self._ask(
            "read", room=ROOM + longest, understand=bytes, make=lambda _, data: joined(data, longest), **asked
        )

    def lines(self, path: str, start: int, count: int, limit: int) -> FileLines:
        """Lines of a file of any size, of which only they are sent; a line ends at a newline byte only.

        Args:
            path: relative to the workspace; links are followed, but nothing is read where they lead out of it
            start: first line, from 1
            count: how many lines
            limit: bytes to send at most

        Raises:
            FileNotFoundError: there is none
            IsADirectoryError: it is a directory
            OSError: it cannot be read
            SandboxLost: the guest is gone
        """

        def make(header: Header, data: list[bytes]) -> FileLines:
            lines = joined(data, limit)
            return FileLines(header["real"], header["total"], lines, header["length"], header["declared"])

        return self._file("lines", make, room=ROOM + limit, path=path, start=start, count=count, limit=limit)

    def write(self, path: str, data: bytes, mode: int | None = None, *, follow: bool = False) -> None:
        """Write a file atomically (temporary file and rename in the same directory), parents made.

        Args:
            path: relative to the workspace; a link to a file is written through
            data: the new content
            mode: permission bits; None: those that it had, 0o644 for a new file
            follow: also write where a link leads out of the workspace

        Raises:
            PermissionError: the path leads out of the workspace, or may not be written
            IsADirectoryError: it is a directory
            OSError: it cannot be written: read-only, no space
            SandboxLost: the guest is gone
        """
        self._file("write", _nothing, data, path=path, mode=mode, follow=follow)

    def remove(self, path: str) -> None:
        """Remove a file, link or directory tree; nothing happens when it is not there.

        Raises:
            PermissionError: the path leads out of the workspace, or may not be removed
            SandboxLost: the guest is gone
        """
        self._file("remove", _nothing, path=path)

    def stat(self, path: str) -> Entry | None:
        """What is at a path: a link itself, not where it leads; None: nothing.

        Raises:
            PermissionError: the path leads out of the workspace
            SandboxLost: the guest is gone
        """

        def make(header: Header, _: list[bytes]) -> Entry | None:
            return None if header["entry"] is None else entry_of(header["entry"])

        return self._file("stat", make, path=path)

    def realpath(self, path: str) -> str:
        """The absolute path in the sandbox with every link resolved, whether there is something or not.

        Raises:
            SandboxLost: the guest is gone
        """

        def make(header: Header, _: list[bytes]) -> str:
            return str(header["real"])

        return self._file("realpath", make, path=path)

    def walk(
        self,
        path: str = ".",
        depth: int | None = None,
        prune: Iterable[str] = (),
        watch: Iterable[str] | None = None,
        *,
        open_up: bool = False,
    ) -> Iterator[Entry]:
        """Entries below a directory: each directory just before what it holds, names sorted, links not followed.

        Args:
            path: relative to the workspace
            depth: 1: only the directory's own entries; None: all
            prune: names of directories whose content is left out, wherever they are; one that begins with `/` is a
                path in the workspace
            watch: from here on keep track of what happens to the entries, for `changed`, and, under whatever other name
                it is done, to these files; None: do not
            open_up: give the owner's permissions back to directories that a command has taken them from

        Raises:
            FileNotFoundError: there is no such directory
            NotADirectoryError: it is something else
            PermissionError: the path leads out of the workspace
            SandboxLost: the guest is gone
        """
        files = None if watch is None else list(watch)
        asked: dict[str, Any] = {"path": path, "depth": depth, "prune": list(prune), "watch": files, "open_up": open_up}
        understand = functools.partial(entries_of, above=path)

        def make(_: Header, parts: list[list[Entry]]) -> Iterator[Entry]:
            return itertools.chain.from_iterable(parts)

        return self._ask("walk", room=LISTING, longest=PIECE, understand=understand, make=make, **asked)()

    def changed(self) -> dict[str, Entry | None] | None:
        """What may have changed since the last `walk` with `watch`, or since this was last asked.

        What was written to a mapped file (mmap) is told when the mapping ends.

        Returns:
            each path with what is there now, None for nothing; None instead of all: it is not known, the system cannot
            watch, or too much happened; then compare everything by another such `walk`

        Raises:
            SandboxLost: the guest is gone
        """

        def make(header: Header, parts: list[dict[str, Entry | None]]) -> dict[str, Entry | None] | None:
            return {path: entry for part in parts for path, entry in part.items()} if header["known"] else None

        return self._ask("changed", room=LISTING, longest=PIECE, understand=changes_of, make=make)()

    def grep(self, path: str, query: Query, ignored: dict[str, Any]) -> Found:
        """Search the files below a directory, or one file, in the sandbox; links are not followed on the way.

        Args:
            path: relative to the workspace
            query: what to look for
            ignored: files and directories that are passed over, as `Rules.ignore_patterns` gives them

        Raises:
            InvalidPattern: the pattern is no regular expression
            FileNotFoundError: there is no such path
            PermissionError: the path leads out of the workspace, or may not be read
            SandboxLost: the guest is gone
        """
        return search(self._connect(), path, query, ignored)

    def put(self, archive: Iterable[bytes] | bytes) -> None:
        """Unpack an uncompressed tar stream into the workspace.

        Modes, times and links are kept; what is in the place of an entry is replaced; devices are left out.

        Args:
            archive: the stream, in pieces of any size

        Raises:
            PermissionError: an entry leads out of the workspace
            OSError: the archive is damaged, or there is no space
            SandboxLost: the guest is gone
        """
        connection = self._connect()
        waiter = Waiter(LISTING)  # a word for each piece
        number = connection.submit(waiter, "put", path=".")

        def wait() -> str:
            return str(connection.wait(waiter, "put", FILE_TIMEOUT)[0]["t"])

        wait()
        room = _WINDOW
        pieces = [archive] if isinstance(archive, bytes) else archive
        try:
            for piece in pieces:
                view = memoryview(piece)
                for start in range(0, len(view), _CHUNK):
                    while room == 0:
                        wait()
                        room += 1
                    connection.send({"op": "chunk", "of": number}, bytes(view[start : start + _CHUNK]))
                    room -= 1
        finally:
            connection.send({"op": "end", "of": number})
        while wait() != "done":
            pass

    def _file(
        self,
        op: str,
        make: Callable[[Header, list[bytes]], _Made],
        body: bytes = b"",
        *,
        room: int = ROOM,
        **fields: Any,
    ) -> _Made:
        """Make a file request, and wait for what is made of its replies; see `_ask`."""
        return self._ask(op, body, room=room, understand=bytes, make=make, **fields)()

    def _ask(
        self,
        op: str,
        body: bytes = b"",
        *,
        room: int = ROOM,
        longest: int | None = None,
        understand: Callable[[bytes], _Part],
        make: Callable[[Header, list[_Part]], _Made],
        **fields: Any,
    ) -> Callable[[], _Made]:
        """Make a file request.

        Args:
            op: what the guest shall do
            body: raw bytes that go with it
            room: bytes that the replies may have together
            longest: bytes that one of them may have; None: all
            understand: what is made of the body of each; raises SandboxLost if it is no answer
            make: what is made of the header of the last and of the parts; likewise
            fields: further fields of the request's header

        Returns:
            what waits for the replies, and returns what was made of them
        """
        connection = self._connect()
        waiter = Waiter(room, longest)
        connection.submit(waiter, op, body, **fields)

        def replies() -> _Made:
            parts = []
            while True:
                header, data = connection.wait(waiter, op, FILE_TIMEOUT)
                with connection.believing():
                    parts.append(understand(data))
                    if header["t"] == "done":
                        return make(header, parts)

        return replies


def _nothing(header: Header, data: list[bytes]) -> None:
    """What is made of the replies to a request that asks for nothing."""


def give_blob(connection: Connection, data: bytes) -> str:
    """Have a guest know a blob, which programs can read by descriptor; it is sent once.

    Args:
        connection: of the guest
        data: the blob

    Returns:
        its digest, by which the guest knows it

    Raises:
        SandboxLost: the guest is gone
    """
    digest = hashlib.sha256(data).hexdigest()
    if digest not in connection.blobs:
        connection.request("blob", data, timeout=FILE_TIMEOUT, digest=digest)
        connection.blobs.add(digest)
    return digest
