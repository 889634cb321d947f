"""The guest: the processes of ours in a sandbox that serve one host over one byte stream.

    host <== frames on standard input and output ==> supervisor <== frames on socket pairs ==> worker, keepers

The *supervisor* only passes frames on, starts the others and replaces them when they die. The *worker* does file
operations; a search in files has a worker of its own, which can be killed. Each command has a *keeper*: it is the
subreaper of the command, so that it knows and ends everything that the command started; it bounds the output, enforces
the timeout, and relays messages of programs that have a channel. A worker or keeper that dies costs the one request
that it was serving.

A frame is the lengths of header and body (two 32-bit big-endian numbers), the header (JSON), the body (raw bytes).
The host's first frame is `start`, answered by `hello`. Every further request has an `id`, which its replies repeat;
the last reply is of a type in `FINAL`. Frames with `of` belong to the request of that id.

Standard library only, Python 3.6 and newer; started by `python -I -S -c BOOT`, which reads this program from standard
input (see `debug_gym_core.sandbox.connection`).
"""

import collections
import contextlib
import errno
import gc
import json
import os
import select
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
READY = "debug_gym_ready"  # see `zygote`
DEFAULT_PATH = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

TERM_GRACE = 0.5  # seconds between SIGTERM and SIGKILL when a command reached its timeout
LEFTOVER_GRACE = 0.2  # the same for what a command left running when it ended by itself
KILL_PATIENCE = 1.0  # seconds after which a process that SIGKILL cannot end (it waits in the kernel) is given up
KILL_PAUSE = 0.002  # seconds for the killed to die in before it is looked who is left
NICE = 10  # of commands, so that whoever takes all processors cannot keep us from ending it
HOLD = 0.5  # seconds for which a crowd is stopped while one of it is to notice a signal; less if it says something
CROWD = 50  # a command with more processes gets no grace: it may be a bomb, which leaves us hardly any time to run
KEEPER_GRACE = 1.75  # seconds over the timeout after which a keeper that does not answer is itself killed
LATE = b"(What it printed is lost: it took all processor time.)\n"
END_PATIENCE = 2.5  # seconds that keepers have to end their commands when the host is gone

CHUNK = 1 << 18
STREAM_WINDOW = 1 << 18  # bytes of followed output that the host has not acknowledged
MESSAGE_WINDOW = 1 << 22  # the same for messages on a channel
MESSAGE_LIMIT = 1 << 28  # a longer message means that something else than our program wrote to the channel
SPARES = 4  # keepers that wait for a command
BACKLOG = 1 << 22  # bytes for the host that wait before children are read no more
ZYGOTES = 2  # interpreters with modules loaded that are kept for warm starts
PREPARATIONS = 4  # times that one for the same kind of program is prepared
PREPARE_PATIENCE = 60.0  # seconds that the preparation may take
FORK_PATIENCE = 3.0  # seconds that a zygote has to fork a program
IDLE = 900.0  # seconds without a program after which a zygote is given up

PF_EXITING, PF_SIGNALED = 0x4, 0x400  # the kernel's flags of a process (include/linux/sched.h)

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


def told_of(process: "int | str", name: str) -> bytes:
    """A file of /proc on a process. Without `open`, which takes as long again: all are looked at often.

    Raises:
        OSError: there is no such process any more, or it must not be read
    """
    descriptor = os.open("/proc/%s/%s" % (process, name), os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(descriptor, 4096)]
        while len(parts[-1]) == 4096:
            parts.append(os.read(descriptor, 4096))
        return b"".join(parts)
    finally:
        os.close(descriptor)


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
                fields = told_of(name, "stat")
            except OSError:
                continue
            # The name, in parentheses, may hold anything; behind it come state and parent.
            state, parent = fields[fields.rindex(b")") + 2 :].split(None, 2)[:2]
            if state not in (b"Z", b"X"):
                parents[int(name)] = int(parent)
    return parents


def process_count() -> int:
    """How many processes can be seen; much quicker than looking at each."""
    try:
        return sum(name.isdigit() for name in os.listdir("/proc"))
    except OSError:
        return 0


def is_dying(process: int) -> bool:
    """Whether a process carries out nothing any more: it was killed or is about to end, though still to be seen."""
    try:
        status, fields = told_of(process, "status"), told_of(process, "stat")
    except OSError:
        return os.path.isdir("/proc/self")
    lines = [line.split() for line in status.splitlines() if line.startswith((b"SigPnd:", b"ShdPnd:"))]
    killed = any(int(line[1], 16) >> (signal.SIGKILL - 1) & 1 for line in lines)
    flags = int(fields[fields.rindex(b")") + 2 :].split(None, 7)[6])
    return killed or bool(flags & (PF_EXITING | PF_SIGNALED))


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
            if wanted in b"\0" + told_of(process, "environ") + b"\0":
                found.add(process)
        except OSError:
            continue
    return found


