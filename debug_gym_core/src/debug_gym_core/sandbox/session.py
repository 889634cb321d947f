"""What everyone uses of a sandbox: files, commands, processes, over one guest and one stream."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from debug_gym_core.errors import RequirementError, SandboxError, SandboxLost
from debug_gym_core.sandbox import warm as warm_start
from debug_gym_core.sandbox.connection import CommandEnded, CommandLost, Connection, Waiter
from debug_gym_core.sandbox.frames import decode_output
from debug_gym_core.sandbox.grep import Found, FoundFile, InvalidPattern, Query, file_of, request_of
from debug_gym_core.sandbox.process import Process
from debug_gym_core.sandbox.supervision import supervisor
from debug_gym_core.sandbox.terminal import ROOT, RunResult, SandboxSpec, Terminal, parse_size

if TYPE_CHECKING:
    from debug_gym_core.sandbox.spawn import Spawn
    from debug_gym_core.sandbox.warm import Warm

__all__ = ["OUTPUT_LIMIT", "CommandEnded", "CommandLost", "Entry", "Lines", "Process", "Session"]

OUTPUT_LIMIT = 64 * 1024

FILE_TIMEOUT = 120.0
"""Seconds that one file operation, or one piece of a long one, may take before the guest counts as hung."""

WARM_LIMIT = 512 << 20
"""Bytes of memory that an interpreter kept for warm starts may hold, and a quarter of the sandbox's at most."""

GRACE = 6.0
"""Seconds over a command's timeout after which the guest, which enforces it, counts as hung."""

ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "COLUMNS": "80",
}
"""Variables of every command besides those that the terminal starts the guest with (PATH, HOME)."""

_CHUNK = 1 << 18
_WINDOW = 8


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a directory walk.

    Attributes:
        path: relative to the workspace, `/` between parts
        kind: what it is
        size: bytes (of a file)
        mode: permission bits
        mtime_ns: time of last change
        target: where a symbolic link points
        stamp: differs whenever the entry was changed or replaced: size, mode, times and inode, joined
    """

    path: str
    kind: Literal["file", "directory", "link", "other"]
    size: int
    mode: int
    mtime_ns: int
    target: str | None = None
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of a file.

    Attributes:
        real: absolute path of the file in the sandbox, links resolved
        total: how many lines the file has
        data: the lines with their ends, up to the limit asked for
        length: bytes that the lines have in the file
    """

    real: str
    total: int
    data: bytes
    length: int


