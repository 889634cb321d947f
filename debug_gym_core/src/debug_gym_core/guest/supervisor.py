"""The guest: the processes of ours in a sandbox that serve one host over one byte stream.

    host <== frames on standard input and output ==> supervisor <== frames on socket pairs ==> worker, keepers

The *supervisor* only passes frames on, starts the others and replaces them when they die. The *worker* does file
operations. Each command has a *keeper*: it is the subreaper of the command, so that it knows and ends everything that
the command started; it bounds the output, enforces the timeout, and relays messages of programs that have a channel.
A worker or keeper that dies costs the one request that it was serving.

A frame is the lengths of header and body (two 32-bit big-endian numbers), the header (JSON), the body (raw bytes).
The host's first frame is `start`, answered by `hello`. Every further request has an `id`, which its replies repeat;
the last reply is of a type in `FINAL`. Frames with `of` belong to the request of that id.

Standard library only, Python 3.6 and newer; started by `python -I -S -c BOOT`, which reads this program from standard
input (see `debug_gym_core.connection`).
"""

import collections
import contextlib
import errno
import gc
import json
import os
import selectors
import signal
import socket
import stat
import struct
import sys
import time

try:
    import ctypes
except ImportError:  # a Python built without libffi: orphans are then found by a marker in their environment
    ctypes = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, NoReturn

VERSION = 1
FINAL = frozenset(["done", "error", "exit"])

MARKER = "DEBUG_GYM_COMMAND"
DEFAULT_PATH = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

TERM_GRACE = 0.5  # seconds between SIGTERM and SIGKILL when a command reached its timeout
LEFTOVER_GRACE = 0.2  # the same for what a command left running when it ended by itself
KILL_PATIENCE = 1.0  # seconds after which a process that SIGKILL cannot end (it waits in the kernel) is given up
KEEPER_GRACE = 1.75  # seconds over the timeout after which a keeper that does not answer is itself killed
END_PATIENCE = 2.5  # seconds that keepers have to end their commands when the host is gone

CHUNK = 1 << 18
STREAM_WINDOW = 1 << 18  # bytes of followed output that the host has not acknowledged
MESSAGE_WINDOW = 1 << 22  # the same for messages on a channel
MESSAGE_LIMIT = 1 << 28  # a longer message means that something else than our program wrote to the channel
SPARES = 4  # keepers that wait for a command
BACKLOG = 1 << 22  # bytes for the host that wait before children are read no more

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE


# ---------------------------------------------------------------------------------------------------------- frames


_encode = json.JSONEncoder(separators=(",", ":")).encode
_LENGTHS = struct.Struct(">II")


def pack(header: "dict[str, Any]", body: "bytes | bytearray" = b"") -> bytes:
    """Make a frame."""
    head = _encode(header).encode("ascii")
    return _LENGTHS.pack(len(head), len(body)) + head + body


def to_bytes(text: str) -> bytes:
    """A path, argument or variable as the system wants it; bytes that are no UTF-8 travel as lone surrogates."""
    return text.encode("utf-8", "surrogateescape")


def to_text(data: bytes) -> str:
    """The reverse of `to_bytes`."""
    return data.decode("utf-8", "surrogateescape")


def os_error(error: OSError, path: "str | None" = None) -> "dict[str, Any]":
    """Describe an OSError for the host, by the error's name since numbers differ between systems."""
    number = error.errno or errno.EIO
    reply = {"t": "error", "kind": "os", "errno": errno.errorcode.get(number, "EIO")}  # type: dict[str, Any]
    reply["text"] = error.strerror or os.strerror(number)
    if path is not None:
        reply["path"] = path
    return reply


class Link:
    """A non-blocking end of a stream of frames, with a buffer for what the other side has not taken yet."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self.write_fd = write_fd
        self.incoming = bytearray()
        self.outgoing = collections.deque()  # type: collections.deque[bytes | memoryview]
        self.waiting = 0
        self.broken = False
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)

    def send(self, frame: bytes) -> None:
        """Send a frame, or keep it until the other side takes it."""
        if self.broken:
            return
        self.outgoing.append(frame)
        self.waiting += len(frame)
        if len(self.outgoing) == 1:
            self.flush()

    def flush(self) -> None:
        """Write as much as the other side takes now."""
        while self.outgoing and not self.broken:
            piece = self.outgoing[0]
            try:
                count = os.write(self.write_fd, piece)
            except BlockingIOError:
                return
            except OSError:
                self.broken = True
                self.outgoing.clear()
                self.waiting = 0
                return
            self.waiting -= count
            if count == len(piece):
                self.outgoing.popleft()
            else:
                self.outgoing[0] = memoryview(piece)[count:]

    def receive(self) -> "bool":
        """Read what is there; False at the end of the stream."""
        try:
            data = os.read(self.read_fd, 1 << 16)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.incoming += data
        return bool(data)

    def frames(self) -> "Iterator[tuple[dict[str, Any], bytes, bytes]]":
        """The complete frames received: header, body, and the frame as it came."""
        while len(self.incoming) >= 8:
            head, body = _LENGTHS.unpack_from(self.incoming)
            size = 8 + head + body
            if len(self.incoming) < size:
                return
            frame = bytes(self.incoming[:size])
            del self.incoming[:size]
            yield json.loads(frame[8 : 8 + head].decode("utf-8")), frame[8 + head :], frame


class Loop:
    """A selector with callbacks, which also wakes when a child process changes."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_read, False)
        os.set_blocking(self.wake_write, False)
        self.child_changed = True
        signal.signal(signal.SIGCHLD, _ignore_signal)
        signal.set_wakeup_fd(self.wake_write)
        self.watch(self.wake_read, READ, self._woken)

    def _woken(self, _events: int) -> None:
        try:
            while os.read(self.wake_read, 4096):
                pass
        except BlockingIOError:
            pass
        self.child_changed = True

    def watch(self, descriptor: int, events: int, callback: "Callable[[int], None] | None" = None) -> None:
        """Call `callback` on events of a descriptor; no events: no more; no callback: the one it has."""
        known = self.selector.get_map().get(descriptor)
        if known is None:
            if events:
                self.selector.register(descriptor, events, callback)
        elif not events:
            self.selector.unregister(descriptor)
        elif known.events != events or (callback is not None and known.data != callback):
            self.selector.modify(descriptor, events, callback or known.data)

    def turn(self, timeout: "float | None") -> None:
        """Wait once and call back."""
        for key, events in self.selector.select(timeout):
            if self.selector.get_map().get(key.fd) is key:
                key.data(events)

    def close_after_fork(self) -> None:
        """Give up the descriptors in a forked child; the parent's are not touched."""
        signal.set_wakeup_fd(-1)
        self.selector.close()
        os.close(self.wake_read)
        os.close(self.wake_write)


def _ignore_signal(_number: int, _frame: object) -> None:
    """A handler that does nothing: unlike SIG_IGN it leaves children to be waited for and is reset by exec."""


# ----------------------------------------------------------------------------------------------------- the system


def _load_libc() -> "Any":
    if ctypes is None:
        return None
    try:
        return ctypes.CDLL(None, use_errno=True)
    except (OSError, TypeError):
        return None