def start_times(processes: "Iterable[int]") -> "dict[int, bytes]":
    """When processes were started; their numbers alone may be used again."""
    found = {}
    for process in processes:
        with contextlib.suppress(OSError):
            fields = told_of(process, "stat")
            found[process] = fields[fields.rindex(b")") + 2 :].split(None, 20)[19]
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
        self.zygote = None  # type: Zygote | None
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
        self.before = {}  # type: dict[int, bytes]
        self.count_before = 0
        self.signalled = {}  # type: dict[int, set[int]]
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
        self.warm = False  # whether the program is a fork that has not yet said anything
        self.sent = []  # type: list[bytes]
        self.held = set()  # type: set[int]
        self.hold_until = 0.0

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
        if self.zygote is not None:
            self._drop_zygote()

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
        elif op == "zygote":
            self._start_zygote(header)
        elif op == "blob":
            self.settings.blobs[header["digest"]] = body
        elif header.get("of") != self.id:  # about a command that has just ended
            if "id" in header:
                self.link.send(pack({"id": header["id"], "t": "error", "kind": "ended", "text": "has ended"}))
        elif op == "send" and self.channel is not None:
            if self.warm:
                self.sent.append(body)
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
            wanted = header.get("pid") or self.main
            if wanted == self.main:
                found = {wanted} if self.status is None else set()
            else:
                found = {wanted} & self._descendants()
            found = {process for process in found if not is_dying(process)}
            if found and header["number"]:
                self._hold_crowd(found)
            signal_each(found, header["number"])
            self.link.send(pack({"id": header["id"], "t": "done", "count": len(found)}))
        elif op == "checkpoint":
            self.before = start_times(self._descendants() - {self.main})
            self.count_before = process_count()
            self.signalled = {}
            if self.terminal_fd >= 0:
                _set_modes(self.slave_fd)
        elif op == "signal_since":
            count = self._signal_since(header["number"], bool(header.get("itself")), header.get("most"))
            self.link.send(pack({"id": header["id"], "t": "done", "count": count}))
        elif op == "echo":
            self.link.send(pack({"id": header["id"], "t": "done", "echo": _echo(self.slave_fd, header.get("state"))}))
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
        if self._try_spawn(body) and request.get("timeout") is not None:
            self.deadline = self.started + request["timeout"]

    def _try_spawn(self, stdin: bytes) -> bool:
        """Start the program and tell the host, or refuse."""
        request = self.request
        try:
            self._spawn(stdin)
        except OSError as error:
            known = error.filename == self.cwd
            subject = request.get("cwd") if known else request.get("argv", ["the shell"])[0]
            self._refuse(os_error(error, subject or "."))
            return False
        except ValueError as error:  # a NUL in an argument
            self._refuse(os_error(OSError(errno.EINVAL, str(error))))
            return False
        except Exception as error:
            self._refuse({"t": "error", "kind": "internal", "text": repr(error)})
            return False
        if request["op"] == "process":
            self.link.send(pack({"id": self.id, "t": "started", "pid": self.main, "warm": self.warm}))
        return True

    def _refuse(self, reply: "dict[str, Any]") -> None:
        self.link.send(pack(dict(reply, id=self.id)))
        self._reset()

    def _spawn(self, stdin: bytes) -> None:
        request = self.request
        environment = self.settings.environment_with(request.get("env"))
        if not self.subreaper:
            self.marker = "%d-%d-%s" % (os.getpid(), self.id, os.urandom(4).hex())
            environment[to_bytes(MARKER)] = to_bytes(self.marker)
        if "shell" in request:
            argv = [self.settings.shell, b"-c", to_bytes(request["shell"])]
        else:
            argv = [to_bytes(part) for part in request["argv"]]
        passed = {}  # type: dict[str, int]
        if request.get("channel"):
            ours, theirs = socket.socketpair()
            channel = ours.detach()
            self.channel = Link(channel, channel)
            passed["{channel}"] = theirs.detach()
        for name, digest in (request.get("blobs") or {}).items():
            passed["{blob:" + name + "}"] = memory_file(self.settings.blobs[digest])
        places = {to_bytes(place): b"%d" % descriptor for place, descriptor in passed.items()}
        argv = [places.get(part, part) for part in argv]
        if request.get("pty"):
            self.terminal_fd, self.slave_fd = _open_terminal(request.get("rows", 24), request.get("columns", 80))
            self.output_fd = self.stdin_fd = self.terminal_fd
            streams = self.slave_fd, self.slave_fd
        else:
            self.output_fd, write_end = os.pipe()
            streams = -1, write_end
        if request.get("stdin") or (stdin and not request.get("pty")):
            read_end, self.stdin_fd = os.pipe()
            os.set_blocking(self.stdin_fd, False)
            streams = read_end, streams[1]
        elif not request.get("pty"):
            streams = os.open(os.devnull, os.O_RDONLY), streams[1]
        os.set_blocking(self.output_fd, False)
        self.cwd = os.path.join(self.settings.root, to_bytes(request.get("cwd") or "."))
        try:
            self.main = self._fork_warm(streams, passed)
            self.warm = self.main > 0
            if not self.warm:
                self.main = _spawn(argv, environment, self.cwd, streams, passed.values(), self.terminal_fd >= 0)
        finally:
            # A PTY's slave stays open, so that reading its master does not fail when nobody else has it open.
            for descriptor in {*passed.values(), *streams} - {self.slave_fd}:
                os.close(descriptor)
        if stdin:
            self.stdin.append(stdin)
            self.close_stdin = self.terminal_fd < 0 and not request.get("stdin")
            self._write_stdin()
        self._watch_output()
        self._watch_channel()

    # -- warm starts

    def _start_zygote(self, request: "dict[str, Any]") -> None:
        """Prepare an interpreter from which programs like the one that was asked for are forked."""
        warm = request["warm"]
        argv = request["argv"][: request["argv"].index("-c")]
        root = to_text(self.settings.root)
        code = request["blobs"]["code"]
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        passed = [theirs.detach()]
        passed += [memory_file(self.settings.blobs[digest]) for digest in (warm["code"], code)]
        if request.get("pty"):
            streams = _open_terminal(24, 80)
            given = os.open(os.devnull, os.O_RDONLY) if request.get("stdin") else streams[1], streams[1]
        else:
            streams = os.pipe()
            given = os.open(os.devnull, os.O_RDONLY), streams[1]
        self.zygote = Zygote(ours, streams, code)
        try:
            if not (self.subreaper and os.path.exists("/proc/self/stat")):
                raise OSError(errno.ENOSYS, "what is forked cannot be kept track of")
            command = [*argv, "-c", warm["boot"], *map(str, passed)]
            environment = self.settings.environment_with(request.get("env"))
            arguments = [to_bytes(part) for part in command]
            # A terminal is not its controlling one: that would be gone with the first of the processes that it becomes.
            process = _spawn(arguments, environment, self.settings.root, given, passed, False)
            _prefer_as_victim(process, 900)
            config = {"root": root, "imports": warm["imports"], "limit": warm["limit"]}
            config["code"] = request["argv"][request["argv"].index("-c") + 1]
            ours.send(json.dumps(config).encode("ascii"))
        except (OSError, ValueError):
            self._lose_zygote("failed")
        else:
            self.loop.watch(ours.fileno(), READ, self._on_zygote)
        finally:
            for descriptor in {*passed, *given} - {*streams}:
                os.close(descriptor)

    def _on_zygote(self, _events: int) -> None:
        """It is ready, or gone."""
        zygote = self.zygote
        assert zygote is not None
        told = zygote.receive(0.0)
        if "ready" not in told or zygote.printed():
            self._lose_zygote("lost" if zygote.process else "failed")
            return
        zygote.process = told["ready"]
        self._reap()
        kill_all(self._descendants)  # what imports left behind
        self.link.send(pack({"id": 0, "t": "zygote", "state": "ready"}))

    def _lose_zygote(self, state: str) -> None:
        """Do without it; `state`: stale, lost or failed."""
        self._drop_zygote()
        self.link.send(pack({"id": 0, "t": "zygote", "state": state}))

    def _drop_zygote(self) -> None:
        zygote, self.zygote = self.zygote, None
        assert zygote is not None
        self.loop.watch(zygote.connection.fileno(), 0)
        zygote.close()
        if self.main == 0:
            kill_all(lambda: below([os.getpid()], process_parents()))
        elif zygote.process:
            signal_each([zygote.process], signal.SIGKILL)

    def _fork_warm(self, streams: "tuple[int, int]", passed: "dict[str, int]") -> int:
        """Have the zygote fork the program, whose parent we become; 0: it has to be started."""
        zygote, request = self.zygote, self.request
        if zygote is None or not zygote.process or not os.path.isdir(self.cwd):
            return 0
        cut = request["argv"].index("-c")
        fields = {
            "interpreter": request["argv"][:cut],
            "code": request["argv"][cut + 1],
            "arguments": request["argv"][cut + 2 :],
            "places": list(passed),
            "same": (request.get("blobs") or {}).get("code") == zygote.code,
            "terminal": self.terminal_fd >= 0,
            "cwd": to_text(self.cwd),
        }
        held, go = os.pipe()
        try:
            process, state = zygote.fork(fields, [*streams, held, *passed.values()])
            if process:
                _settle(process)
                os.write(go, b"1")
            else:
                self._lose_zygote(state)
            return process
        finally:
            os.close(held)
            os.close(go)

    def _start_again(self) -> None:
        """A fork ended before it said anything: start the program as if there had been none."""
        self.main = 0
        self._lose_zygote("failed")
        self._reap()
        id, request, sent, started, deadline = self.id, self.request, self.sent, self.started, self.deadline
        at_end = self.close_stdin
        self._reset()
        self.id, self.request, self.started, self.deadline = id, request, started, deadline
        self.output = Output(request["output_limit"])
        if self._try_spawn(b"") and self.channel is not None:
            for message in sent:
                self.channel.send(struct.pack(">I", len(message)) + message)
            self._watch_channel()
            if at_end and self.stdin_fd >= 0:
                self.close_stdin = True
                self._write_stdin()

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
            self.warm = False
            del self.sent[:]
            self._let_go()
            draining, self.draining = self.draining, True  # what was printed before it comes before it
            self._drain()
            self.draining = draining
            fields, printed = self.output.take()
            self.unacknowledged += size + 64
            self.link.send(pack(dict(fields, id=self.id, t="message"), printed + message))

    def _drain_channel(self) -> None:
        """Take the messages that a program that has ended left."""
        while self.channel is not None:
            before = len(self.channel.incoming)
            if not self.channel.receive() or len(self.channel.incoming) == before:
                break
            self._relay(self.channel)

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
        times.append(self.hold_until if self.held else None)
        known = [moment for moment in times if moment is not None]
        return max(0.0, min(known) - time.monotonic()) if known and self.main else None

    def _advance(self) -> None:
        """Move on what time or a child's end moves."""
        if self.loop.child_changed:
            self.loop.child_changed = False
            self._reap()
        now = time.monotonic()
        if self.held and now >= self.hold_until:
            self._let_go()
        if not self.ending:
            if self.status is not None:
                if self.warm:
                    self._drain_channel()
                if self.warm:
                    self._start_again()
                    return
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
            self._stop_group()
            kill_all(self._descendants)
            self.next_sweep = time.monotonic() + 0.02
            self.loop.child_changed = True
        if self.give_up_at is not None and now >= self.give_up_at:
            self._finish()

    def _reap(self) -> None:
        alone = False
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            if process == 0:
                # Whoever dies while we look becomes ours before it is reaped: then we look again.
                self.childless = alone
                if alone or self.zygote is None or self.status is None or self._descendants():
                    return
                alone = True
                continue
            alone = False
            if process == self.main:
                self.status = exit_status(status)

    def _descendants(self) -> "set[int]":
        parents = process_parents()
        found = below([os.getpid()], parents)
        if self.zygote is not None and self.zygote.process:
            found -= {self.zygote.process} | below([self.zygote.process], parents)
        if self.marker:
            found |= marked(self.marker) - {os.getpid()}
        if self.status is None and self.main:
            found.add(self.main)  # where there is no /proc
        return found

    def _since(self) -> "set[int]":
        """What the command started since the checkpoint."""
        known = {process for process, start in start_times(self.before).items() if self.before[process] == start}
        return self._descendants() - {self.main} - known - below(known, process_parents())

    def _signal_since(self, number: int, itself: bool, most: "int | None") -> int:
        """Signal what was started since the checkpoint, each process once, and the command itself each time.

        The command is stopped meanwhile, so that it starts nothing that is missed. If it started more than `most`, all
        that are killed, without a chance to go on. Returns how many the others are.
        """
        main = [self.main] if itself and self.status is None and number not in (0, signal.SIGKILL) else []
        # Of a bomb all at once: it leaves hardly any time to look for each. What ran before shall else notice nothing.
        crowd = self.status is None and process_count() - self.count_before > CROWD
        if crowd:
            self._stop_group()
        signal_each(main, signal.SIGSTOP)
        since = self._since()
        alive = since if number != signal.SIGKILL and (most is None or len(since) <= most) else set()
        if alive is not since:
            if len(since) > CROWD and self.status is None and not crowd:
                crowd = True
                self._stop_group()
            fewest, end = sys.maxsize, 0.0
            while True:
                killed = kill_all(self._since)
                self._reap()  # the dead count against the limit of processes too
                if not killed:
                    break
                if len(killed) < fewest:  # the more there are, the longer it takes on a busy machine
                    fewest, end = len(killed), time.monotonic() + KILL_PATIENCE
                elif time.monotonic() >= end:
                    break
                time.sleep(KILL_PAUSE)
        if number and number != signal.SIGKILL:
            fresh = alive - self.signalled.get(number, set())
            self.signalled[number] = alive
            signal_each([*main, *fresh], number)
            signal_each([*alive, *main], signal.SIGCONT)
        if crowd and self.status is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.main, signal.SIGCONT)
        return len(since)

    def _hold_crowd(self, processes: "set[int]") -> None:
        """Stop all others but these for a while, if they are many: a bomb leaves them no time to notice a signal."""
        if process_count() <= CROWD:
            return
        others = self._descendants() - processes
        if len(others) > CROWD:
            self.hold_until = time.monotonic() + HOLD
            for _ in range(8):  # who is not stopped yet may fork meanwhile
                signal_each(others - self.held, signal.SIGSTOP)
                self.held |= others
                others = self._descendants() - processes
                if others <= self.held:
                    break

    def _let_go(self) -> None:
        held, self.held = self.held, set()
        if held:
            signal_each(held & self._descendants(), signal.SIGCONT)

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
            self._stop_group()
            others = self._descendants() - {self.main}
            if len(others) > CROWD:
                self.kill_at = now
                return
            # The command itself first: it may clean up, and shall not take the death of its children for its own end.
            # Of the others the older ones, for the same reason: children are younger than their parents.
            processes = [*([self.main] if self.status is None else []), *sorted(others)]
            signal_each(processes, signal.SIGTERM)
            signal_each(processes, signal.SIGCONT)

    def _stop_group(self) -> None:
        """Stop the command and what is still in its process group, at once and however many they are.

        What has the processor all the time would otherwise keep us from looking for its processes.
        """
        if self.status is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.main, signal.SIGSTOP)

    def _finish(self) -> None:
        self.draining = True
        self._drain()
        self.unacknowledged = 0
        self._drain_channel()
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