class Session:
    """A live sandbox: a started terminal and the guest in it.

    Paths are relative to the workspace and do not lead out of it, whatever links there are or come to be meanwhile
    (PermissionError); an absolute path is taken as it is. When a command closed or removed the workspace's directory,
    it is opened, or made again, empty, by the next request about files. Safe to use from several threads. A guest that
    dies costs what was under way (`SandboxLost`); as long as the terminal stands, the next request starts another one
    over the same files.

    Attributes:
        terminal: the backend
        spec: what the sandbox offers
        root: the workspace's real directory in the sandbox
        python: the interpreter for the task's code, as it is called in the sandbox
        restarts: how often a guest was started again
        commands: how many commands and programs were started so far
        warm_starts: how many of them were forked from an interpreter that had modules loaded
    """

    def __init__(self, terminal: Terminal, spec: SandboxSpec) -> None:
        """Use a terminal that was started; see `start`."""
        self.terminal = terminal
        if terminal.interpreter is not None:
            spec = dataclasses.replace(spec, interpreter=terminal.interpreter)
        self.spec = spec
        self.root = terminal.root
        self.python = str(spec.interpreter.executable) if spec.interpreter is not None else terminal.python
        self.restarts = 0
        self.commands = 0
        self.warm_starts = 0
        self._under_way = 0
        self._processes: weakref.WeakSet[Process] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._closed = False
        self._supervised = False

    @classmethod
    def start(cls, terminal: Terminal, spec: SandboxSpec) -> Session:
        """Start the terminal and the guest in it.

        Args:
            terminal: the backend, not yet started; stopped again when this fails
            spec: what the sandbox must offer

        Raises:
            RequirementError: something is missing on this machine
            SandboxError: the sandbox or the guest did not start
        """
        supervisor.begin(type(terminal))
        try:
            terminal.start(spec)
        except BaseException:
            try:
                terminal.stop()
            finally:
                supervisor.end()
            raise
        session = cls(terminal, spec)
        session._supervised = True
        try:
            session._connect()
        except BaseException:
            session.close()
            raise
        return session

    @property
    def environment(self) -> dict[str, str]:
        """Variables of every command, besides those that the terminal or the image sets."""
        return {**ENVIRONMENT, **self.spec.environment}

    @property
    def interpreter(self) -> dict[str, str]:
        """The interpreter for the task's code: `path`, in the image where there is one, and `version`.

        Raises:
            SandboxError: there is no guest and none can be started
        """
        found = self.spec.interpreter
        version = found.version if found is not None else self.guest()["python"]
        return {"path": self.python, "version": ".".join(map(str, version))}

    def guest(self) -> dict[str, Any]:
        """What the guest says of itself: `pid`, `python` (its version), `notes` (what it cannot do here).

        Raises:
            SandboxError: there is no guest and none can be started
        """
        return dict(self._connect().hello)

    # -- files

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
        return b"".join(self._file("read", path=path, offset=offset, size=size)[1])

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
        reply = self._ask("read", path=path, offset=0, size=size)
        return lambda: b"".join(reply()[1])

    def lines(self, path: str, start: int, count: int, limit: int) -> Lines:
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
        fields, data = self._file("lines", path=path, start=start, count=count, limit=limit)
        return Lines(fields["real"], fields["total"], b"".join(data), fields["length"])

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
        self._file("write", data, path=path, mode=mode, follow=follow)

    def remove(self, path: str) -> None:
        """Remove a file, link or directory tree; nothing happens when it is not there.

        Raises:
            PermissionError: the path leads out of the workspace, or may not be removed
            SandboxLost: the guest is gone
        """
        self._file("remove", path=path)

    def stat(self, path: str) -> Entry | None:
        """What is at a path: a link itself, not where it leads; None: nothing.

        Raises:
            PermissionError: the path leads out of the workspace
            SandboxLost: the guest is gone
        """
        entry = self._file("stat", path=path)[0]["entry"]
        return None if entry is None else Entry(*entry)

    def realpath(self, path: str) -> str:
        """The absolute path in the sandbox with every link resolved, whether there is something or not.

        Raises:
            SandboxLost: the guest is gone
        """
        real: str = self._file("realpath", path=path)[0]["real"]
        return real

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
            prune: names of directories whose content is left out
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
        _, bodies = self._file("walk", path=path, depth=depth, prune=list(prune), watch=files, open_up=open_up)
        return (Entry(*entry) for body in bodies for entry in json.loads(body))

    def changed(self) -> dict[str, Entry | None] | None:
        """What may have changed since the last `walk` with `watch`, or since this was last asked.

        What was written to a mapped file (mmap) is told when the mapping ends.

        Returns:
            each path with what is there now, None for nothing; None instead of all: it is not known, the system cannot
            watch, or too much happened; then compare everything by another such `walk`

        Raises:
            SandboxLost: the guest is gone
        """
        header, bodies = self._file("changed")
        if not header["known"]:
            return None
        pairs = [pair for body in bodies for pair in json.loads(body)]
        return {path: None if entry is None else Entry(*entry) for path, entry in pairs}

    def hashes(self, paths: Iterable[str]) -> dict[str, str | None]:
        """SHA-256 of files, hexadecimal; None for what is no file, cannot be read or leads out of the workspace.

        Raises:
            SandboxLost: the guest is gone
        """
        result: dict[str, str | None] = json.loads(b"".join(self._file("hash", paths=list(paths))[1]))
        return result

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
        connection = self._connect()
        waiter = Waiter()
        started = time.monotonic()
        number = connection.submit(waiter, "grep", path=path, **request_of(query, ignored))
        files: list[FoundFile] = []
        try:
            while True:
                header, body = connection.wait(waiter, "grep", query.timeout + GRACE)
                if header["t"] == "done":
                    break
                files.append(file_of(json.loads(body)))
        except CommandLost:  # the search was killed, or took all memory
            stopped: Literal["time", "memory"] = "time" if time.monotonic() - started >= query.timeout else "memory"
            lines = sum(one.count for one in files if not one.binary)
            return Found(files, 0, len(files), lines, stopped=stopped)
        except KeyboardInterrupt:
            with contextlib.suppress(SandboxLost):
                connection.submit(Waiter(), "kill", of=number)
            raise
        if "invalid" in header:
            raise InvalidPattern(header["invalid"], header["position"])
        sums = ("files", "matching_files", "matching_lines", "unreadable", "cut_lines", "stopped", "at")
        return Found(files, *(header[name] for name in sums))

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
        waiter = Waiter()
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

    # -- commands

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        cwd: str = ".",
        env: Mapping[str, str | None] | None = None,
        stdin: bytes = b"",
        output_limit: int = OUTPUT_LIMIT,
    ) -> RunResult:
        """Run a command to its end; what it leaves running in the background is ended too.

        Args:
            command: text for `bash -c` (`sh -c` where there is no bash), or a program and its arguments
            timeout: seconds; None: no limit
            cwd: relative to the workspace
            env: variables over those of the sandbox; None as a value removes one
            stdin: what it reads
            output_limit: bytes of output kept, head and tail

        Raises:
            FileNotFoundError: there is no such program, or no such directory
            OSError: the program cannot be started
            CommandLost: the guest's process that ran the command died, and the command with it
            SandboxLost: the guest is gone
        """
        with self._counted():
            return self._run(command, timeout, stdin, self._command(command, timeout, cwd, env, output_limit))

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Count a command."""
        with self._lock:
            self.commands += 1
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    @property
    def busy(self) -> bool:
        """Whether a command runs, or a program that `process` or `spawn` started."""
        return self._under_way > 0 or any(process.running for process in list(self._processes))

    def _run(
        self, command: str | Sequence[str], timeout: float | None, stdin: bytes, fields: dict[str, Any]
    ) -> RunResult:
        """Make the request and wait for its end."""
        connection = self._connect()
        waiter = Waiter()
        number = connection.submit(waiter, "run", stdin, **fields)
        try:
            backstop = None if timeout is None else timeout + GRACE
            header, body = connection.wait(waiter, f"{_shown(command)!r}", backstop)
        except (OSError, SandboxError):
            raise
        except BaseException:  # Ctrl-C
            with contextlib.suppress(SandboxLost):
                connection.submit(Waiter(), "kill", of=number)
            raise
        middle = header.get("head", len(body))
        output, cut = decode_output(body[:middle], body[middle:], header.get("cut", 0))
        return RunResult(header["status"], output, cut, header["timed_out"], header["seconds"])

    def process(
        self,
        argv: str | Sequence[str],
        *,
        pty: bool = False,
        channel: bool = True,
        blobs: Mapping[str, bytes] | None = None,
        cwd: str = ".",
        env: Mapping[str, str | None] | None = None,
        timeout: float | None = None,
        output_limit: int = OUTPUT_LIMIT,
        stdin: bool = False,
        follow: bool = False,
        warm: Warm | None = None,
    ) -> Process:
        """Start a program that the host talks to.

        Args:
            argv: the command; elements `{channel}` and `{blob:NAME}` are replaced by descriptor numbers
            pty: give it a PTY as standard streams and controlling terminal; else pipes (stdin empty)
            channel: give it a socket for framed messages (4 bytes big-endian length, then the message, both ways)
            blobs: files that it can read by descriptor, in no directory of the sandbox (memfd)
            cwd: relative to the workspace
            env: variables over those of the sandbox; None as a value removes one
            timeout: seconds after which guest kills it; None: never
            output_limit: bytes of output kept (head and tail) between two `take_output`
            stdin: give it a pipe that `Process.write_stdin` writes to, also beside a PTY
            follow: hand all output on as it comes, for `Process.read_text`, instead of keeping head and tail
            warm: the program may be a fork of an interpreter that is kept for this; None: it is started

        Raises:
            FileNotFoundError: there is no such program, or no such directory
            OSError: the program cannot be started
            SandboxError: the guest, or its process for this program, is gone
        """
        connection = self._connect()
        digests = {name: _give(connection, data) for name, data in (blobs or {}).items()}
        fields = self._command(argv, timeout, cwd, env, output_limit)
        fields |= {"pty": pty, "channel": channel, "blobs": digests, "stdin": stdin, "follow": follow}
        if warm is not None:
            boot, code = warm_start.BOOT, _give(connection, warm_start.zygote_blob())
            limit = min(parse_size(self.terminal.settings.memory) // 4, WARM_LIMIT)
            fields["warm"] = {
                "boot": boot,
                "code": code,
                "imports": warm.imports,
                "after": warm.after,
                "limit": limit,
            }
        process = Process(connection, output_limit)
        with self._lock:
            self.commands += 1
            self._processes.add(process)
        process.start(lambda handler: connection.submit(handler, "process", **fields))
        self.warm_starts += process.warm
        return process

    def spawn(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = 30,
        cwd: str = ".",
        env: Mapping[str, str | None] | None = None,
        channel: bool = False,
        stdin: bool = False,
        blobs: Mapping[str, bytes] | None = None,
    ) -> Spawn:
        """Start an interactive program on a PTY, to talk to with pexpect's methods.

        Args:
            command: text for the shell, or a program and its arguments
            timeout: seconds that `expect` waits unless told otherwise; None: for ever
            cwd: relative to the workspace
            env: variables over those of the sandbox; None as a value removes one
            channel: give it a socket for messages beside the PTY, see `process`
            stdin: give it a pipe as standard input, to which `send` writes, and the PTY for everything else
            blobs: files that it can read by descriptor, see `process`

        Raises:
            RequirementError: pexpect is not installed
            FileNotFoundError: there is no such program, or no such directory
            SandboxError: the guest, or its process for this program, is gone
        """
        try:
            from debug_gym_core.sandbox.spawn import Spawn
        except ImportError as error:
            raise RequirementError(f"interactive programs need pexpect (pip install pexpect): {error}") from error
        process = self.process(
            command, pty=True, channel=channel, stdin=stdin, blobs=blobs, follow=True, cwd=cwd, env=env
        )
        return Spawn(process, timeout, command)

    # -- the rest

    def mask(self, text: str) -> str:
        """Show the workspace under its public name `/testbed`, wherever it really lies."""
        if self.root == ROOT:
            return text
        above = self.root.removesuffix(ROOT)  # `local` has HOME and TMPDIR beside the workspace
        text = text.replace(self.root, ROOT)
        return text.replace(f"{above}/", "/") if above != self.root else text

    def close(self) -> None:
        """End the guest and stop the terminal; may be called twice."""
        with self._lock:
            self._closed = True
            connection, self._connection = self._connection, None
            supervised, self._supervised = self._supervised, False
        try:
            if connection is not None:
                connection.close()
        finally:
            try:
                self.terminal.stop()
            finally:
                if supervised:
                    supervisor.end()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connect(self) -> Connection:
        """The live guest; a new one when the last is gone."""
        with self._lock:
            connection = self._connection
            if connection is not None and connection.alive:
                return connection
            if self._closed:
                raise SandboxLost(f"{self.terminal.name} sandbox: the session was closed")
            if connection is not None:
                connection.close()
                if not self.terminal.alive():
                    raise SandboxLost(connection.describe("it is gone"))
                self.restarts += 1
            settings: dict[str, Any] = {"root": self.root, "env": self.environment}
            if self.spec.interpreter is not None:
                settings["bin"] = self.spec.interpreter.path
            self._connection = Connection(self.terminal, settings)
            return self._connection

    def _file(self, op: str, body: bytes = b"", **fields: Any) -> tuple[dict[str, Any], list[bytes]]:
        """Make a file request: the header of the last reply, the bodies of all."""
        return self._ask(op, body, **fields)()

    def _ask(self, op: str, body: bytes = b"", **fields: Any) -> Callable[[], tuple[dict[str, Any], list[bytes]]]:
        """Make a file request; returns what waits for its replies."""
        connection = self._connect()
        waiter = Waiter()
        connection.submit(waiter, op, body, **fields)

        def replies() -> tuple[dict[str, Any], list[bytes]]:
            bodies = []
            while True:
                header, data = connection.wait(waiter, op, FILE_TIMEOUT)
                bodies.append(data)
                if header["t"] == "done":
                    return header, bodies

        return replies

    def _command(
        self,
        command: str | Sequence[str],
        timeout: float | None,
        cwd: str,
        env: Mapping[str, str | None] | None,
        output_limit: int,
    ) -> dict[str, Any]:
        fields: dict[str, Any] = {"timeout": timeout, "cwd": cwd, "output_limit": output_limit}
        if isinstance(command, str):
            fields["shell"] = command
        else:
            fields["argv"] = list(command)
        if env:
            fields["env"] = dict(env)
        return fields


def _give(connection: Connection, data: bytes) -> str:
    """Have the guest know a blob; returns its digest."""
    digest = hashlib.sha256(data).hexdigest()
    if digest not in connection.blobs:
        connection.request("blob", data, timeout=FILE_TIMEOUT, digest=digest)
        connection.blobs.add(digest)
    return digest


def _shown(command: str | Sequence[str]) -> str:
    text = command if isinstance(command, str) else " ".join(command)
    return text if len(text) <= 100 else text[:97] + "..."