LIBC = _load_libc()
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36


def prctl(option: int, value: int) -> bool:
    """Call prctl; False when it cannot be called or refuses."""
    if LIBC is None:
        return False
    try:
        zero = ctypes.c_ulong(0)
        return int(LIBC.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero)) == 0
    except AttributeError:
        return False


def memory_file(data: bytes) -> int:
    """A descriptor of a file that is in no directory, holds `data` and stands at its beginning."""
    descriptor = -1
    try:
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("blob")
        elif LIBC is not None:
            descriptor = LIBC.memfd_create(b"blob", 1)
    except (OSError, AttributeError):
        pass
    if descriptor < 0:
        import tempfile

        descriptor, path = tempfile.mkstemp()
        os.unlink(path)
    os.set_inheritable(descriptor, False)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def process_parents() -> "dict[int, int]":
    """The parent of every process that is not yet dead."""
    parents = {}  # type: dict[int, int]
    try:
        names = os.listdir("/proc")
    except OSError:
        return parents
    for name in names:
        if name.isdigit():
            try:
                with open("/proc/" + name + "/stat", "rb") as file:
                    fields = file.read()
            except OSError:
                continue
            # The name, in parentheses, may hold anything; behind it come state and parent.
            state, parent = fields[fields.rindex(b")") + 2 :].split(None, 2)[:2]
            if state not in (b"Z", b"X"):
                parents[int(name)] = int(parent)
    return parents


def below(roots: "Iterable[int]", parents: "dict[int, int]") -> "set[int]":
    """All descendants of some processes, without these."""
    children = collections.defaultdict(list)  # type: collections.defaultdict[int, list[int]]
    for process, parent in parents.items():
        children[parent].append(process)
    found = set()  # type: set[int]
    todo = list(roots)
    while todo:
        for child in children.get(todo.pop(), ()):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found


def marked(marker: str) -> "set[int]":
    """The processes whose environment at their start held a command's marker."""
    wanted = b"\0" + to_bytes(MARKER + "=" + marker) + b"\0"
    found = set()
    for process in process_parents():
        try:
            with open("/proc/%d/environ" % process, "rb") as file:
                if wanted in b"\0" + file.read() + b"\0":
                    found.add(process)
        except OSError:
            continue
    return found


def signal_each(processes: "Iterable[int]", number: int) -> None:
    """Send a signal to processes that may be gone or not ours."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def kill_all(find: "Callable[[], set[int]]") -> "set[int]":
    """Kill the processes that `find` returns; they are stopped first, so that they cannot fork faster than we look."""
    stopped = set()  # type: set[int]
    for _ in range(8):
        fresh = find() - stopped
        if not fresh:
            break
        signal_each(fresh, signal.SIGSTOP)
        stopped |= fresh
    signal_each(stopped, signal.SIGKILL)
    return stopped


def exit_status(status: int) -> int:
    """The exit status, or minus the signal's number, of what waitpid returned."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def run_forked(main: "Callable[[], None]") -> "NoReturn":
    """Run the rest of a forked process; never returns, whatever happens."""
    status = 70
    try:
        main()
        status = 0
    except BaseException:
        import traceback

        with contextlib.suppress(OSError):
            os.write(2, traceback.format_exc()[-2000:].encode("utf-8", "backslashreplace"))
    finally:
        os._exit(status)


# -------------------------------------------------------------------------------------------------------- keepers


class Output:
    """What a program printed: at most `limit` bytes of it, head and tail."""

    def __init__(self, limit: int) -> None:
        self.head_limit = limit // 2
        self.tail_limit = limit - self.head_limit
        self.head = bytearray()
        self.tail = collections.deque()  # type: collections.deque[bytes]
        self.tail_size = 0
        self.dropped = 0

    def add(self, data: bytes) -> None:
        """Take more output."""
        room = self.head_limit - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        if data:
            self.tail.append(data)
            self.tail_size += len(data)
            while self.tail and self.tail_size - len(self.tail[0]) >= self.tail_limit:
                gone = len(self.tail.popleft())
                self.tail_size -= gone
                self.dropped += gone

    def take(self) -> "tuple[dict[str, int], bytes]":
        """The output since the last call as header fields (`output`, `head`, `cut`) and bytes; empties."""
        tail = b"".join(self.tail)
        cut = self.dropped
        if len(tail) > self.tail_limit:
            cut += len(tail) - self.tail_limit
            tail = tail[len(tail) - self.tail_limit :]
        data = bytes(self.head) + tail
        fields = {"output": len(data)} if data else {}
        if cut:
            fields["head"] = len(self.head)
            fields["cut"] = cut
        self.head = bytearray()
        self.tail.clear()
        self.tail_size = self.dropped = 0
        return fields, data