class Zygote:
    """A keeper's end of an interpreter from which programs are forked (see `zygote.py`)."""

    def __init__(self, connection: socket.socket, streams: "tuple[int, int]", code: str) -> None:
        self.connection = connection
        self.streams = streams
        self.code = code
        self.process = 0  # of the one that is ready

    def receive(self, patience: float) -> "dict[str, Any]":
        """What it says; nothing when it does not in `patience` seconds, or is gone."""
        data = b""
        if select.select([self.connection], [], [], patience)[0]:
            with contextlib.suppress(OSError):
                data = self.connection.recv(1 << 16)
        told = json.loads(data.decode("utf-8")) if data else {}  # type: dict[str, Any]
        return told

    def printed(self) -> bool:
        """Whether it printed anything before it was ready: a program that is forked would not."""
        return bool(select.select([self.streams[0]], [], [], 0)[0])

    def fork(self, fields: "dict[str, Any]", descriptors: "list[int]") -> "tuple[int, str]":
        """Have it fork a program; returns its process id, or 0 and what has become of the zygote."""
        import array

        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        try:
            self.connection.sendmsg([json.dumps(fields).encode("ascii")], [rights])
        except OSError:
            return 0, "lost"
        told = self.receive(FORK_PATIENCE)
        if told.get("pid", 0) > 0:
            return told["pid"], ""
        return 0, "stale" if told.get("stale") else "lost"

    def close(self) -> None:
        """Give it up."""
        self.connection.close()
        for descriptor in self.streams:
            os.close(descriptor)


def _open_terminal(rows: int, columns: int) -> "tuple[int, int]":
    """A PTY without echo and with plain line ends: master, slave."""
    import pty

    master, slave = pty.openpty()
    _set_modes(slave)
    _set_window(master, rows, columns)
    return master, slave


def _set_modes(slave: int) -> None:
    """Put a PTY in the state in which programs find it: no echo, plain line ends, whatever one left behind."""
    import termios

    if not _fresh_modes:  # the first one ever opened here
        flags = termios.tcgetattr(slave)
        flags[1] &= ~termios.ONLCR
        flags[3] &= ~termios.ECHO
        _fresh_modes.extend(flags)
    termios.tcsetattr(slave, termios.TCSANOW, _fresh_modes)


_fresh_modes = []  # type: list[Any]