class Keeper:
    """Runs one command: its parent, its subreaper, the reader of its output."""

    def __init__(self, link: Link, settings: "Settings") -> None:
        self.link = link
        self.settings = settings
        self.loop = Loop()
        self.loop.watch(link.read_fd, READ, self._on_link)
        self.request = {}  # type: dict[str, Any]
        self.subreaper = prctl(PR_SET_CHILD_SUBREAPER, 1)
        self.host_gone = False
        self.output_fd = self.stdin_fd = self.terminal_fd = self.slave_fd = -1
        self.channel = None  # type: Link | None
        self._reset()

    def _reset(self) -> None:
        """Be ready for the next command."""
        for descriptor in {self.output_fd, self.stdin_fd, self.terminal_fd, self.slave_fd} - {-1}:
            self.loop.watch(descriptor, 0)
            os.close(descriptor)
        self._close_channel()
        self.output_fd = self.stdin_fd = self.terminal_fd = self.slave_fd = -1
        self.id = self.main = 0
        self.cwd = b""
        self.marker = ""
        self.status = None  # type: int | None
        self.childless = False
        self.output = Output(0)
        self.stdin = collections.deque()  # type: collections.deque[bytes | memoryview]
        self.close_stdin = False
        self.unacknowledged = 0
        self.text_unacknowledged = 0
        self.started = 0.0
        self.deadline = None  # type: float | None
        self.kill_at = None  # type: float | None
        self.give_up_at = None  # type: float | None
        self.next_sweep = 0.0
        self.ending = False
        self.draining = False
        self.timed_out = False
        self.kill_requests = []  # type: list[int]

    # -- requests

    def run(self) -> None:
        """Wait for commands, serve each to its end, until the supervisor goes."""
        while not self.host_gone or self.main:
            self.loop.turn(self._patience())
            if self.link.outgoing:
                self.link.flush()
            if self.link.broken and not self.host_gone:
                self._lose_host()
            if self.main:
                self._advance()
            self.loop.watch(self.link.write_fd, self._link_events(), self._on_link)

    def _link_events(self) -> int:
        events = 0 if self.host_gone else READ
        return events | WRITE if self.link.outgoing else events

    def _on_link(self, events: int) -> None:
        if events & WRITE:
            self.link.flush()
        if events & READ:
            alive = self.link.receive()
            for header, body, _ in self.link.frames():
                self._handle(header, body)
            if not alive:
                self._lose_host()

    def _lose_host(self) -> None:
        """The supervisor is gone: end the command."""
        self.host_gone = True
        self.loop.watch(self.link.read_fd, 0)
        if self.main:
            self._begin_end(0.0)

    def _handle(self, header: "dict[str, Any]", body: bytes) -> None:
        op = header["op"]
        if op in ("run", "process"):
            self._start(header, body)
        elif header.get("of") != self.id:  # about a command that has just ended
            if "id" in header:
                self.link.send(pack({"id": header["id"], "t": "error", "kind": "ended", "text": "has ended"}))
        elif op == "send" and self.channel is not None:
            self.channel.send(struct.pack(">I", len(body)) + body)
            self._watch_channel()
        elif op == "stdin" and self.stdin_fd >= 0:
            if body:
                self.stdin.append(body)
            self.close_stdin = self.close_stdin or bool(header.get("close"))
            self._write_stdin()
        elif op == "ack":
            self.unacknowledged -= header.get("messages", 0)
            self.text_unacknowledged -= header.get("text", 0)
            self._watch_channel()
            self._watch_output()
        elif op == "output":
            self._drain()
            fields, data = self.output.take()
            self.link.send(pack(dict(fields, id=header["id"], t="done"), data))
        elif op == "signal":
            if self.status is None:
                signal_each([self.main], header["number"])
            self.link.send(pack({"id": header["id"], "t": "done"}))
        elif op == "resize":
            if self.terminal_fd >= 0:
                _set_window(self.terminal_fd, header["rows"], header["columns"])
            self.link.send(pack({"id": header["id"], "t": "done"}))
        elif op == "kill":
            self.kill_requests.append(header["id"])
            self._begin_end(0.0)
        elif "id" in header:
            self.link.send(pack({"id": header["id"], "t": "error", "kind": "internal", "text": "unknown request"}))

    # -- start

    def _start(self, request: "dict[str, Any]", body: bytes) -> None:
        self.request = request
        self.id = request["id"]
        self.output = Output(request["output_limit"])
        self.started = time.monotonic()
        try:
            self._spawn(body)
        except OSError as error:
            known = error.filename == self.cwd
            subject = request.get("cwd") if known else request.get("argv", ["the shell"])[0]
            self._refuse(os_error(error, subject or "."))
            return
        except ValueError as error:  # a NUL in an argument
            self._refuse(os_error(OSError(errno.EINVAL, str(error))))
            return
        except Exception as error:
            self._refuse({"t": "error", "kind": "internal", "text": repr(error)})
            return
        if request.get("timeout") is not None:
            self.deadline = self.started + request["timeout"]
        if request["op"] == "process":
            self.link.send(pack({"id": self.id, "t": "started", "pid": self.main}))

    def _refuse(self, reply: "dict[str, Any]") -> None:
        self.link.send(pack(dict(reply, id=self.id)))
        self._reset()

    def _spawn(self, stdin: bytes) -> None:
        request = self.request
        environment = dict(self.settings.environment)
        for name, value in (request.get("env") or {}).items():
            if value is None:
                environment.pop(to_bytes(name), None)
            else:
                environment[to_bytes(name)] = to_bytes(value)
        if not self.subreaper:
            self.marker = "%d-%d-%s" % (os.getpid(), self.id, os.urandom(4).hex())
            environment[to_bytes(MARKER)] = to_bytes(self.marker)
        if "shell" in request:
            argv = [self.settings.shell, b"-c", to_bytes(request["shell"])]
        else:
            argv = [to_bytes(part) for part in request["argv"]]
        passed = []
        if request.get("channel"):
            ours, theirs = socket.socketpair()
            channel = ours.detach()
            self.channel = Link(channel, channel)
            passed.append(theirs.detach())
            argv = [b"%d" % passed[-1] if part == b"{channel}" else part for part in argv]
        for name, digest in (request.get("blobs") or {}).items():
            passed.append(memory_file(self.settings.blobs[digest]))
            place = b"{blob:" + to_bytes(name) + b"}"
            argv = [b"%d" % passed[-1] if part == place else part for part in argv]
        if request.get("pty"):
            self.terminal_fd, self.slave_fd = _open_terminal(request.get("rows", 24), request.get("columns", 80))
            self.output_fd = self.stdin_fd = self.terminal_fd
            streams = self.slave_fd, self.slave_fd
        else:
            self.output_fd, write_end = os.pipe()
            if stdin or request.get("stdin"):
                read_end, self.stdin_fd = os.pipe()
                os.set_blocking(self.stdin_fd, False)
            else:
                read_end = os.open(os.devnull, os.O_RDONLY)
            streams = read_end, write_end
        os.set_blocking(self.output_fd, False)
        self.cwd = os.path.join(self.settings.root, to_bytes(request.get("cwd") or "."))
        try:
            self.main = _spawn(argv, environment, self.cwd, streams, passed, self.terminal_fd >= 0)
        finally:
            # A PTY's slave stays open, so that reading its master does not fail when nobody else has it open.
            for descriptor in passed if self.terminal_fd >= 0 else passed + list(streams):
                os.close(descriptor)
        if stdin:
            self.stdin.append(stdin)
            self.close_stdin = self.terminal_fd < 0 and not request.get("stdin")
            self._write_stdin()
        self._watch_output()
        self._watch_channel()

    # -- output, input, channel

    def _watch_output(self) -> None:
        if self.output_fd >= 0:
            full = bool(self.request.get("follow")) and self.text_unacknowledged >= STREAM_WINDOW
            events = 0 if full else READ
            if self.stdin_fd == self.output_fd and self.stdin:
                events |= WRITE
            self.loop.watch(self.output_fd, events, self._on_output)

    def _on_output(self, events: int) -> None:
        if events & WRITE and self.stdin_fd == self.output_fd:
            self._write_stdin()
        if events & READ:
            self._drain(8 * CHUNK)

    def _drain(self, limit: int = 1 << 22) -> None:
        """Take what the program has printed so far; the limit holds against one that never stops."""
        follow = self.request.get("follow")
        taken = 0
        while self.output_fd >= 0 and taken < limit:
            if follow and self.text_unacknowledged >= STREAM_WINDOW and not self.draining:
                self._watch_output()
                return
            try:
                data = os.read(self.output_fd, 1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._close_output()
                return
            taken += len(data)
            if follow:
                self.text_unacknowledged += len(data)
                self.link.send(pack({"id": self.id, "t": "text"}, data))
            else:
                self.output.add(data)

    def _close_output(self) -> None:
        """Every process that had the output open is gone, or closed it."""
        self.loop.watch(self.output_fd, 0)
        if self.terminal_fd < 0:
            os.close(self.output_fd)
        self.output_fd = -1

    def _write_stdin(self, _events: int = 0) -> None:
        while self.stdin:
            piece = self.stdin[0]
            try:
                count = os.write(self.stdin_fd, piece)
            except BlockingIOError:
                break
            except OSError:  # nobody reads it any more
                self.stdin.clear()
                break
            if count == len(piece):
                self.stdin.popleft()
            else:
                self.stdin[0] = memoryview(piece)[count:]
        if self.stdin_fd == self.terminal_fd:
            self._watch_output()
            return
        self.loop.watch(self.stdin_fd, WRITE if self.stdin else 0, self._write_stdin)
        if self.close_stdin and not self.stdin:
            os.close(self.stdin_fd)
            self.stdin_fd = -1

    def _watch_channel(self) -> None:
        channel = self.channel
        if channel is not None:
            events = READ if self.unacknowledged < MESSAGE_WINDOW else 0
            if channel.outgoing:
                events |= WRITE
            self.loop.watch(channel.read_fd, events, self._on_channel)

    def _on_channel(self, events: int) -> None:
        channel = self.channel
        if channel is None:
            return
        if events & WRITE:
            channel.flush()
        if events & READ:
            alive = channel.receive()
            self._relay(channel)
            if not alive:
                self._close_channel()
                return
        self._watch_channel()

    def _relay(self, channel: Link) -> None:
        data = channel.incoming
        while len(data) >= 4:
            size = struct.unpack_from(">I", data)[0]
            if size > MESSAGE_LIMIT:
                self._close_channel()
                return
            if len(data) < 4 + size:
                return
            message = bytes(data[4 : 4 + size])
            del data[: 4 + size]
            self._drain()
            fields, printed = self.output.take()
            self.unacknowledged += size + 64
            self.link.send(pack(dict(fields, id=self.id, t="message"), printed + message))

    def _close_channel(self) -> None:
        if self.channel is not None:
            self.loop.watch(self.channel.read_fd, 0)
            os.close(self.channel.read_fd)
            self.channel = None

    # -- the end

    def _patience(self) -> "float | None":
        times = [self.kill_at, self.give_up_at] if self.ending else [self.deadline]
        if self.ending and self.kill_at is None:
            times.append(self.next_sweep)
        known = [moment for moment in times if moment is not None]
        return max(0.0, min(known) - time.monotonic()) if known and self.main else None

    def _advance(self) -> None:
        """Move on what time or a child's end moves."""
        if self.loop.child_changed:
            self.loop.child_changed = False
            self._reap()
        now = time.monotonic()
        if not self.ending:
            if self.status is not None:
                if self._gone():
                    self._finish()
                    return
                self._begin_end(LEFTOVER_GRACE)
            elif self.deadline is not None and now >= self.deadline:
                self.timed_out = True
                self._begin_end(TERM_GRACE)
        if not self.ending:
            return
        if self.status is not None and self._gone():
            self._finish()
            return
        if self.kill_at is not None and now >= self.kill_at:
            self.kill_at = None
            self.give_up_at = now + KILL_PATIENCE
            self.next_sweep = now
        if self.kill_at is None and now >= self.next_sweep:
            kill_all(self._descendants)
            self.next_sweep = time.monotonic() + 0.02
            self.loop.child_changed = True
        if self.give_up_at is not None and now >= self.give_up_at:
            self._finish()

    def _reap(self) -> None:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            if process == 0:
                self.childless = False
                return
            if process == self.main:
                self.status = exit_status(status)

    def _descendants(self) -> "set[int]":
        found = below([os.getpid()], process_parents())
        if self.marker:
            found |= marked(self.marker) - {os.getpid()}
        if self.status is None:
            found.add(self.main)  # where there is no /proc
        return found

    def _gone(self) -> bool:
        return self.childless and not (self.marker and marked(self.marker))

    def _begin_end(self, grace: float) -> None:
        """End whatever lives of the command, politely for `grace` seconds."""
        now = time.monotonic()
        if self.ending:
            if grace == 0.0 and self.kill_at is not None:
                self.kill_at = now
            return
        self.ending = True
        self.kill_at = now + grace
        if grace:
            others = self._descendants() - {self.main}
            # The command itself first: it may clean up, and shall not take the death of its children for its own end.
            processes = [*([self.main] if self.status is None else []), *others]
            signal_each(processes, signal.SIGTERM)
            signal_each(processes, signal.SIGCONT)

    def _finish(self) -> None:
        self.draining = True
        self._drain()
        if self.channel is not None:
            self.unacknowledged = 0
            while self.channel is not None:
                before = len(self.channel.incoming)
                if not self.channel.receive() or len(self.channel.incoming) == before:
                    break
                self._relay(self.channel)
        fields, data = self.output.take()
        reply = dict(fields, id=self.id, t="done" if self.request["op"] == "run" else "exit")  # type: dict[str, Any]
        reply["clean"] = self.status is not None and self._gone()
        reply["status"] = -signal.SIGKILL if self.status is None else self.status
        reply["timed_out"] = self.timed_out
        reply["seconds"] = time.monotonic() - self.started
        self.link.send(pack(reply, data))
        for request in self.kill_requests:
            self.link.send(pack({"id": request, "t": "done"}))
        self._reset()


def _open_terminal(rows: int, columns: int) -> "tuple[int, int]":
    """A PTY without echo and with plain line ends: master, slave."""
    import pty
    import termios

    master, slave = pty.openpty()
    flags = termios.tcgetattr(slave)
    flags[1] &= ~termios.ONLCR
    flags[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, flags)
    _set_window(master, rows, columns)
    return master, slave


def _set_window(terminal: int, rows: int, columns: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _spawn(
    argv: "list[bytes]",
    environment: "dict[bytes, bytes]",
    cwd: bytes,
    streams: "tuple[int, int]",
    passed: "list[int]",
    terminal: bool,
) -> int:
    """Start a program in a session of its own; returns its process id, raises OSError that names what is wrong."""
    import subprocess

    def take_terminal() -> None:
        import fcntl
        import termios

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    for descriptor in passed:
        os.set_inheritable(descriptor, True)
    # Without preexec_fn, subprocess starts the program by vfork, at a third of the price of a fork.
    process = subprocess.Popen(
        argv,
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[1],
        cwd=cwd,
        env=environment,
        close_fds=False,
        start_new_session=True,
        preexec_fn=take_terminal if terminal else None,
    )
    process.returncode = 0  # the keeper waits for it itself
    try:  # when memory runs out, the kernel shall end the command and not us
        with open("/proc/%d/oom_score_adj" % process.pid, "wb", 0) as file:
            file.write(b"500")
    except OSError:
        pass
    return process.pid


# ------------------------------------------------------------------------------------------------------ the worker


class Outside(PermissionError):
    """A path that leads out of the workspace."""

    def __init__(self) -> None:
        PermissionError.__init__(self, errno.EACCES, "leads out of the workspace")


class Worker:
    """Does file operations, one after the other. Paths are relative to the workspace."""

    def __init__(self, connection: socket.socket, settings: "Settings") -> None:
        connection.setblocking(True)
        self.file = connection.makefile("rb")
        self.connection = connection
        self.root = os.path.realpath(settings.root)
        self.counter = 0
        self.buffer = b""

    def run(self) -> None:
        """Serve until the supervisor goes."""
        while True:
            frame = self._next()
            if frame is None:
                return
            header, body = frame
            operation = getattr(self, "do_" + header["op"], None)
            if operation is None:  # the rest of a stream that failed
                continue
            try:
                reply = operation(header, body)
            except OSError as error:
                reply = os_error(error, getattr(error, "entry", None) or header.get("path")), b""
            except ValueError as error:  # a NUL in a path
                reply = os_error(OSError(errno.EINVAL, str(error)), header.get("path")), b""
            fields, data = reply
            self._send(dict(fields, id=header["id"], t=fields.get("t", "done")), data)

    def _next(self) -> "tuple[dict[str, Any], bytes] | None":
        lengths = self.file.read(8)
        if len(lengths) < 8:
            return None
        head, body = _LENGTHS.unpack(lengths)
        return json.loads(self.file.read(head).decode("utf-8")), self.file.read(body)

    def _send(self, header: "dict[str, Any]", body: bytes = b"") -> None:
        self.connection.sendall(pack(header, body))

    # -- paths

    def _path(self, header: "dict[str, Any]") -> bytes:
        return os.path.join(self.root, to_bytes(header["path"]))

    def _inside(self, real: bytes) -> bool:
        return real == self.root or real.startswith(self.root.rstrip(b"/") + b"/")

    def _open_directory(self, real: bytes, create: bool) -> int:
        """Open a directory by its real path; one of the workspace step by step, so that no link leads out of it."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        if not self._inside(real):
            if create:
                os.makedirs(real, exist_ok=True)
            return os.open(real, flags)
        descriptor = os.open(self.root, flags)
        for part in os.path.relpath(real, self.root).split(b"/"):
            if part == b".":
                continue
            try:
                try:
                    below = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
                except FileNotFoundError:
                    if not create:
                        raise
                    os.mkdir(part, 0o755, dir_fd=descriptor)
                    below = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor

    # -- operations: each takes header and body, returns the fields and body of its reply

    def do_read(self, header: "dict[str, Any]", _body: bytes) -> "tuple[dict[str, Any], bytes]":
        """Bytes of a file, in several frames when it is large."""
        # Without O_NONBLOCK the opening of a named pipe would wait for a writer.
        descriptor = os.open(self._path(header), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if not stat.S_ISREG(mode):
                raise OSError(errno.EINVAL, "Not a regular file")
            if header.get("offset"):
                os.lseek(descriptor, header["offset"], os.SEEK_SET)
            left = header.get("size")
            held = b""
            while left is None or left > 0:
                data = os.read(descriptor, CHUNK if left is None else min(left, CHUNK))
                if not data:
                    break
                if held:
                    self._send({"id": header["id"], "t": "data"}, held)
                held = data
                if left is not None:
                    left -= len(data)
            return {}, held
        finally:
            os.close(descriptor)

    def do_lines(self, header: "dict[str, Any]", _body: bytes) -> "tuple[dict[str, Any], bytes]":
        """Lines of a file of any size, by number from 1; a line ends at a newline byte only.

        `real` is the path without links; nothing is read where it leads out of the workspace. `total` counts the file's
        lines, `length` the bytes of the wanted lines, of which at most `limit` are sent.
        """
        real = os.path.realpath(self._path(header))
        fields = {"real": to_text(real), "total": 0, "length": 0}  # type: dict[str, Any]
        if not self._inside(real):
            return fields, b""
        first, behind, room = header["start"], header["start"] + header["count"], header["limit"]
        line, last, body = 1, b"\n", []
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if not stat.S_ISREG(mode):
                raise OSError(errno.EINVAL, "Not a regular file")
            while True:
                data = os.read(descriptor, CHUNK)
                if not data:
                    break
                ends = data.count(b"\n")
                if line < behind and line + ends >= first:
                    begin = 0
                    for _ in range(first - line):
                        begin = data.index(b"\n", begin) + 1
                    end = begin
                    for _ in range(behind - max(first, line)):
                        end = data.find(b"\n", end) + 1
                        if not end:
                            end = len(data)
                            break
                    fields["length"] += end - begin
                    body.append(data[begin : min(end, begin + room)])
                    room -= len(body[-1])
                line += ends
                last = data[-1:]
        finally:
            os.close(descriptor)
        fields["total"] = line - 1 if last == b"\n" else line
        return fields, b"".join(body)

    def do_write(self, header: "dict[str, Any]", body: bytes) -> "tuple[dict[str, Any], bytes]":
        """Write a file atomically."""
        path = self._path(header)
        real = os.path.realpath(path)
        if not header.get("follow") and not self._inside(real):
            raise Outside()
        if real == self.root or path.endswith(b"/"):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        directory = self._open_directory(os.path.dirname(real), create=True)
        try:
            name = os.path.basename(real)
            mode = header.get("mode")
            try:
                known = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
            except FileNotFoundError:
                known = stat.S_IFREG | 0o644
            if stat.S_ISDIR(known):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if stat.S_ISLNK(known):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            self._replace(directory, name, body, stat.S_IMODE(known) if mode is None else mode)
            return {}, b""
        finally:
            os.close(directory)

    def _replace(self, directory: int, name: bytes, data: bytes, mode: int) -> None:
        self.counter += 1
        temporary = b".debug-gym-%d-%d.tmp" % (os.getpid(), self.counter)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600, dir_fd=directory)
        try:
            try:
                _write_all(descriptor, data)
                os.fchmod(descriptor, mode)
            finally:
                os.close(descriptor)
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            os.unlink(temporary, dir_fd=directory)
            raise

    def do_remove(self, header: "dict[str, Any]", _body: bytes) -> "tuple[dict[str, Any], bytes]":
        """Remove a file, link or tree; what is not there is no error."""
        path = self._path(header).rstrip(b"/")
        parent, name = os.path.split(os.path.normpath(path))
        parent = os.path.realpath(parent)
        if not self._inside(os.path.join(parent, name)) or os.path.join(parent, name) == self.root:
            raise Outside()
        try:
            directory = self._open_directory(parent, create=False)
        except (FileNotFoundError, NotADirectoryError):
            return {}, b""
        try:
            _remove(directory, name)
        finally:
            os.close(directory)
        return {}, b""

    def do_stat(self, header: "dict[str, Any]", _body: bytes) -> "tuple[dict[str, Any], bytes]":
        """What is at a path, a link itself and not where it leads; `entry` null: nothing."""
        path = self._path(header)
        try:
            return {"entry": _describe(header["path"], path, os.lstat(path))}, b""
        except (FileNotFoundError, NotADirectoryError):
            return {"entry": None}, b""

    def do_realpath(self, header: "dict[str, Any]", _body: bytes) -> "tuple[dict[str, Any], bytes]":
        """The path with every link resolved."""
        return {"real": to_text(os.path.realpath(self._path(header)))}, b""

    def do_walk(self, header: "dict[str, Any]", _body: bytes) -> "tuple[dict[str, Any], bytes]":
        """The entries below a directory, each directory just before what it holds, names sorted by their bytes."""
        top = self._path(header)
        prune = frozenset(to_bytes(name) for name in header.get("prune") or ())
        prefix = to_bytes(header["path"]).rstrip(b"/")
        prefix = b"" if prefix in (b"", b".") else prefix + b"/"
        with os.scandir(top) as scan:
            entries = sorted(scan, key=_name, reverse=True)
        todo = [(entry, prefix, 1) for entry in entries]
        batch = []
        while todo:
            entry, prefix, depth = todo.pop()
            path = prefix + entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:  # gone since
                continue
            batch.append(_describe(to_text(path), entry.path, status))
            if len(batch) >= 500:
                self._send({"id": header["id"], "t": "data"}, _encode(batch).encode("ascii"))
                batch = []
            deeper = header.get("depth") is None or depth < header["depth"]
            if stat.S_ISDIR(status.st_mode) and deeper and entry.name not in prune:
                try:
                    with os.scandir(entry.path) as scan:
                        entries = sorted(scan, key=_name, reverse=True)
                except OSError:  # gone since, or not readable
                    continue
                todo.extend((inner, path + b"/", depth + 1) for inner in entries)
        return {}, _encode(batch).encode("ascii")

    def do_hash(self, header: "dict[str, Any]", _body: bytes) -> "tuple[dict[str, Any], bytes]":
        """The SHA-256 of files; null for what is no file that can be read."""
        import hashlib

        hashes = {}  # type: dict[str, str | None]
        for path in header["paths"]:
            digest = hashlib.sha256()
            try:
                descriptor = os.open(os.path.join(self.root, to_bytes(path)), os.O_RDONLY | os.O_NONBLOCK)
            except OSError:
                hashes[path] = None
                continue
            try:
                data = b"" if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
                while data is not None:
                    data = os.read(descriptor, CHUNK)
                    if not data:
                        break
                    digest.update(data)
                hashes[path] = None if data is None else digest.hexdigest()
            except OSError:
                hashes[path] = None
            finally:
                os.close(descriptor)
        return {}, _encode(hashes).encode("ascii")

    def do_put(self, header: "dict[str, Any]", _body: bytes) -> "tuple[dict[str, Any], bytes]":
        """Unpack an uncompressed tar archive that follows in `chunk` frames and ends with `end`."""
        self._send({"id": header["id"], "t": "go"})
        archive = Archive(self, header["id"])
        count = unpack(archive, self.root, self._open_directory)
        while not archive.ended:
            archive.read(CHUNK)
        return {"count": count}, b""


def _name(entry: "os.DirEntry[bytes]") -> bytes:
    return entry.name


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _describe(shown: str, path: bytes, status: os.stat_result) -> "list[Any]":
    """An entry for the host: path, kind, size, mode, time, target, stamp."""
    mode = status.st_mode
    target = None
    if stat.S_ISREG(mode):
        kind = "file"
    elif stat.S_ISDIR(mode):
        kind = "directory"
    elif stat.S_ISLNK(mode):
        kind = "link"
        try:
            target = to_text(os.readlink(path))
        except OSError:
            target = ""
    else:
        kind = "other"
    stamp = "%d-%o-%d-%d-%d" % (status.st_size, mode, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return [shown, kind, status.st_size, stat.S_IMODE(mode), status.st_mtime_ns, target, stamp]


def _remove(directory: int, name: bytes) -> None:
    """Remove an entry of an open directory and what is below it, following no link."""
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(mode):
        os.unlink(name, dir_fd=directory)
        return
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    if stat.S_IMODE(mode) & 0o700 != 0o700:
        os.chmod(name, 0o700, dir_fd=directory)
    descriptor = os.open(name, flags, dir_fd=directory)
    try:
        for inner in os.listdir(descriptor):
            _remove(descriptor, os.fsencode(inner))
    finally:
        os.close(descriptor)
    os.rmdir(name, dir_fd=directory)


class Archive:
    """The bytes of an archive that arrive in frames."""

    def __init__(self, worker: Worker, request: int) -> None:
        self.worker = worker
        self.request = request
        self.buffer = bytearray()
        self.ended = False

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end."""
        while len(self.buffer) < size and not self.ended:
            frame = self.worker._next()
            if frame is None:
                os._exit(0)
            header, body = frame
            if header["op"] == "chunk":
                self.buffer += body
                self.worker._send({"id": self.request, "t": "ack"})
            elif header["op"] == "end":
                self.ended = True
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data


def unpack(archive: Archive, root: bytes, open_directory: "Callable[[bytes, bool], int]") -> int:
    """Unpack a tar archive (ustar, pax, GNU long names) below a directory; returns the number of entries.

    Format: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Extended Header"; GNU tar manual, "Basic Tar Format".
    """
    count = 0
    parent_path, parent = None, -1  # type: bytes | None, int
    directories = []  # type: list[tuple[bytes, int, float]]
    extended = {}  # type: dict[bytes, bytes]
    try:
        while True:
            block = archive.read(512)
            if not block or block == bytes(512):
                break
            member = _tar_header(block)
            if member["kind"] in (b"x", b"g", b"L", b"K"):
                data = archive.read(_padded(member["size"]))[: member["size"]]
                if member["kind"] == b"x":
                    extended.update(_pax_records(data))
                elif member["kind"] != b"g":
                    extended[b"path" if member["kind"] == b"L" else b"linkpath"] = data.rstrip(b"\0")
                continue
            path = extended.get(b"path", member["path"])
            link = extended.get(b"linkpath", member["link"])
            size = int(extended.get(b"size", member["size"]))
            modified = float(extended.get(b"mtime", member["mtime"]))
            extended = {}
            parts = [part for part in path.split(b"/") if part not in (b"", b".")]
            if path.startswith(b"/") or b".." in parts:
                raise Outside()
            count += 1
            if not parts:
                continue
            above = os.path.join(root, *parts[:-1])
            try:
                if above != parent_path:
                    if parent >= 0:
                        os.close(parent)
                    parent = -1
                    parent, parent_path = open_directory(above, True), above
                if member["kind"] == b"5":
                    directories.append((os.path.join(root, *parts), member["mode"], modified))
                _tar_member(archive, member["kind"], parent, parts[-1], link, size, member["mode"], modified, root)
            except OSError as error:
                error.entry = to_text(path)  # type: ignore[attr-defined]
                raise
    finally:
        if parent >= 0:
            os.close(parent)
    for path, mode, modified in reversed(directories):  # at last, since a read-only one could not be filled
        os.chmod(path, mode)
        os.utime(path, (modified, modified))
    return count


def _padded(size: int) -> int:
    return (size + 511) // 512 * 512


def _tar_number(field: bytes) -> int:
    if field[:1] in (b"\x80", b"\xff"):  # GNU: binary
        return int.from_bytes(field[1:], "big") - (1 << 8 * (len(field) - 1) if field[:1] == b"\xff" else 0)
    return int(field.strip(b"\0 ") or b"0", 8)


def _tar_header(block: bytes) -> "dict[str, Any]":
    try:
        checksum = _tar_number(block[148:156])
        if len(block) < 512 or checksum != sum(block[:148]) + 256 + sum(block[156:]):
            raise ValueError
        path = block[:100].split(b"\0")[0]
        prefix = block[345:500].split(b"\0")[0]
        if prefix and block[257:263] == b"ustar\0":
            path = prefix + b"/" + path
        return {
            "path": path,
            "mode": _tar_number(block[100:108]) & 0o777,
            "size": _tar_number(block[124:136]),
            "mtime": _tar_number(block[136:148]),
            "kind": block[156:157],
            "link": block[157:257].split(b"\0")[0],
        }
    except ValueError:
        raise OSError(errno.EINVAL, "The archive is damaged") from None


def _pax_records(data: bytes) -> "dict[bytes, bytes]":
    records = {}
    while data:
        length = int(data.split(b" ", 1)[0])
        key, value = data[:length].split(b" ", 1)[1][:-1].split(b"=", 1)
        records[key] = value
        data = data[length:]
    return records


def _tar_member(
    archive: Archive,
    kind: bytes,
    parent: int,
    name: bytes,
    link: bytes,
    size: int,
    mode: int,
    modified: float,
    root: bytes,
) -> None:
    """Make one entry; one that is in its place is replaced."""
    try:
        known = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        known = 0
    if known and not (kind == b"5" and stat.S_ISDIR(known)):
        if stat.S_ISDIR(known):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        os.unlink(name, dir_fd=parent)
        known = 0
    if kind in (b"0", b"\0", b"7"):
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=parent)
        try:
            left = size
            while left:
                data = archive.read(min(left, CHUNK))
                if not data:
                    raise OSError(errno.EINVAL, "The archive ends too early")
                _write_all(descriptor, data)
                left -= len(data)
            archive.read(_padded(size) - size)
            os.fchmod(descriptor, mode)
            os.utime(descriptor, (modified, modified))
        finally:
            os.close(descriptor)
    elif kind == b"5":
        if known:
            os.chmod(name, 0o700, dir_fd=parent)  # until it is filled
        else:
            os.mkdir(name, 0o700, dir_fd=parent)
    elif kind == b"2":
        os.symlink(link, name, dir_fd=parent)
        os.utime(name, (modified, modified), dir_fd=parent, follow_symlinks=False)
    elif kind == b"1":
        if link.startswith(b"/") or b".." in link.split(b"/"):
            raise Outside()
        os.link(os.path.join(root, link), name, dst_dir_fd=parent, follow_symlinks=False)
    else:  # a device or a named pipe
        archive.read(_padded(size))


# -------------------------------------------------------------------------------------------------- the supervisor


class Settings:
    """What the host said at the start; forked processes have it from the supervisor."""

    def __init__(self, header: "dict[str, Any]") -> None:
        self.root = to_bytes(header["root"])
        self.environment = dict(os.environb)
        path = self.environment.get(b"PATH") or DEFAULT_PATH
        if header.get("bin") and path.split(b":")[0] != to_bytes(header["bin"]):
            path = to_bytes(header["bin"]) + b":" + path
        self.environment[b"PATH"] = path
        self.environment.setdefault(b"HOME", b"/tmp")
        if self.environment.get(b"LC_CTYPE") in (b"C.UTF-8", b"C.utf8", b"UTF-8"):
            del self.environment[b"LC_CTYPE"]  # Python's own doing (PEP 538), which LANG makes unnecessary
        for name, value in header["env"].items():
            self.environment[to_bytes(name)] = to_bytes(value)
        self.shell = self._find_shell()
        self.blobs = {}  # type: dict[str, bytes]

    def _find_shell(self) -> bytes:
        for directory in [*self.environment[b"PATH"].split(b":"), b"/bin", b"/usr/bin"]:
            path = os.path.join(directory, b"bash")
            if directory and os.access(path, os.X_OK):
                return path
        return b"/bin/sh"


class Child:
    """A worker or keeper, as the supervisor sees it."""

    def __init__(self, process: int, connection: socket.socket) -> None:
        self.process = process
        self.connection = connection
        self.link = Link(connection.fileno(), connection.fileno())
        self.request = 0
        self.requests = set()  # type: set[int]
        self.what = ""
        self.blobs = 0
        self.clean = False
        self.callback = None  # type: Callable[[int], None] | None
        self.deadline = None  # type: float | None


class Supervisor:
    """Passes frames between the host and the children, which it starts and replaces."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.host = Link(0, 1)
        self.settings = None  # type: Settings | None
        self.children = {}  # type: dict[int, Child]
        self.routes = {}  # type: dict[int, Child]
        self.worker = None  # type: Child | None
        self.spares = []  # type: list[Child]
        self.waiting = collections.deque()  # type: collections.deque[tuple[int, str, bytes]]
        self.active = None  # type: int | None
        self.failures = []  # type: list[bytes]
        self.sweep_until = None  # type: float | None
        self.held = set()  # type: set[int]
        self.over = False
        self.prepared = False
        self.loop.watch(0, READ, self._on_host)

    def run(self) -> None:
        """Serve until the host goes, then end everything."""
        while not self.over:
            self.loop.turn(self._patience())
            self._look_after_children()
            if self.settings is not None and not self.prepared and not self.over:
                self._prepare()
            self.host.flush()
            if self.host.broken:
                self.over = True
            self.loop.watch(1, WRITE if self.host.outgoing else 0, self._on_host_writable)
            if self.held and self.host.waiting < BACKLOG // 2:
                for descriptor in self.held:
                    child = self.children.get(descriptor)
                    if child is not None:
                        self._watch(child)
                self.held.clear()
        self._end()

    def _patience(self) -> "float | None":
        if self.sweep_until is not None:
            return 0.02
        deadlines = [child.deadline for child in self.children.values() if child.deadline is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    # -- the host's frames

    def _on_host_writable(self, _events: int) -> None:
        self.host.flush()

    def _on_host(self, _events: int) -> None:
        alive = self.host.receive()
        for header, body, frame in self.host.frames():
            self._handle(header, body, frame)
        if not alive:
            self.over = True

    def _handle(self, header: "dict[str, Any]", body: bytes, frame: bytes) -> None:
        op = header["op"]
        if "of" in header:
            child = self.routes.get(header["of"])
            if child is not None:
                if "id" in header:
                    self._route(header["id"], child)
                if op == "kill":
                    child.deadline = time.monotonic() + KILL_PATIENCE + KEEPER_GRACE
                self._send(child, frame)
            elif "id" in header:
                self.host.send(pack({"id": header["id"], "t": "error", "kind": "ended", "text": "has ended"}))
        elif op in ("run", "process"):
            child = self.spares.pop() if self.spares else self._fork_keeper()
            child.what = "the keeper of " + (header.get("shell") or " ".join(header.get("argv", ())))[:200]
            if header.get("timeout") is not None:
                child.deadline = time.monotonic() + header["timeout"] + KEEPER_GRACE
            child.request = header["id"]
            self._route(header["id"], child)
            self._send(child, frame)
        elif op == "start":
            self._start(header)
        elif op == "ping":
            self.host.send(pack({"id": header["id"], "t": "done"}))
        elif op == "blob":
            assert self.settings is not None
            self.settings.blobs[header["digest"]] = body
            for child in self.spares:  # they were forked without it
                self._forget(child)
            del self.spares[:]
            self.host.send(pack({"id": header["id"], "t": "done"}))
        else:
            self.waiting.append((header["id"], op, frame))
            self._feed_worker()

    def _start(self, header: "dict[str, Any]") -> None:
        self.settings = Settings(header)
        notes = []
        if LIBC is None:
            notes.append("no ctypes in this Python: orphans are found by their environment")
        if not os.path.exists("/proc/self/stat"):
            notes.append("no /proc: only a command's process group can be ended")
        hello = {"t": "hello", "id": header["id"], "version": VERSION, "pid": os.getpid(), "notes": notes}
        hello["python"] = list(sys.version_info[:3])
        self.host.send(pack(hello))

    def _route(self, request: int, child: Child) -> None:
        self.routes[request] = child
        child.requests.add(request)

    def _send(self, child: Child, frame: bytes) -> None:
        child.link.send(frame)
        if child.link.outgoing:
            self._watch(child)

    def _feed_worker(self) -> None:
        """Give the worker its next request; one at a time, so that its death costs one."""
        if self.active is None and self.waiting:
            if self.worker is None:
                self.worker = self._fork_worker()
            request, op, frame = self.waiting.popleft()
            self.active = self.worker.request = request
            self.worker.what = "the file worker at " + op
            self._route(request, self.worker)
            self._send(self.worker, frame)

    # -- the children

    def _fork(self, main: "Callable[[socket.socket], None]") -> Child:
        ours, theirs = socket.socketpair()
        process = os.fork()
        if process == 0:
            run_forked(lambda: self._in_child(ours, theirs, main))
        theirs.close()
        child = Child(process, ours)
        self.children[ours.fileno()] = child
        self._watch(child)
        return child

    def _in_child(self, ours: socket.socket, theirs: socket.socket, main: "Callable[[socket.socket], None]") -> None:
        """Let go of everything that is the supervisor's, above all the host's stream."""
        self.loop.close_after_fork()
        ours.close()
        for child in self.children.values():
            child.connection.close()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0, False)
        os.dup2(null, 1, False)
        os.close(null)
        main(theirs)

    def _fork_keeper(self) -> Child:
        settings = self.settings
        assert settings is not None

        def main(connection: socket.socket) -> None:
            Keeper(Link(connection.fileno(), connection.fileno()), settings).run()

        child = self._fork(main)
        child.blobs = len(settings.blobs)
        return child

    def _fork_worker(self) -> Child:
        settings = self.settings
        assert settings is not None

        def main(connection: socket.socket) -> None:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            Worker(connection, settings).run()

        return self._fork(main)

    def _prepare(self) -> None:
        """Do after the start, while the host is not waiting, what makes the first command quick."""
        self.prepared = True
        import subprocess  # noqa: F401

        if hasattr(gc, "freeze"):
            gc.freeze()
        if not self.spares:
            self.spares.append(self._fork_keeper())

    def _release(self, child: Child, clean: bool) -> None:
        """A keeper has done its command: it serves the next one if it left nothing and knows all blobs."""
        assert self.settings is not None
        child.deadline = None
        if clean and len(self.spares) < SPARES and child.blobs == len(self.settings.blobs):
            self.spares.append(child)
        else:
            self._forget(child)

    def _watch(self, child: Child) -> None:
        if child.callback is None:
            child.callback = lambda events: self._on_child(child, events)
        self.loop.watch(child.link.read_fd, READ | WRITE if child.link.outgoing else READ, child.callback)

    def _on_child(self, child: Child, events: int) -> None:
        if events & WRITE:
            child.link.flush()
        if events & READ:
            alive = child.link.receive()
            done = None  # type: dict[str, Any] | None
            for header, _, frame in child.link.frames():
                request = header["id"]
                if header["t"] in FINAL:
                    child.requests.discard(request)
                    self.routes.pop(request, None)
                    if request == child.request:
                        done = header
                self.host.send(frame)
            if not alive:
                self._lose(child)
                return
            if child is self.worker:
                if done is not None:
                    self.active = None
                self._feed_worker()
            elif child.request not in child.requests and child.request:
                child.clean = child.clean if done is None else bool(done.get("clean"))
                if not child.requests:
                    child.request = 0
                    self._release(child, child.clean)
                    if child not in self.spares:
                        return
            if self.host.waiting > BACKLOG:
                self.loop.watch(child.link.read_fd, 0)
                self.held.add(child.link.read_fd)
                return
        self._watch(child)

    def _forget(self, child: Child) -> None:
        descriptor = child.link.read_fd
        self.loop.watch(descriptor, 0)
        self.held.discard(descriptor)
        self.children.pop(descriptor, None)
        child.connection.close()
        for request in child.requests:
            self.routes.pop(request, None)

    def _lose(self, child: Child) -> None:
        """A child closed its stream: it is done, or died."""
        self._forget(child)
        if child in self.spares:
            self.spares.remove(child)
        if child.requests and child.request not in child.requests:  # it was done; these came too late
            for request in child.requests:
                self.host.send(pack({"id": request, "t": "error", "kind": "ended", "text": "has ended"}))
        elif child.requests:
            signal_each([child.process], signal.SIGKILL)
            for request in child.requests:
                text = child.what + " died"
                self.failures.append(pack({"id": request, "t": "error", "kind": "lost", "text": text}))
            self.sweep_until = time.monotonic() + KILL_PATIENCE
        if child is self.worker:
            self.worker = None
            self.active = None
            self._feed_worker()

    def _look_after_children(self) -> None:
        now = time.monotonic()
        for child in [c for c in self.children.values() if c.deadline is not None and now >= c.deadline]:
            child.deadline = None
            if child.requests:
                signal_each([child.process], signal.SIGKILL)
        if self.loop.child_changed:
            self.loop.child_changed = False
            self._reap()
        # What a dead keeper left has become ours; the failure is told when that is gone.
        if self.sweep_until is not None and (not kill_all(self._strangers) or now >= self.sweep_until):
            self.sweep_until = None
            for frame in self.failures:
                self.host.send(frame)
            del self.failures[:]

    def _reap(self) -> None:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if process == 0:
                return
            if os.WIFSTOPPED(status):  # a command stopped its keeper
                signal_each([process], signal.SIGCONT)

    def _strangers(self) -> "set[int]":
        """Descendants that belong to no living child."""
        parents = process_parents()
        own = {child.process for child in self.children.values()}
        me = os.getpid()
        orphans = {process for process, parent in parents.items() if parent == me and process not in own}
        return orphans | below(orphans, parents)

    def _end(self) -> None:
        """End every process: keepers by closing their streams, what they leave by force."""
        self.host.flush()
        for child in list(self.children.values()):
            self._forget(child)
        end = time.monotonic() + END_PATIENCE
        self.loop.watch(0, 0)
        self.loop.watch(1, 0)
        while True:
            self._reap()
            try:
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            left = end - time.monotonic()
            if left <= 0:
                break
            self.loop.turn(min(left, 0.1))
        for _ in range(50):
            if not kill_all(lambda: below([os.getpid()], process_parents())):
                return
            self._reap()
            self.loop.turn(0.02)


IGNORED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGTTOU,
    signal.SIGTTIN,
    signal.SIGTSTP,
)
"""What would end or stop us and is not meant for us; by a handler that does nothing, since SIG_IGN is inherited."""


def main() -> None:
    """Run the guest on standard input and output."""
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in range(1, signal.NSIG):  # what a parent of ours ignored, programs would inherit
        if number != signal.SIGPIPE and signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in IGNORED:
        signal.signal(number, _ignore_signal)
    try:
        inherited = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        inherited = list(range(3, 64))
    for descriptor in inherited:
        if descriptor > 2:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    os.umask(0o022)
    Supervisor().run()


if __name__ == "__main__":
    main()