def _echo(slave: int, state: "bool | None") -> bool:
    """Whether a PTY echoes; first made so when `state` is not None."""
    import termios

    if slave < 0:
        return False
    flags = termios.tcgetattr(slave)
    if state is not None:
        flags[3] = flags[3] | termios.ECHO if state else flags[3] & ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, flags)
    return bool(flags[3] & termios.ECHO)


def _set_window(terminal: int, rows: int, columns: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _spawn(
    argv: "list[bytes]",
    environment: "dict[bytes, bytes]",
    cwd: bytes,
    streams: "tuple[int, int]",
    passed: "Iterable[int]",
    terminal: bool,
) -> int:
    """Start a program in a session of its own; returns its process id, raises OSError that names what is wrong."""
    import subprocess

    def take_terminal() -> None:
        import fcntl
        import termios

        fcntl.ioctl(1, termios.TIOCSCTTY, 0)

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
    _settle(process.pid)
    return process.pid


def _settle(process: int) -> None:
    """Put a new program in its place."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, NICE)
    _prefer_as_victim(process, 500)  # when memory runs out, the kernel shall end the command and not us


def _prefer_as_victim(process: int, score: int) -> None:
    with contextlib.suppress(OSError), open("/proc/%d/oom_score_adj" % process, "wb", 0) as file:
        file.write(b"%d" % score)


# ------------------------------------------------------------------------------------------------------- watching


IN_MODIFY = 0x2
IN_ATTRIB = 0x4
IN_CLOSE_WRITE = 0x8  # what was written to a mapping of a file is told with this alone
IN_MOVED = 0x40 | 0x80
IN_CREATE = 0x100
IN_DELETE = 0x200
IN_Q_OVERFLOW = 0x4000
IN_IGNORED = 0x8000
IN_ONLYDIR = 0x1000000
IN_EXCL_UNLINK = 0x4000000
IN_ISDIR = 0x40000000
_EVENT = struct.Struct("iIII")

CHANGES = 5000
"""Paths that a watch tells of at once; when there are more, comparing everything is cheaper."""


class Watch:
    """What happened below a directory, as inotify(7) tells: the kernel keeps it until it is asked for."""

    def __init__(self, prune: "frozenset[bytes]") -> None:
        """Watch nothing yet; raises OSError where inotify cannot be had."""
        if LIBC is None:
            raise OSError(errno.ENOSYS, "there is no ctypes")
        self.prune = prune
        self.top = None  # type: tuple[int, int] | None
        self.paths = {}  # type: dict[int, bytes]
        self.complete = True
        self.descriptor = int(LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def close(self) -> None:
        """Watch no longer."""
        os.close(self.descriptor)

    def add_directory(self, directory: int, prefix: bytes) -> None:
        """Watch the entries of an open directory; `prefix` stands before their names."""
        mask = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVED | IN_CREATE | IN_DELETE | IN_EXCL_UNLINK | IN_ONLYDIR
        self._add(b"/proc/self/fd/%d" % directory, prefix, mask)

    def add_file(self, name: bytes, directory: int, path: bytes) -> None:
        """Watch one file in an open directory, by whatever name it is changed (it may have others elsewhere)."""
        self._add(b"/proc/self/fd/%d/%s" % (directory, name), path, IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE)

    def _add(self, place: bytes, path: bytes, mask: int) -> None:
        number = LIBC.inotify_add_watch(ctypes.c_int(self.descriptor), place, ctypes.c_uint32(mask))
        if number >= 0:
            self.paths[number] = path
        elif ctypes.get_errno() != errno.ENOENT:
            self.complete = False

    def take(self) -> "tuple[set[bytes], set[bytes]] | None":
        """Where something happened since the last call, and which of these are new directories; None: unknown."""
        changed = set()  # type: set[bytes]
        fresh = set()  # type: set[bytes]
        while self.complete:
            try:
                data = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                return changed, fresh
            position = 0
            while position < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, position)
                position += _EVENT.size + length
                prefix = self.paths.get(number)
                if mask & IN_IGNORED:
                    self.paths.pop(number, None)
                    self.complete = self.complete and prefix != b""  # else the directory itself is gone
                if mask & IN_Q_OVERFLOW or (mask & IN_ISDIR and mask & IN_MOVED) or len(changed) > CHANGES:
                    self.complete = False
                elif prefix is not None:
                    path = (prefix + data[position - length : position].rstrip(b"\0")).rstrip(b"/")
                    changed.add(path)
                    if mask & IN_CREATE and mask & IN_ISDIR:
                        fresh.add(path)
        return None


# ------------------------------------------------------------------------------------------------------ the worker


class Outside(PermissionError):
    """A path that leads out of the workspace."""

    def __init__(self) -> None:
        PermissionError.__init__(self, errno.EACCES, "leads out of the workspace")


class Worker:
    """Does file operations, one after the other.

    Paths are relative to the workspace, which they must not leave whatever links there are, or come to be, on the way;
    an absolute path is taken as it is.
    """

    def __init__(self, connection: socket.socket, settings: "Settings") -> None:
        connection.setblocking(True)
        self.file = connection.makefile("rb")
        self.connection = connection
        self.root = os.path.realpath(settings.root)
        self.counter = 0
        self.buffer = b""
        self.watch = None  # type: Watch | None

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
                self._mend_root()
                reply = operation(header, body)
            except OSError as error:
                reply = os_error(error, getattr(error, "entry", None) or header.get("path")), b""
            except ValueError as error:  # a NUL in a path
                reply = os_error(OSError(errno.EINVAL, str(error)), header.get("path")), b""
            except Exception as error:  # RecursionError, MemoryError: the request's, not everybody's
                if header["op"] == "grep":  # has a worker of its own, whose end the host understands
                    raise
                reply = {"t": "error", "kind": "internal", "text": repr(error)[:500]}, b""
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

    def _mend_root(self) -> None:
        """Open the workspace's directory again when a command closed it, and make a new one when it is gone."""
        try:
            if stat.S_ISDIR(os.lstat(self.root).st_mode):
                if not os.access(self.root, os.R_OK | os.W_OK | os.X_OK):
                    _open_up(self.root, 0o700)
                return
            os.unlink(self.root)
        except FileNotFoundError:
            pass
        except OSError:  # not ours: what the request needs of it fails by itself
            return
        with contextlib.suppress(OSError):
            os.makedirs(self.root)

    def _path(self, header: "dict[str, Any]") -> bytes:
        return os.path.join(self.root, to_bytes(header["path"]))

    def _inside(self, real: bytes) -> bool:
        return real == self.root or real.startswith(self.root.rstrip(b"/") + b"/")

    def _real(self, header: "dict[str, Any]") -> bytes:
        """The path without links; a relative one that leads out of the workspace is refused."""
        real = os.path.realpath(self._path(header))
        if not (header["path"].startswith("/") or self._inside(real)):
            raise Outside()
        return real

    def _open_file(self, path: bytes, real: bytes) -> int:
        """Open a file to read it, one of the workspace so that no link on its way, or in its place, is followed."""
        # Without O_NONBLOCK the opening of a named pipe would wait for a writer.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        if real == self.root or not self._inside(real):
            return os.open(path, flags)
        directory = self._open_directory(os.path.dirname(real), create=False)
        try:
            return os.open(os.path.basename(real), flags | os.O_NOFOLLOW, dir_fd=directory)
        finally:
            os.close(directory)

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
        descriptor = self._open_file(self._path(header), self._real(header))
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
        descriptor = self._open_file(real, real)
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
        path = os.path.normpath(self._path(header))
        try:
            if header["path"].startswith("/") or path == self.root:
                return {"entry": _describe(header["path"], path, os.lstat(path))}, b""
            above, name = os.path.split(path)
            above = os.path.realpath(above)
            if not self._inside(above):
                raise Outside()
            directory = self._open_directory(above, create=False)
            try:
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                return {"entry": _describe(header["path"], name, status, directory)}, b""
            finally:
                os.close(directory)
        except (FileNotFoundError, NotADirectoryError):
            return {"entry": None}, b""

    def do_realpath(self, header: "dict[str, Any]", _body: bytes) -> "tuple[dict[str, Any], bytes]":
        """The path with every link resolved."""
        return {"real": to_text(os.path.realpath(self._path(header)))}, b""

    def do_walk(self, header: "dict[str, Any]", _body: bytes) -> "tuple[dict[str, Any], bytes]":
        """The entries below a directory, each directory just before what it holds, names sorted by their bytes."""
        prune = frozenset(to_bytes(name) for name in header.get("prune") or ())
        prefix = to_bytes(header["path"]).rstrip(b"/")
        prefix = b"" if prefix in (b"", b".") else prefix + b"/"
        alone = frozenset(to_bytes(path) for path in header.get("watch") or ())
        batch = []
        directory = self._open_directory(self._real(header), create=False)
        watch = self._new_watch(prune, directory) if header.get("watch") is not None else None
        open_up = bool(header.get("open_up"))
        try:
            for path, name, status, above in self._below(
                directory, prefix, prune, header.get("depth"), watch, open_up=open_up
            ):
                batch.append(_describe(to_text(path), name, status, above))
                if watch is not None and path in alone:
                    watch.add_file(name, above, path)
                if len(batch) >= 500:
                    self._send({"id": header["id"], "t": "data"}, _encode(batch).encode("ascii"))
                    batch = []
        except BaseException:
            if watch is not None:
                watch.close()
            raise
        if watch is not None:
            self.watch = watch
        return {}, _encode(batch).encode("ascii")

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
            names.append(_names(directory))
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
                        _open_up(name, 0o700, directory)
                        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                path = prefix + name
                yield path, name, status, directory
                if len(path) >= LONGEST_PATH:
                    continue
                if stat.S_ISDIR(status.st_mode) and (depth is None or len(todo) < depth) and name not in prune:
                    try:
                        todo.append((os.open(name, flags, dir_fd=directory), path + b"/"))
                    except OSError:  # gone since, not readable, or too deep
                        continue
                    if watch is not None:
                        watch.add_directory(todo[-1][0], path + b"/")
                    try:
                        names.append(_names(todo[-1][0]))
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
            watch.top = _identity(os.fstat(directory))
            return watch
        return None

    def do_changed(self, header: "dict[str, Any]", _body: bytes) -> "tuple[dict[str, Any], bytes]":
        """What may have changed since the walk that watches, or since this was last asked.

        Pairs of a path and its entry, null where there is nothing. `known` false: it may be anything.
        """
        watch = self.watch
        found = watch.take() if watch is not None else None
        if watch is None or found is None or watch.top != _identity(os.stat(self.root)):
            return {"known": False}, b""
        changed, fresh = found
        batch = []  # type: list[Any]
        several = False  # names of one file: it may have been changed by one that is not watched
        for path in sorted(changed - {b""}):
            directory = -1
            try:
                above, name = os.path.split(path)
                directory = self._open_directory(os.path.join(self.root, above), create=False)
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                batch.append([to_text(path), _describe(to_text(path), name, status, directory)])
                several = several or (stat.S_ISREG(status.st_mode) and status.st_nlink > 1)
            except OSError:
                batch.append([to_text(path), None])
            finally:
                if directory >= 0:
                    os.close(directory)
        for top in sorted(fresh):
            if os.path.basename(top) in watch.prune:
                continue
            try:
                directory = self._open_directory(os.path.join(self.root, top), create=False)
            except PermissionError:  # closed: a walk that opens it must be made
                watch.complete = False
                continue
            except OSError:  # gone since, or replaced: that is told next
                continue
            with contextlib.suppress(OSError):
                below = self._below(directory, top + b"/", watch.prune, None, watch, open_up=True)
                for path, name, status, inner in below:
                    batch.append([to_text(path), _describe(to_text(path), name, status, inner)])
                    several = several or (stat.S_ISREG(status.st_mode) and status.st_nlink > 1)
        if several or not watch.complete:
            watch.complete = False
            return {"known": False}, b""
        for start in range(500, len(batch), 500):
            part = batch[start : start + 500]
            self._send({"id": header["id"], "t": "data"}, _encode(part).encode("ascii"))
        return {"known": True}, _encode(batch[:500]).encode("ascii")

    def do_hash(self, header: "dict[str, Any]", _body: bytes) -> "tuple[dict[str, Any], bytes]":
        """The SHA-256 of files; null for what is no file that can be read."""
        import hashlib

        hashes = {}  # type: dict[str, str | None]
        for path in header["paths"]:
            digest = hashlib.sha256()
            try:
                descriptor = self._open_file(self._path({"path": path}), self._real({"path": path}))
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

    def do_grep(self, header: "dict[str, Any]", _body: bytes) -> "tuple[dict[str, Any], bytes]":
        """Lines that match a pattern, a frame for each file that has some; then the sums."""
        return Search(self, header).run(), b""


def _names(directory: int) -> "list[bytes]":
    """The names in an open directory, the last one first."""
    return sorted(map(os.fsencode, os.listdir(directory)), reverse=True)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _describe(shown: str, name: bytes, status: os.stat_result, directory: "int | None" = None) -> "list[Any]":
    """An entry, a name in an open directory, for the host: path, kind, size, mode, time, target, stamp."""
    mode = status.st_mode
    target = None
    if stat.S_ISREG(mode):
        kind = "file"
    elif stat.S_ISDIR(mode):
        kind = "directory"
    elif stat.S_ISLNK(mode):
        kind = "link"
        try:
            target = to_text(os.readlink(name, dir_fd=directory))
        except OSError:
            target = ""
    else:
        kind = "other"
    stamp = "%d-%o-%d-%d-%d" % (status.st_size, mode, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return [shown, kind, status.st_size, stat.S_IMODE(mode), status.st_mtime_ns, target, stamp]


def _identity(status: os.stat_result) -> "tuple[int, int]":
    return status.st_dev, status.st_ino


def _open_up(name: bytes, permissions: int, directory: "int | None" = None) -> None:
    """Add permissions to those of a directory; a link in its place is not followed."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=directory)
    try:
        os.chmod(b"/proc/self/fd/%d" % descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) | permissions)
    finally:
        os.close(descriptor)


LONGEST_PATH = (
    4096  # bytes of a path in which we look for more: the kernel takes no longer ones, and each is sent in full
)
DEEPEST = 64  # directories one in another that are open while a tree is removed


def _remove(directory: int, name: bytes) -> None:
    """Remove an entry of an open directory and what is below it, however deep, following no link.

    What lies deeper than `DEEPEST` is moved up first.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    todo = [(directory, [name])]
    moved = 0
    try:
        while True:
            directory, names = todo[-1]
            if not names:
                if len(todo) == 1:
                    return
                os.close(todo.pop()[0])
                above, names = todo[-1]
                os.rmdir(names.pop(), dir_fd=above)
                continue
            name = names[-1]
            try:
                mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
                if not stat.S_ISDIR(mode):
                    os.unlink(name, dir_fd=directory)
                    names.pop()
                    continue
                if stat.S_IMODE(mode) & 0o700 != 0o700:
                    _open_up(name, 0o700, directory)
                if len(todo) > DEEPEST:
                    moved += 1
                    fresh = b".debug-gym-%d-%d.removed" % (os.getpid(), moved)
                    os.rename(name, fresh, src_dir_fd=directory, dst_dir_fd=todo[1][0])
                    todo[1][1].insert(0, fresh)
                    names.pop()
                    continue
                below = os.open(name, flags, dir_fd=directory)
            except FileNotFoundError:  # gone since
                names.pop()
                continue
            todo.append((below, []))
            todo[-1][1].extend(map(os.fsencode, os.listdir(below)))
    finally:
        for directory, _ in todo[1:]:
            os.close(directory)


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


# ------------------------------------------------------------------------------------------------------- searching


PIECE = 1 << 20  # bytes of a file that are searched at once
LONGEST = 1 << 24  # bytes of a line that are searched
SEARCH_MEMORY = 1 << 30  # bytes of address space of a search: what backtracking remembers is not little
TOLD_FILES = 1000  # files with matches that are told one by one


class TimeUp(Exception):
    """The time of a search is over."""


class PathPatterns:
    """Patterns of paths as `.gitignore` has them: regular expressions with a verdict, the first that matches decides.

    They come from `debug_gym_core.sandbox.patterns.Patterns`, whose `match` this does.
    """

    def __init__(self, patterns: "list[tuple[str, bool]]") -> None:
        import re

        self.patterns = [(re.compile(pattern), verdict) for pattern, verdict in patterns]
        self.any = _any_of([pattern for pattern, _ in patterns])  # most paths match none

    def match(self, name: str) -> "bool | None":
        """The verdict on a path, which ends in a slash when it is a directory's; None: no pattern matches."""
        if self.any.search(name) is not None:
            for pattern, verdict in self.patterns:
                found = pattern.search(name)
                if found is not None and (found.lastgroup is None or found.end(found.lastgroup) == len(name)):
                    return verdict
        return None


class Search:
    """Finds lines in the files below a path.

    It runs in a process of its own, which can be killed: a regular expression may take for ever, or all memory.
    """

    def __init__(self, worker: Worker, request: "dict[str, Any]") -> None:
        self.worker = worker
        self.request = request
        self.context = request["context"]
        self.lines_left = request["lines"]
        self.characters_left = request["characters"]
        self.files = self.matching_files = self.matching_lines = self.unreadable = self.cut_lines = 0
        self.path = ""
        self.prefix = b""
        self.matching = self.late = False

    def run(self) -> "dict[str, Any]":
        """Send what each file has, return the sums."""
        stopped = None
        self._bound()
        try:
            invalid = self._compile()
            if invalid is not None:
                return invalid
            self._search()
        except TimeUp:
            stopped = "time"
        except MemoryError:
            stopped = "memory"
        return {
            "files": self.files,
            "matching_files": self.matching_files,
            "matching_lines": self.matching_lines,
            "unreadable": self.unreadable,
            "cut_lines": self.cut_lines,
            "stopped": stopped,
            "at": self.path,
        }

    def _bound(self) -> None:
        """Bound time and memory.

        Matching looks for signals from time to time, so this ends nearly all searches, and they can tell where they
        were; the supervisor kills the others.
        """
        import resource

        signal.signal(signal.SIGALRM, self._on_alarm)
        signal.setitimer(signal.ITIMER_REAL, self.request["timeout"])
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        if soft == resource.RLIM_INFINITY or soft > SEARCH_MEMORY:
            resource.setrlimit(resource.RLIMIT_AS, (SEARCH_MEMORY, hard))

    def _on_alarm(self, _number: int, _frame: object) -> None:
        self.late = True
        if self.matching:  # else half a frame may have been sent
            raise TimeUp()

    def _compile(self) -> "dict[str, Any] | None":
        """Understand the request; returns what is wrong with its pattern."""
        import re
        import warnings

        warnings.simplefilter("ignore")  # on a pattern's style
        pattern, is_regex = self.request["pattern"], self.request["regex"]
        flags = 0 if self.request["case_sensitive"] else re.IGNORECASE
        self.matching = True
        try:
            self.find = re.compile(pattern if is_regex else re.escape(pattern), flags).search
        except re.error as error:
            return {"invalid": error.msg, "position": error.pos}
        except (OverflowError, RecursionError, ValueError) as error:
            return {"invalid": str(error), "position": None}
        finally:
            self.matching = False
        needle = _required(pattern) if is_regex else pattern
        self.folded = bool(flags)
        try:  # other characters may be other bytes in another encoding
            self.needle = (needle.lower() if self.folded else needle).encode("ascii")
        except UnicodeEncodeError:
            self.needle = b""
        self.globs = _any_of(self.request["globs"])
        self.outside = PathPatterns(self.request["ignored"]["outside"])
        self.ignore_files = {name: PathPatterns(lines) for name, lines in self.request["ignored"]["files"].items()}
        return None

    # -- which files

    def _search(self) -> None:
        worker = self.worker
        top = worker._real(self.request)
        if not worker._inside(top):
            raise Outside()
        todo = [top]
        while todo:
            real = todo.pop()
            try:
                directory = worker._open_directory(real, create=False)
            except OSError as error:
                if real != top:  # gone since, or not readable
                    self.unreadable += 1
                    continue
                if not isinstance(error, NotADirectoryError):
                    raise
                directory = worker._open_directory(os.path.dirname(top), create=False)
                try:
                    self._file(directory, os.path.basename(top), to_text(os.path.relpath(top, worker.root)))
                finally:
                    os.close(directory)
                return
            try:
                prefix = b"" if real == worker.root else os.path.relpath(real, worker.root) + b"/"
                self.prefix = prefix if real == top else self.prefix
                below = self._directory(directory, prefix)
            finally:
                os.close(directory)
            todo.extend(os.path.join(real, name) for name in reversed(below))

    def _directory(self, directory: int, prefix: bytes) -> "list[bytes]":
        """Search the files of an open directory; returns the names of the directories in it."""
        rules = self._rules(to_text(prefix))
        below = []
        for name, is_dir, is_file in _kinds(directory):
            if self.late:
                raise TimeUp()
            path = to_text(prefix + name)
            if (is_dir or is_file) and not _ignored(path, is_dir, rules):
                if is_dir:
                    if len(path) < LONGEST_PATH:
                        below.append(name)
                elif self._wanted(path):
                    self._file(directory, name, path)
        return below

    def _rules(self, prefix: str) -> "list[tuple[int, PathPatterns]]":
        """What decides on the entries of a directory, and where in their paths it begins to look."""
        rules = [(0, self.outside)]
        while True:
            patterns = self.ignore_files.get(prefix[:-1])
            if patterns is not None:
                rules.append((len(prefix), patterns))
            if not prefix:
                return rules
            prefix = prefix[: prefix.rfind("/", 0, -1) + 1]

    def _wanted(self, path: str) -> bool:
        """Whether the globs let a file through, seen from the root or from where the search begins."""
        name = path.replace("\n", "\r")
        self.matching = True
        found = self.globs.search(name) or self.globs.search(name[len(to_text(self.prefix)) :])
        self.matching = False
        return (found is None) if self.request["exclude"] else (found is not None)

    # -- what is in them

    def _file(self, directory: int, name: bytes, path: str) -> None:
        self.path = path
        try:
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
            descriptor = os.open(name, flags, dir_fd=directory)
        except OSError:  # gone since, or not readable
            self.unreadable += 1
            return
        try:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode):
                self.files += 1
                self._lines(descriptor, status.st_size)
        except OSError:
            self.unreadable += 1
        finally:
            os.close(descriptor)

    def _lines(self, descriptor: int, size: int) -> None:
        """Search a file, send what it has."""
        told = []  # type: list[list[Any]]
        count, number, last, until = 0, 1, 0, 0
        above = []  # type: list[str]
        binary = None  # type: bool | None
        try:
            for piece in self._pieces(descriptor, size):
                if binary is None:
                    binary = b"\0" in piece[:8192]
                if self._cannot_match(piece) and not (self.context and size >= PIECE):
                    number += piece.count(b"\n")
                    continue
                lines, plain = _decoded(piece, number == 1)
                self.matching = True
                hits = [index for index, found in enumerate(map(self.find, plain)) if found]
                self.matching = False
                count += len(hits)
                if hits and binary:
                    return
                chosen = hits[: self.lines_left] if self.characters_left > 0 else []
                self.lines_left -= len(chosen)
                if chosen or until >= number:
                    numbers = set(range(number, min(until + 1, number + len(lines))))
                    for index in chosen:
                        low = max(number - len(above), number + index - self.context)
                        numbers.update(range(low, min(number + index + self.context + 1, number + len(lines))))
                        until = number + index + self.context
                    marked = set(hits)
                    for one in sorted(numbers):
                        if one > last and self.characters_left > 0:
                            last = one
                            index = one - number
                            if index < 0:
                                told.append(self._shown(one, above[index], None))
                            else:
                                told.append(self._shown(one, lines[index], plain[index] if index in marked else None))
                number += len(lines)
                above = (above + lines)[-self.context :] if self.context else []
        finally:
            self.matching = False
            if count:
                self.matching_files += 1
                self.matching_lines += 0 if binary else count
                if self.matching_files <= TOLD_FILES:
                    record = {"path": self.path, "binary": binary, "count": count, "lines": told}
                    self.worker._send({"id": self.request["id"], "t": "data"}, _encode(record).encode("ascii"))

    def _cannot_match(self, piece: bytes) -> bool:
        """Whether what every matching line holds is nowhere; much faster than to look at each line."""
        if self.folded and self.needle:
            try:
                piece.decode("ascii")
            except UnicodeDecodeError:  # some other characters become ASCII when case is ignored
                return False
            piece = piece.lower()
        return self.needle not in piece

    def _pieces(self, descriptor: int, size: int) -> "Iterator[bytes]":
        """The file in pieces that end where lines end; of a very long line the rest is left out."""
        if size < PIECE:
            data = os.read(descriptor, size + 1)
            if len(data) <= size:
                if data:
                    yield data
                return
        else:
            data = os.read(descriptor, PIECE)
        held = []  # type: list[bytes]
        length = 0
        while data:
            if self.late:
                raise TimeUp()
            end = data.rfind(b"\n") + 1
            if length > LONGEST:
                held.append(data[data.index(b"\n") : end] if end else b"")
            else:
                held.append(data[:end] if end else data)
                self.cut_lines += not end and length + len(data) > LONGEST
            length += len(data)
            if end:
                yield b"".join(held)
                held = [data[end:]]
                length = len(data) - end
            data = os.read(descriptor, PIECE)
        if held and held != [b""]:
            yield b"".join(held)

    def _shown(self, number: int, line: str, plain: "str | None") -> "list[Any]":
        """A line for the host: number, whether it matches, text, how many characters are left out before and behind."""
        width = self.request["width"]
        begin = 0
        if plain is not None and len(line) > width:
            self.matching = True
            found = self.find(plain)
            self.matching = False
            if found is not None:
                begin = max(0, min(found.start() - width // 3, len(line) - width))
        text = line[begin : begin + width]
        self.characters_left -= len(text) + 8
        return [number, plain is not None, text, begin, len(line) - begin - len(text)]


def _any_of(patterns: "list[str]") -> "Any":
    """One regular expression for several; without the groups' names, of which no two can be the same."""
    import re

    return re.compile("|".join(re.sub(r"\(\?P<\w+>", "(?:", pattern) for pattern in patterns) if patterns else "(?!)")


def _required(pattern: str) -> str:
    """A text that is in whatever a regular expression matches, as long as can be told easily; may be empty."""
    import re

    if re.search(r"\(\?[a-zA-OQ-Z#-]", pattern):  # flags, which may change what characters mean, and comments
        return ""
    runs, run, depth = [], [], 0  # type: list[str], list[str], int
    for match in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.", pattern, re.DOTALL):
        token = match.group()
        if token == "|" and depth == 0:
            return ""
        if token[0] == "\\" and token[1:] in tuple("xuUN0123456789"):  # what follows is part of the escape
            return ""
        depth += (token == "(") - (token == ")")
        escaped = len(token) == 2 and token[0] == "\\" and not token[1].isalnum()
        if depth == 0 and (escaped or (len(token) == 1 and token not in "\\.^$*+?{}()")):
            run.append(token[-1])
            continue
        if token[0] in "*?{" and run:  # the character before may not be there at all
            run.pop()
        runs.append("".join(run))
        run = []
    return max([*runs, "".join(run)], key=len)


ESCAPED = {0xDC00 + byte: byte for byte in range(0x80, 0x100)}


def _decoded(data: bytes, first: bool) -> "tuple[list[str], list[str]]":
    """Lines without their ends: as text that can be made bytes again, and as text to search.

    In the latter, bytes that are no UTF-8 count as the Latin-1 characters that they most likely are.
    """
    try:
        text = data.decode("utf-8")
        valid = True
    except UnicodeDecodeError:
        text = data.decode("utf-8", "surrogateescape")
        valid = False
    if first and text.startswith("\ufeff"):
        text = text[1:]
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines, lines if valid else [line.translate(ESCAPED) for line in lines]


def _ignored(path: str, is_dir: bool, rules: "list[tuple[int, PathPatterns]]") -> bool:
    name = path.replace("\n", "\r") + ("/" if is_dir else "")
    for begin, patterns in rules:
        verdict = patterns.match(name[begin:])
        if verdict is not None:
            return verdict
    return False


def _kinds(directory: int) -> "list[tuple[bytes, bool, bool]]":
    """The entries of an open directory by name, whether each is a directory and whether it is a file."""
    if os.scandir in os.supports_fd:  # since Python 3.7
        with os.scandir(directory) as scan:
            return sorted(
                (os.fsencode(entry.name), entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
                for entry in scan
            )
    kinds = []
    for name in _names(directory):
        with contextlib.suppress(OSError):  # gone since
            mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
            kinds.append((name, stat.S_ISDIR(mode), stat.S_ISREG(mode)))
    return sorted(kinds)


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

    def environment_with(self, changes: "dict[str, str | None] | None") -> "dict[bytes, bytes]":
        """The variables of a command."""
        environment = dict(self.environment)
        for name, value in (changes or {}).items():
            if value is None:
                environment.pop(to_bytes(name), None)
            else:
                environment[to_bytes(name)] = to_bytes(value)
        return environment

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
        self.late = False  # it was killed for its deadline
        self.began = 0.0
        self.run = False  # serves `run`, which has one reply
        self.kind = ""  # of programs that its zygote is for
        self.ready = False
        self.asked = None  # type: dict[str, Any] | None
        self.wish = None  # type: dict[str, Any] | None


SAFE_FLAGS = frozenset(("-B", "-b", "-E", "-I", "-O", "-P", "-q", "-s", "-S", "-u", "-W", "-X"))
SAFE_OPTIONS = frozenset(("dev", "utf8", "utf8=0", "utf8=1"))  # of -X
UNSAFE_VARIABLES = (
    b"PYTHONVERBOSE PYTHONPROFILEIMPORTTIME PYTHONTRACEMALLOC PYTHONINSPECT PYTHONDEBUG PYTHONDUMPREFS PYTHONSTARTUP"
    b" PYTHONPERFSUPPORT LD_PRELOAD LD_AUDIT COVERAGE_PROCESS_START COV_CORE_SOURCE COV_CORE_CONFIG"
).split()


def warm_kind(header: "dict[str, Any]", settings: "Settings") -> str:
    """What programs must agree in to be forked from one zygote; empty for those that are always started cold.

    Its flags and variables must be ones that do not act while modules are loaded. Where the seed of hashes is drawn
    at each start, a fork would have that of its zygote.
    """
    argv = header.get("argv") or []
    if not header.get("warm") or "-c" not in argv or header.get("follow"):
        return ""
    if header.get("stdin") and not header.get("pty"):
        return ""
    if not header.get("channel") or "code" not in (header.get("blobs") or {}):
        return ""
    flags = list(argv[1 : argv.index("-c")])
    for before, flag in zip(["", *flags], flags):  # noqa: B905 (Python 3.6)
        if not (before == "-W" or (flag in SAFE_OPTIONS if before == "-X" else flag in SAFE_FLAGS)):
            return ""
    environment = settings.environment_with(header.get("env"))
    seed = b"" if {"-E", "-I"} & set(flags) else environment.get(b"PYTHONHASHSEED", b"")
    if not seed.isdigit() or any(environment.get(name) for name in UNSAFE_VARIABLES):
        return ""
    streams = [bool(header.get(name)) for name in ("pty", "stdin")]
    text = "".join(argv[len(flags) + 2 : len(flags) + 3])
    code = [text, header["blobs"]["code"]] if READY in text else []  # part of it will have run
    return json.dumps([argv[0], flags, header.get("env"), streams, header["warm"]["imports"], code])


def memory_is_short() -> bool:
    """Whether the machine, or the control group where one can be seen, has hardly any memory left."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        with open("/proc/meminfo", "rb") as file:
            sizes = {line.split()[0]: int(line.split()[1]) for line in file.read().splitlines()[:8]}
        if sizes[b"MemAvailable:"] < sizes[b"MemTotal:"] // 20:
            return True
    with contextlib.suppress(OSError, ValueError):
        with open("/sys/fs/cgroup/memory.max", "rb") as file:
            most = int(file.read())
        with open("/sys/fs/cgroup/memory.current", "rb") as file:
            return int(file.read()) > most * 9 // 10
    return False


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
        self.zygotes = {}  # type: dict[str, Child]
        self.preparations = collections.Counter()  # type: collections.Counter[str]
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
            child = self._warm_keeper(header) or (self.spares.pop() if self.spares else self._fork_keeper())
            child.deadline = None
            child.began = time.monotonic()
            child.run = op == "run"
            child.asked = header if header.get("warm") else None
            child.wish = None if child.ready else child.asked
            child.what = "the keeper of " + (header.get("shell") or " ".join(header.get("argv", ())))[:200]
            if header.get("timeout") is not None:
                child.deadline = child.began + header["timeout"] + KEEPER_GRACE
            child.request = header["id"]
            self._route(header["id"], child)
            self._send(child, frame)
        elif op == "grep":  # by a process of its own, since it may have to be killed
            child = self._fork_worker()
            child.what = "the search"
            child.deadline = time.monotonic() + header["timeout"] + KEEPER_GRACE
            child.request = header["id"]
            self._route(header["id"], child)
            self._send(child, frame)
        elif op == "start":
            self._start(header)
        elif op == "blob":
            assert self.settings is not None
            self.settings.blobs[header["digest"]] = body
            for child in self.spares:  # they were forked without it
                self._forget(child)
            del self.spares[:]
            for child in self.zygotes.values():
                self._send(child, frame)
            self.host.send(pack({"id": header["id"], "t": "done"}))
        elif op == "ping":
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

    # -- warm starts

    def _warm_keeper(self, header: "dict[str, Any]") -> "Child | None":
        """The keeper whose zygote a program may be forked from, if it is ready and free."""
        assert self.settings is not None
        if self.zygotes and memory_is_short():
            self._drop_zygotes()
        child = self.zygotes.get(warm_kind(header, self.settings))
        return child if child is not None and child.ready and not child.requests else None

    def _prepare_zygote(self, header: "dict[str, Any]") -> None:
        """Prepare for programs like one that was just started cold."""
        assert self.settings is not None
        kind = warm_kind(header, self.settings)
        if not kind or kind in self.zygotes or self.preparations[kind] >= PREPARATIONS or memory_is_short():
            return
        idle = [name for name, child in self.zygotes.items() if not child.requests]
        if len(self.zygotes) >= ZYGOTES:
            if not idle:
                return
            self._forget(self.zygotes[idle[0]])
        self.preparations[kind] += 1
        child = self.zygotes[kind] = self._fork_keeper()
        child.kind = kind
        child.deadline = time.monotonic() + PREPARE_PATIENCE
        self._send(child, pack(dict(header, op="zygote")))

    def _on_zygote(self, child: Child, state: str) -> None:
        """A keeper tells of its zygote: it is ready, or gone."""
        if state == "ready":
            child.ready = True
            child.deadline = time.monotonic() + IDLE
            return
        if state == "failed":
            self.preparations[child.kind] = PREPARATIONS
        if self.zygotes.get(child.kind) is child:
            del self.zygotes[child.kind]
        child.kind, child.ready = "", False
        if not child.requests:
            self._forget(child)

    def _drop_zygotes(self) -> None:
        for child in list(self.zygotes.values()):
            if not child.requests:
                self._forget(child)

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
        if clean and child.ready:
            self.zygotes[child.kind] = self.zygotes.pop(child.kind)  # the last to be dropped for another
            child.deadline = time.monotonic() + IDLE
        elif clean and len(self.spares) < SPARES and child.blobs == len(self.settings.blobs):
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
            done = wish = None  # type: dict[str, Any] | None
            for header, _, frame in child.link.frames():
                if header["t"] == "zygote":
                    self._on_zygote(child, header["state"])
                    if not child.requests and not child.ready:
                        return
                    child.wish = child.asked if child.requests else None
                    continue
                request = header["id"]
                if header["t"] in FINAL:
                    child.requests.discard(request)
                    self.routes.pop(request, None)
                    if request == child.request:
                        done = header
                self.host.send(frame)
                if child.wish is not None and (done or header["t"] == child.wish["warm"]["after"]):
                    wish, child.wish = child.wish, None
            if wish is not None:
                self._prepare_zygote(wish)
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
        if self.zygotes.get(child.kind) is child:
            del self.zygotes[child.kind]
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
                self.failures.append(self._failure(child, request))
            self.sweep_until = time.monotonic() + KILL_PATIENCE
        if child is self.worker:
            self.worker = None
            self.active = None
            self._feed_worker()

    @staticmethod
    def _failure(child: Child, request: int) -> bytes:
        """What is told of a request whose child died."""
        if child.late and child.run and request == child.request:  # the command has timed out, whoever ended it
            reply = {"id": request, "t": "done", "clean": False, "status": -signal.SIGKILL, "timed_out": True}
            return pack(dict(reply, seconds=time.monotonic() - child.began), LATE)
        why = "left no processor time to end it" if child.late else "the command killed it, or memory ran out"
        text = "%s died (%s)" % (child.what, why)
        return pack({"id": request, "t": "error", "kind": "lost", "text": text})

    def _look_after_children(self) -> None:
        now = time.monotonic()
        for child in [c for c in self.children.values() if c.deadline is not None and now >= c.deadline]:
            child.deadline = None
            if child.requests:
                child.late = True
                signal_each([child.process], signal.SIGKILL)
            elif child.kind:
                self._forget(child)
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
