"""The debugger inside the debugged process.

One file, standard library only, Python 3.6 and newer. The host starts it with `python -c` and a descriptor: over that
descriptor, never over the program's own streams, go JSON messages (4 bytes big-endian length, then the message). The
first message of the host is the configuration: what to run, the breakpoints. From then on the program sends one message
at each prompt, and the host answers with a command.

- `Debugger` is `pdb.Pdb` with other ears and another mouth: commands and what they print stay pdb's own.
- `Backend` finds breakpoints while the program runs freely; it calls `Debugger.reached(frame)`. Others may join it.
- `Reporter` describes where the program stopped.
- `Program` and its subclasses run the target as `python target` would.
"""

import ast
import atexit
import bdb
import codeop
import contextlib
import faulthandler
import fcntl
import functools
import importlib.machinery
import importlib.util
import io
import json
import linecache
import os
import pdb
import re
import reprlib
import resource
import runpy
import signal
import struct
import sys
import threading
import time
import traceback
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType, TracebackType
    from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Set, Tuple

    Json = Dict[str, Any]
    Tracer = Callable[[FrameType, str, Any], Any]

OURS = __name__
"""File name that this module's own code objects have: it is executed from a descriptor."""

LOADED_AT_START: "FrozenSet[str]" = globals().get("LOADED_AT_START", frozenset())
"""Modules that the interpreter had loaded before anything of ours."""

OUTPUT_LIMIT = 64 * 1024
SOURCE_LINES = 4
SOURCE_WIDTH = 200
MOST_LOCALS = 30
MOST_FRAMES = 8
MOST_THREADS = 8
MOST_EXCEPTIONS = 5
MOST_FILES_SEARCHED = 20000
REPR_SECONDS = 0.2
MESSAGE_LENGTH = 400

# Bound once, so that a program that replaces them (as tests do with mocks) does not replace ours.
_getpid = os.getpid
_get_ident = threading.get_ident
_read = os.read
_write = os.write
_exit = os._exit
_settrace = sys.settrace
_dumps = json.dumps
_loads = json.loads
_setitimer = signal.setitimer
_signal = signal.signal
_monotonic = time.monotonic
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def _high_copy(descriptor: int) -> int:
    """Copy a descriptor out of the way of programs that close or reuse low numbers; children do not inherit it."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    highest = 16384 if limit == resource.RLIM_INFINITY else min(limit, 16384)
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(highest - 8, 3))


class Channel:
    """Messages to and from the host."""

    def __init__(self, descriptor: int) -> None:
        """Take over a descriptor."""
        self.descriptor = _high_copy(descriptor)
        os.close(descriptor)

    def send(self, message: "Json") -> None:
        """Send one message; a host that is gone ends the program."""
        data = _dumps(message).encode()
        view = memoryview(struct.pack(">I", len(data)) + data)
        try:
            while view:
                view = view[_write(self.descriptor, view) :]
        except OSError:
            _exit(98)

    def receive(self) -> "Json":
        """Wait for the next message; a host that is gone ends the program."""
        (size,) = struct.unpack(">I", self._take(4))
        message: "Json" = _loads(self._take(size).decode())
        return message

    def _take(self, size: int) -> bytes:
        chunks = []
        while size:
            try:
                chunk = _read(self.descriptor, size)
            except OSError:
                chunk = b""
            if not chunk:
                _exit(98)
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)


class Output(io.TextIOBase):
    """What pdb prints until the next prompt: head and tail of it, when it is long."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self) -> None:
        """Start empty."""
        self._head: "List[str]" = []
        self._room = OUTPUT_LIMIT // 2
        self._tail = ""
        self._cut = 0

    def writable(self) -> bool:
        """Say that it can be written."""
        return True

    def write(self, text: str) -> int:
        """Keep the text, or count what is left out of the middle."""
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not " + type(text).__name__)
        kept = text[: self._room]
        if kept:
            self._head.append(kept)
            self._room -= len(kept)
        if len(kept) < len(text):
            self._tail += text[len(kept) :]
            if len(self._tail) > OUTPUT_LIMIT:
                self._shorten()
        return len(text)

    def _shorten(self) -> None:
        surplus = len(self._tail) - OUTPUT_LIMIT // 2
        if surplus > 0:
            self._cut += surplus
            self._tail = self._tail[surplus:]

    def take(self) -> "Tuple[str, int]":
        """Hand out the text, and how many characters were left out before its last half; start empty again."""
        self._shorten()
        head, tail, cut = "".join(self._head), self._tail, self._cut
        self.__init__()  # type: ignore[misc]
        if cut:
            head += "\n[... {} characters left out ...]\n".format(cut)
        return head + tail, cut


class Input(io.TextIOBase):
    """Where pdb reads its commands."""

    def __init__(self, next_line: "Callable[[], str]") -> None:
        """Read lines from a function."""
        self._next_line = next_line

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readline(self, size: "Optional[int]" = -1) -> str:  # type: ignore[override]
        """The next line, empty at the end."""
        return self._next_line()


class OutOfTime(BaseException):
    """A repr took too long."""


class TimeLimit:
    """Raises OutOfTime in the block when it takes too long; only in the main thread, where signals arrive.

    The program's own timer and handler are as they were after it.
    """

    def __init__(self, seconds: float) -> None:
        """Prepare a limit in seconds of wall-clock time."""
        self.seconds = seconds
        self.expired = False
        self.active = False

    def __enter__(self) -> "TimeLimit":
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGALRM) is not None:
            self.active = True
            self._handler = _signal(signal.SIGALRM, self._ring)
            self._started = _monotonic()
            # Rings again and again: code under it may swallow the first exception.
            self._timer = _setitimer(signal.ITIMER_REAL, self.seconds, 0.05)
        return self

    def _ring(self, signum: int, frame: "Optional[FrameType]") -> None:
        if self.active:
            self.expired = True
            raise OutOfTime

    def stop(self) -> None:
        """Ring no more."""
        if self.active:
            self.active = False
            _setitimer(signal.ITIMER_REAL, 0)
            _signal(signal.SIGALRM, self._handler)
            remaining, interval = self._timer
            if remaining:
                remaining = max(remaining - (_monotonic() - self._started), 0.000001)
                _setitimer(signal.ITIMER_REAL, remaining, interval)

    def __exit__(self, *error: object) -> None:
        self.stop()


class BoundedRepr(reprlib.Repr):
    """A repr that is short; only containers and numbers are looked into where the time cannot be limited."""

    def __init__(self) -> None:
        """Set the bounds."""
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = self.maxarray = 8
        self.maxdict = 8
        self.maxstring = self.maxother = self.maxlong = 160
        self.by_type = False

    def repr_instance(self, x: "Any", level: int) -> str:
        """Any other object."""
        kind = type(x)
        if self.by_type and kind not in (bool, float, complex, type(None)):
            return "<{}>".format(kind.__name__)
        return self._cut(repr(x))

    def repr_bytes(self, x: bytes, level: int) -> str:
        """Bytes, without a copy of all of them."""
        return self._cut(repr(x[: self.maxother]) + ("..." if len(x) > self.maxother else ""))

    repr_bytearray = repr_bytes

    def repr_int(self, x: int, level: int) -> str:
        """An integer, without the digits of a huge one."""
        if x.bit_length() > 2048:
            return "<int of {} bits>".format(x.bit_length())
        return self._cut(repr(x))

    def repr_module(self, x: "types.ModuleType", level: int) -> str:
        """A module without its path."""
        return "<module {!r}>".format(x.__name__)

    def repr_function(self, x: "types.FunctionType", level: int) -> str:
        """A function."""
        return "<function {}>".format(x.__qualname__)

    def _cut(self, text: str) -> str:
        if len(text) <= self.maxother:
            return text
        half = (self.maxother - 3) // 2
        return text[:half] + "..." + text[len(text) - half :]


class Reporter:
    """Describes where the program stopped, in JSON types."""

    def __init__(self, root: str, canonic: "Callable[[str], str]") -> None:
        """Describe a program whose repository lies at `root`."""
        self.root = root.rstrip("/") + "/"
        self.canonic = canonic
        self._seen: "Dict[int, Dict[str, str]]" = {}
        self._repr = BoundedRepr()

    def left(self, frame: "FrameType") -> None:
        """Forget the locals of a frame that returned: its identity may be another frame's soon."""
        self._seen.pop(id(frame), None)

    def keep(self, frames: "Set[int]") -> None:
        """Forget the locals of all frames but some."""
        for key in list(self._seen):
            if key not in frames:
                self._seen.pop(key, None)

    def path(self, filename: str) -> str:
        """A file as the host shows it: relative to the repository when it lies inside."""
        name = self.canonic(filename)
        return name[len(self.root) :] if name.startswith(self.root) else name

    def is_own(self, filename: str) -> bool:
        """Whether a file is the repository's own code."""
        name = self.canonic(filename)
        if not name.startswith(self.root):
            return False
        return "/site-packages/" not in name and not name.startswith(os.path.join(sys.prefix, "lib") + "/")

    def place(self, frame: "FrameType", line: int) -> "Json":
        """File, line and function."""
        return {"file": self.path(frame.f_code.co_filename), "line": line, "function": frame.f_code.co_name}

    def report(
        self,
        stack: "List[Tuple[FrameType, int]]",
        index: int,
        error: "Optional[BaseException]",
        value: "Tuple[Any, ...]",
    ) -> "Json":
        """Describe a stop.

        Args:
            stack: frames and lines, outermost first
            index: the current frame
            error: the exception that stopped the program
            value: the value that is being returned, in a tuple; empty: none
        """
        frame, line = stack[index]
        result = self.place(frame, line)
        result["thread"] = threading.current_thread().name
        result["source"] = self._source(frame, line)
        result["stack"] = [self.place(f, n) for f, n in reversed(stack) if self.is_own(f.f_code.co_filename)]
        del result["stack"][MOST_FRAMES:]
        with TimeLimit(REPR_SECONDS) as limit:
            self._repr.by_type = not limit.active
            result["locals"] = self._locals(frame, limit)
            if value:
                result["return"] = self.describe(value[0], limit)
            if error is not None:
                result["exceptions"] = self._exceptions(error, limit)
        return result

    def threads(self) -> "List[Json]":
        """Where the other threads are, in the repository's own code."""
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        found = []
        for ident, top in _other_frames().items():
            frame: "Optional[FrameType]" = top
            while frame is not None and not self.is_own(frame.f_code.co_filename):
                frame = frame.f_back
            if frame is not None:
                found.append(dict(self.place(frame, frame.f_lineno), name=names.get(ident, "?")))
        return sorted(found, key=lambda one: str(one["name"]))[:MOST_THREADS]

    def _source(self, frame: "FrameType", line: int) -> "List[Tuple[int, str]]":
        lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
        first = max(1, line - SOURCE_LINES)
        window = lines[first - 1 : line + SOURCE_LINES]
        return [(number, text.rstrip("\r\n")[:SOURCE_WIDTH]) for number, text in enumerate(window, first)]

    def _locals(self, frame: "FrameType", limit: "TimeLimit") -> "Json":
        """Locals that changed since the last stop of this frame; of a module, its data only."""
        values = frame.f_locals
        module_level = values is frame.f_globals
        names = [
            name
            for name, value in list(values.items())
            if name.isidentifier()
            and not name.startswith("__")
            and not (module_level and isinstance(value, (types.ModuleType, types.FunctionType, type)))
        ]
        first = id(frame) not in self._seen
        before = self._seen.get(id(frame), {})
        now = {}
        for name in names[:MOST_LOCALS]:
            try:
                now[name] = self.describe(values[name], limit)
            except KeyError:
                continue
        self._seen[id(frame)] = now
        changed = {name: text for name, text in now.items() if before.get(name) != text}
        return {
            "first": first,
            "changed": changed,
            "unchanged": len(now) - len(changed),
            "omitted": max(0, len(names) - MOST_LOCALS),
        }

    def describe(self, value: "Any", limit: "TimeLimit") -> str:
        """A short repr without addresses, within the time that is left."""
        if limit.expired:
            return "<{}>".format(type(value).__name__)
        try:
            return _ADDRESS.sub("", self._repr.repr(value))
        except OutOfTime:
            limit.stop()
            return "<{}, whose repr took too long>".format(type(value).__name__)
        except Exception as error:
            return "<{}, whose repr raised {}>".format(type(value).__name__, type(error).__name__)

    def _exceptions(self, error: "BaseException", limit: "TimeLimit") -> "List[Json]":
        """The exception and what caused it, innermost cause last."""
        found: "List[Json]" = []
        seen: "Set[int]" = set()
        current: "Optional[BaseException]" = error
        while current is not None and id(current) not in seen and len(found) < MOST_EXCEPTIONS:
            seen.add(id(current))
            one: "Json" = {"type": type(current).__name__, "message": self._message(current, limit)}
            end = None
            step = current.__traceback__
            while step is not None:
                if step.tb_frame.f_code.co_filename != OURS:
                    end = step
                step = step.tb_next
            if end is not None:
                one.update(self.place(end.tb_frame, end.tb_lineno))
            found.append(one)
            if current.__cause__ is not None:
                current = current.__cause__
            else:
                current = None if current.__suppress_context__ else current.__context__
        return found

    def _message(self, error: "BaseException", limit: "TimeLimit") -> str:
        if limit.expired:
            return ""
        try:
            text = _ADDRESS.sub("", str(error))
        except OutOfTime:
            limit.stop()
            return ""
        except Exception:
            return ""
        return text if len(text) <= MESSAGE_LENGTH else text[:MESSAGE_LENGTH] + "..."


class Backend:
    """Finds breakpoints while the program runs freely, by `sys.settrace`.

    Code of files without a breakpoint is left after one look into a dictionary; code without a breakpoint line after
    two. In other code a line costs one function call.
    """

    def __init__(
        self,
        reached: "Callable[[FrameType, Tracer], Any]",
        left: "Callable[[FrameType], None]",
        canonic: "Callable[[str], str]",
    ) -> None:
        """Call `reached` at a line with a breakpoint, `left` when a function with one returns."""
        self._reached = reached
        self._left = left
        self._canonic = canonic
        self._breaks: "Dict[str, FrozenSet[int]]" = {}
        self._files: "Dict[str, Optional[FrozenSet[int]]]" = {OURS: None}
        self._codes: "Dict[int, Tuple[CodeType, Set[int], Tracer]]" = {}
        self.on_call = self._make_on_call()

    @property
    def idle(self) -> bool:
        """Whether there is nothing to find."""
        return not self._breaks

    def watch(self, breaks: "Dict[str, FrozenSet[int]]") -> None:
        """Find these lines, by canonical file name, from now on."""
        if breaks == self._breaks:
            return
        self._breaks = breaks
        self._files.clear()
        self._files[OURS] = None
        for code, lines, _ in list(self._codes.values()):
            found = self._lines_in(code, breaks.get(self._canonic(code.co_filename), frozenset()))
            lines.clear()
            lines.update(found)

    def tracer(self, frame: "FrameType") -> "Optional[Tracer]":
        """What must trace a frame that is already there; None: nothing."""
        return self.on_call(frame, "call", None)

    def install(self) -> None:
        """Trace the calling thread, as far as there is something to find.

        Threads other than the main one stay traced: they can be reached by no signal when that changes.
        """
        main = threading.current_thread() is threading.main_thread()
        _settrace(None if main and self.idle else self.on_call)

    def _make_on_call(self) -> "Callable[[FrameType, str, Any], Optional[Tracer]]":
        files, codes = self._files, self._codes

        def on_call(frame: "FrameType", event: str, arg: "Any") -> "Optional[Tracer]":
            code = frame.f_code
            try:
                breaks = files[code.co_filename]
            except KeyError:
                breaks = files[code.co_filename] = self._breaks.get(self._canonic(code.co_filename))
            if not breaks:
                return None
            known = codes.get(id(code))
            if known is None:
                known = self._learn(code, breaks)
            return known[2] if known[1] else None

        return on_call

    def _learn(self, code: "CodeType", breaks: "FrozenSet[int]") -> "Tuple[CodeType, Set[int], Tracer]":
        lines = set(self._lines_in(code, breaks))
        reached, left = self._reached, self._left
        forget = not code.co_flags & bdb.GENERATOR_AND_COROUTINE_FLAGS

        def on_line(frame: "FrameType", event: str, arg: "Any") -> "Any":
            if event == "line":
                if frame.f_lineno in lines:
                    return reached(frame, on_line)
            elif event == "return" and forget:
                left(frame)
            return on_line

        if len(self._codes) > 10000:  # the program makes code by the thousand
            self._codes.clear()
        known = self._codes[id(code)] = (code, lines, on_line)
        return known

    @staticmethod
    def _lines_in(code: "CodeType", breaks: "FrozenSet[int]") -> "FrozenSet[int]":
        """Lines of a code object to look at; all, when a breakpoint may be set on the function itself."""
        lines = frozenset(line for line in _lines_of(code))
        return lines if code.co_firstlineno in breaks else lines & breaks


def _other_frames() -> "Dict[int, FrameType]":
    """Where the other threads are; a frame that holds itself would keep the program's objects alive."""
    frames = sys._current_frames()
    frames.pop(_get_ident(), None)
    return frames


def _lines_of(code: "CodeType") -> "Iterator[int]":
    """Lines that a code object has instructions for."""
    if hasattr(code, "co_lines"):
        for _, _, line in code.co_lines():
            if line is not None:
                yield line
        return
    import dis

    for _, line in dis.findlinestarts(code):
        if line is not None:
            yield line


class Stop:
    """Why the program is stopped."""

    def __init__(
        self,
        reason: str,
        error: "Optional[BaseException]" = None,
        value: "Tuple[Any, ...]" = (),
        step: bool = False,
        **details: "Any",
    ) -> None:
        """Describe a stop.

        Args:
            reason: what the report calls it
            error: the exception that stopped the program
            value: the value that is being returned, in a tuple
            step: whether it stops only because the thread was stepping
            details: what else the report says
        """
        self.reason = reason
        self.error = error
        self.value = value
        self.step = step
        self.details = details


def _only_with_a_line(command: "Any") -> "Any":
    """A stepping command, refused before the first line of a program that has none of the user's own."""

    @functools.wraps(command)
    def checked(self: "Debugger", arg: str) -> "Any":
        if self.at_entry and not self.program.steppable:
            self.error("the program is pytest: set a breakpoint (b file:line), then continue (c)")
            return None
        return command(self, arg)

    return checked


class Debugger(pdb.Pdb):
    """pdb over a channel."""

    def __init__(self, channel: "Channel", root: str) -> None:
        """Debug the calling process; its repository lies at `root`."""
        self.output = Output()
        readline = sys.modules.get("readline", self)
        sys.modules["readline"] = None  # type: ignore[assignment]
        try:
            super().__init__(
                stdin=Input(self._next_line),  # type: ignore[arg-type]
                stdout=self.output,  # type: ignore[arg-type]
                nosigint=True,
                readrc=False,
            )
        finally:
            if readline is self:
                del sys.modules["readline"]
            else:
                sys.modules["readline"] = readline  # type: ignore[assignment]
        self.enterframe: "Optional[FrameType]" = None
        self.channel = channel
        self.root = os.path.realpath(root)
        self.reporter = Reporter(self.root, self.canonic)
        self.backend = Backend(self.reached, self.reporter.left, self.canonic)
        self.program: "Any" = None
        self.at_entry = False
        self.hello: "Json" = {}
        self._cwd = os.getcwd()
        self._pid = _getpid()
        self._turn = threading.Lock()
        self._busy: "Set[int]" = set()
        self._stepper: "Optional[int]" = None
        self._continuing = False
        self._awaited: "Optional[str]" = None
        self._hit: "Optional[bdb.Breakpoint]" = None
        self._note: "Optional[str]" = None
        self._conditions: "Dict[str, CodeType]" = {}
        self._stop: "Optional[Stop]" = None
        self._due = False
        self._failed = False
        self._executing = False
        self._interrupted = False
        self._feeding: "Optional[str]" = None
        self._rest: "List[str]" = []
        self._used = 0
        self._last_fed = ""
        self._nested = False
        self._sent_breakpoints: "Optional[Json]" = None
        self._status: "Any" = None
        self._uncaught: "Optional[Json]" = None

    # ---- conversation with the host

    @property
    def prompt(self) -> str:
        """No prompt is ever printed; a recursive debugger derives its own from the usual one."""
        return "(Pdb) " if self._nested else ""

    @prompt.setter
    def prompt(self, value: str) -> None:
        pass

    def _next_line(self) -> str:
        """What pdb reads next: a line that belongs to the command under way, else the host's next command."""
        if self._feeding is not None:
            return self._feed() + "\n" if self._rest else self._feeding
        self.channel.send(self._prompt_message())
        request = self.channel.receive()
        self._failed = self._interrupted = False
        self._rest = list(request.get("rest", ()))
        self._used = 0
        return str(request["cmd"]) + "\n"

    def _feed(self) -> str:
        self._used += 1
        self._last_fed = self._rest.pop(0)
        return self._last_fed

    def _prompt_message(self) -> "Json":
        out, _ = self.output.take()
        if self._nested and out.endswith("((Pdb)) "):
            out = out[: -len("((Pdb)) ")]
        message: "Json" = {"t": "prompt", "out": out, "failed": self._failed, "used": self._used}
        if self._interrupted:
            message["interrupted"] = True
        if self._due and self._stop is not None:
            self._due = False
            message["stop"] = self._report(self._stop)
        self._add_breakpoints(message)
        if self.hello:
            message["hello"], self.hello = self.hello, {}
        return message

    def _report(self, stop: "Stop") -> "Json":
        report: "Json" = {"reason": stop.reason}
        report.update((key, value) for key, value in stop.details.items() if value is not None)
        if self.at_entry and not self.program.steppable:
            return report
        report.update(self.reporter.report(self.stack, self.curindex, stop.error, stop.value))
        if stop.reason == "interrupt":
            report["threads"] = self.reporter.threads()
        return report

    def _add_breakpoints(self, message: "Json") -> None:
        state = self.dump_breakpoints()
        if state != self._sent_breakpoints:
            self._sent_breakpoints = message["breakpoints"] = state

    def converse(self, stop: "Stop", talk: "Callable[[], object]", wait: bool = True) -> bool:
        """Let one thread talk to the host while it is stopped.

        Args:
            stop: why it is stopped
            talk: runs pdb's command loop
            wait: for another thread's conversation to end; else nothing happens while there is one

        Returns:
            whether it talked
        """
        if _getpid() != self._pid or self.quitting or not self._turn.acquire(wait):
            return False
        try:
            if self.quitting or (stop.step and self._stepper != _get_ident()):
                return False  # the step was overtaken: meanwhile another thread stopped and was told to go on
            self._busy.add(_get_ident())
            self._stop, self._due = stop, True
            self._note = self._hit = None
            try:
                talk()
            except KeyboardInterrupt:
                self.message("--KeyboardInterrupt--")
        finally:
            self._stop, self._due = None, False
            self.curframe_locals = {}  # pdb would keep the program's objects alive
            self._busy.discard(_get_ident())
            self._turn.release()
        return True

    # ---- where pdb stops

    def reached(self, frame: "FrameType", tracer: "Tracer") -> "Any":
        """A backend is at a line with a breakpoint; stop if the breakpoint says so.

        Returns:
            what traces the frame from now on
        """
        if self.quitting or _get_ident() in self._busy or _getpid() != self._pid:
            return tracer
        if self.break_here(frame):
            self.user_line(frame)
            if self.quitting:
                raise bdb.BdbQuit
            if self._stepper == _get_ident():
                return self.trace_dispatch
        return tracer

    def trace_dispatch(self, frame: "FrameType", event: str, arg: "Any") -> "Any":
        """Trace the thread that steps; all others run freely."""
        ident = _get_ident()
        if self.quitting or ident in self._busy or frame.f_code.co_filename == OURS:
            return None
        if _getpid() != self._pid:
            _settrace(None)
            return None
        stepping = self._stepper == ident
        if event == "call" and (not stepping or (self.stopframe is not None and frame is not self.stopframe)):
            return self.backend.on_call(frame, event, arg)
        if not stepping:
            tracer = self.backend.tracer(frame)
            frame.f_trace = tracer
            return tracer and tracer(frame, event, arg)
        result = super().trace_dispatch(frame, event, arg)
        self.enterframe = None  # kept by newer versions of bdb for nothing that is used here
        if event == "return":
            self.reporter.left(frame)
        if self._stepper != ident:
            frame.f_trace = result = self.backend.tracer(frame)  # type: ignore[assignment]
        return result

    def user_call(self, frame: "FrameType", argument_list: "Any") -> None:
        """Stop at a call while stepping."""
        if self._awaited is None and self.converse(
            Stop("call", step=True), lambda: pdb.Pdb.user_call(self, frame, argument_list)
        ):
            self.resume(frame)

    def user_line(self, frame: "FrameType") -> None:
        """Stop at a line."""
        elsewhere = self._awaited is not None and self.canonic(frame.f_code.co_filename) != self._awaited
        if elsewhere and not self._hit and not self.break_here(frame):
            return
        hit, note = self._hit, self._note
        self._awaited = None
        stop = Stop("breakpoint" if hit else "step", step=not hit, breakpoint=hit and hit.number, note=note)

        def talk() -> None:
            try:
                pdb.Pdb.user_line(self, frame)
            except KeyboardInterrupt:  # in the commands of the breakpoint
                self.message("--KeyboardInterrupt--")
                self.interaction(frame, None)

        if self.converse(stop, talk):
            self.resume(frame)

    def user_return(self, frame: "FrameType", return_value: "Any") -> None:
        """Stop at a return."""
        if self._awaited is None:
            stop = Stop("return", value=(return_value,), step=True)
            if self.converse(stop, lambda: pdb.Pdb.user_return(self, frame, return_value)):
                self.resume(frame)

    def user_exception(self, frame: "FrameType", exc_info: "Any") -> None:
        """Stop at an exception while stepping."""
        if self._awaited is None:
            error = exc_info[1] if isinstance(exc_info[1], BaseException) else None
            stop = Stop("exception", error=error, step=True)
            if self.converse(stop, lambda: pdb.Pdb.user_exception(self, frame, exc_info)):
                self.resume(frame)

    def stop_now(self, frame: "FrameType", stop: "Stop", wait: bool = True) -> None:
        """Stop in a frame that is in the middle of a line."""
        tracer = sys.gettrace()
        _settrace(None)
        self.enterframe = frame
        if not self.converse(stop, lambda: self.interaction(frame, None), wait):
            _settrace(tracer)
        elif self.quitting:
            raise bdb.BdbQuit
        else:
            self.resume(frame)

    def post_mortem(self, error: "BaseException", stop: "Stop", then: "Optional[FrameType]") -> None:
        """Stop at an exception that is over; whatever the commands say, the program goes on freely after it."""
        _settrace(None)
        held = error if sys.version_info >= (3, 13) else error.__traceback__
        if error.__traceback__ is not None:
            stop.error = error
            self.converse(stop, lambda: self.interaction(None, held))  # type: ignore[arg-type]
        if not self.quitting:
            self.set_continue()
            self.resume(then)

    def resume(self, frame: "Optional[FrameType]") -> None:
        """Arm what the last command asked for, in the calling thread."""
        if self.quitting or _getpid() != self._pid:
            return
        self.backend.watch({name: frozenset(lines) for name, lines in self.breaks.items()})
        alive = set()
        if self._continuing:
            self._stepper = None
            self.backend.install()
        else:
            self._stepper = _get_ident()
            _settrace(self.trace_dispatch)
        while frame is not None:
            if frame.f_code.co_filename != OURS:
                tracer = self.backend.tracer(frame) if self._continuing else self.trace_dispatch
                frame.f_trace = tracer
                if tracer is not None:
                    alive.add(id(frame))
            frame = frame.f_back
        # Without a tracer nobody tells when a frame is gone.
        self.reporter.keep(alive)
        if not self.backend.idle:
            self._reach_other_threads()

    def _reach_other_threads(self) -> None:
        """Trace frames that other threads are in, for breakpoints set since they were called."""
        main = threading.main_thread().ident
        for ident, top in _other_frames().items():
            frame: "Optional[FrameType]" = top
            while frame is not None:
                if frame.f_trace is None:
                    tracer = self.backend.tracer(frame)
                    if tracer is not None:
                        frame.f_trace = tracer
                frame = frame.f_back
            if ident == main:
                signal.pthread_kill(ident, ARM_SIGNAL)

    def arm(self, signum: int, frame: "Optional[FrameType]") -> None:
        """Handle the signal that makes the main thread trace itself."""
        if _getpid() == self._pid and sys.gettrace() is None and not self._busy & {_get_ident()}:
            self.backend.install()

    def interrupt(self, signum: int, frame: "Optional[FrameType]") -> None:
        """Handle the host's signal: stop at once in the very frame that runs, or end the command that runs."""
        if _getpid() != self._pid or self.quitting:
            return
        if self._busy:
            self._interrupt_command()
            return
        while frame is not None and frame.f_code.co_filename in (OURS, bdb.__file__, pdb.__file__):
            frame = frame.f_back
        if frame is not None:
            self.stop_now(frame, Stop("interrupt"), wait=False)

    def _interrupt_command(self) -> None:
        if not self._executing:
            return
        self._failed = self._interrupted = True
        if _get_ident() in self._busy:
            raise KeyboardInterrupt
        try:
            import ctypes

            for ident in self._busy:
                raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
                raise_in(ctypes.c_ulong(ident), ctypes.py_object(KeyboardInterrupt))
        except (ImportError, AttributeError):
            pass

    def hook(self, *args: "Any", **kwargs: "Any") -> None:
        """Stop where the program calls `breakpoint()` or `pdb.set_trace()`."""
        frame = sys._getframe(1)
        if _getpid() == self._pid and not self.quitting and _get_ident() not in self._busy:
            if kwargs.get("header") is not None:
                self.message(kwargs["header"])
            self.stop_now(frame, Stop("breakpoint"))

    def in_child(self) -> None:
        """Leave a forked child alone: it has nothing to do with the host."""
        _settrace(None)
        threading.settrace(None)
        for number in (INTERRUPT_SIGNAL, ARM_SIGNAL):
            _signal(number, signal.SIG_DFL)
        with contextlib.suppress(OSError):
            os.close(self.channel.descriptor)

    # ---- what pdb decides

    def canonic(self, filename: str) -> str:
        """The real path, so that a file is one file whatever links lead to it."""
        name = self.fncache.get(filename)
        if name is None:
            if filename[:1] == "<" and filename[-1:] == ">":
                name = filename
            else:
                name = os.path.realpath(os.path.join(self._cwd, filename))
            self.fncache[filename] = name
        return name

    def get_stack(
        self, f: "Optional[FrameType]", t: "Optional[TracebackType]"
    ) -> "Tuple[List[Tuple[FrameType, int]], int]":
        """The stack without our own frames; in post-mortem the current one is the last that is not hidden."""
        stack, index = super().get_stack(f, t)
        before = sum(1 for frame, _ in stack[: index + 1] if frame.f_code.co_filename == OURS)
        shown = [entry for entry in stack if entry[0].f_code.co_filename != OURS]
        if not shown:
            return stack, index
        index = max(0, min(index - before, len(shown) - 1))
        if f is None:
            index = len(shown) - 1
            while index and _is_hidden(shown[index][0]):
                index -= 1
        return shown, index

    def set_continue(self) -> None:
        """Run freely from here; `resume` arms the breakpoints."""
        self._set_stopinfo(self.botframe, None, -1)
        self._continuing = True

    def _set_stopinfo(self, *args: "Any", **kwargs: "Any") -> None:
        self._continuing = False
        super()._set_stopinfo(*args, **kwargs)  # type: ignore[misc]

    def break_here(self, frame: "FrameType") -> bool:
        """Decide as bdb does, with conditions compiled once."""
        self._hit = self._note = None
        name = self.canonic(frame.f_code.co_filename)
        lines = self.breaks.get(name, ())
        line = frame.f_lineno
        if line not in lines:
            line = frame.f_code.co_firstlineno
            if line not in lines:
                return False
        for one in bdb.Breakpoint.bplist[name, line]:
            if not one.enabled or not bdb.checkfuncname(one, frame):
                continue
            one.hits += 1
            delete = True
            if one.cond:
                try:
                    if not eval(self._condition(one.cond), frame.f_globals, frame.f_locals):
                        continue
                except Exception as error:
                    # As pdb: stop, whatever the ignore count, and keep a temporary breakpoint.
                    described = traceback.format_exception_only(type(error), error)[-1].strip()
                    self._note = "its condition raised " + _ADDRESS.sub("", described)[:MESSAGE_LENGTH]
                    delete = False
            if one.ignore > 0 and delete:
                one.ignore -= 1
                continue
            self.currentbp = one.number
            note = self._note
            if one.temporary and delete:
                self.do_clear(str(one.number))
            self._hit, self._note = one, note
            return True
        return False

    def _condition(self, text: str) -> "CodeType":
        code = self._conditions.get(text)
        if code is None:
            code = self._conditions[text] = compile(text.strip(), "<condition>", "eval", dont_inherit=True)
        return code

    # ---- commands

    def onecmd(self, line: str) -> "Any":
        """Carry out a command; what it prints to the program's standard output is pdb's output."""
        if self.commands_defining:
            return super().onecmd(line)
        saved, sys.stdout = sys.stdout, self.output
        self._executing = True
        try:
            return super().onecmd(line)
        finally:
            self._executing = False
            if sys.stdout is self.output:
                sys.stdout = saved

    def error(self, msg: str) -> None:
        """Print an error as pdb does, and remember that the command failed."""
        self._failed = True
        super().error(msg)

    def checkline(self, filename: str, lineno: int) -> int:
        """Check as pdb does whether a line can have a breakpoint."""
        line = super().checkline(filename, lineno)
        self._failed = self._failed or not line
        return line

    def print_stack_entry(self, *args: "Any", **kwargs: "Any") -> None:
        """Print an entry as pdb does; before the first line of pytest there is none to print."""
        if not (self.at_entry and self._due and not self.program.steppable):
            super().print_stack_entry(*args, **kwargs)

    def default(self, line: str) -> "Any":
        """Execute a statement, which may go on over several lines."""
        source = self._whole_statement(line[1:].lstrip() if line[:1] == "!" else line)
        feeding, self._feeding = self._feeding, ""
        frame = self.curframe
        try:
            return super().default(source)
        finally:
            self._feeding = feeding
            _keep_locals(frame)

    def _whole_statement(self, source: str) -> str:
        """Add the lines that a statement needs to be complete."""
        first = source
        try:
            while self._rest and codeop.compile_command(source, "<stdin>", "single") is None:
                following = self._rest[0]
                ended = following[:1].strip() and not re.match(r"(else|elif|except|finally|case)\b", following)
                if ended and codeop.compile_command(source + "\n", "<stdin>", "single") is not None:
                    break
                source += "\n" + self._feed()
        except (SyntaxError, ValueError, OverflowError):
            pass
        return source if source == first and not source.rstrip().endswith(":") else source + "\n"

    def do_commands(self, arg: str) -> "Any":  # noqa: D102
        self._feeding = "end\n"
        self._last_fed = ""
        try:
            return super().do_commands(arg)
        finally:
            self._feeding = None
            ended = self._last_fed.strip() in ("", "end")
            if not ended and self._rest and self._rest[0].strip() == "end":  # pdb ends at a command that resumes
                self._feed()

    def do_clear(self, arg: str) -> "Any":  # noqa: D102
        if not arg:
            found = [one for one in bdb.Breakpoint.bpbynumber if one]
            self.clear_all_breaks()
            for one in found:
                self.message("Deleted {}".format(one))
            return None
        name, colon, line = arg.rpartition(":")
        if colon:
            arg = "{}:{}".format(self.lookupmodule(name.strip()) or name, line)
        return super().do_clear(arg)

    do_cl = do_clear

    def lookupmodule(self, filename: str) -> "Optional[str]":
        """Find a file as the host names it: by its path in the repository, absolute, or as pdb does."""
        for public in ("/testbed/", self.root + "/"):
            if filename.startswith(public) and os.path.isfile(os.path.join(self.root, filename[len(public) :])):
                return os.path.join(self.root, filename[len(public) :])
        names = [filename] if filename.endswith(".py") else [filename, filename + ".py"]
        if re.match(r"\w+(\.\w+)+\Z", filename) and not filename.endswith(".py"):
            names += [filename.replace(".", "/") + ".py", filename.replace(".", "/") + "/__init__.py"]
        for name in names:
            if os.path.isfile(os.path.join(self.root, name)):
                return os.path.join(self.root, name)
        found = super().lookupmodule(filename)
        if found is not None and os.path.isfile(found):
            return found
        return self._search(os.path.basename(names[-1])) if "/" not in filename else None

    def _search(self, name: str) -> "Optional[str]":
        """The only file of that name in the repository."""
        found, seen = [], 0
        for directory, directories, files in os.walk(self.root):
            directories[:] = sorted(
                d for d in directories if d[:1] != "." and d not in ("site-packages", "__pycache__")
            )
            seen += len(files)
            if name in files:
                found.append(os.path.join(directory, name))
            if seen > MOST_FILES_SEARCHED or len(found) > 5:
                break
        if len(found) > 1:
            self.message("Several files are called {}: {}".format(name, ", ".join(map(self.reporter.path, found))))
        return found[0] if len(found) == 1 else None

    def do_run(self, arg: str) -> "Any":  # noqa: D102
        import shlex

        message: "Json" = {"t": "restart", "out": self.output.take()[0]}
        if arg:
            try:
                message["args"] = shlex.split(arg)
            except ValueError as error:
                self.error("Cannot run {}: {}".format(arg, error))
                return
        self._add_breakpoints(message)
        self.channel.send(message)
        self.channel.receive()
        self.set_quit()
        return 1

    do_restart = do_run

    def do_quit(self, arg: str) -> "Any":  # noqa: D102
        self._tell_quit()
        return super().do_quit(arg)

    do_q = do_exit = do_quit

    def do_EOF(self, arg: str) -> "Any":  # noqa: D102
        self._tell_quit()
        return super().do_EOF(arg)

    def _tell_quit(self) -> None:
        """Tell the host first: the program may take its time to end, or not do it at all."""
        message: "Json" = {"t": "quit", "out": self.output.take()[0]}
        self._add_breakpoints(message)
        self.channel.send(message)

    def do_interact(self, arg: str) -> "Any":  # noqa: D102
        import code

        if not self._rest:
            self.error("interact: write the lines to run below it, in the same call")
            return
        frame = self.curframe
        assert frame is not None
        names = dict(frame.f_globals)
        names.update(self.curframe_locals)
        console = code.InteractiveConsole(names)
        streams, hook = sys.stderr, sys.displayhook
        sys.stderr = self.output
        sys.displayhook = self.displayhook  # Python's own would keep the value alive
        feeding, self._feeding = self._feeding, ""
        try:
            while self._rest:
                console.push(self._feed())
            console.push("")
        except SystemExit:
            pass
        finally:
            sys.stderr, sys.displayhook = streams, hook
            self._feeding = feeding

    def do_debug(self, arg: str) -> "Any":  # noqa: D102
        self._nested = True
        try:
            return super().do_debug(arg)
        finally:
            self._nested = False
            _settrace(None)

    do_next = do_n = _only_with_a_line(pdb.Pdb.do_next)
    do_step = do_s = _only_with_a_line(pdb.Pdb.do_step)
    do_until = do_unt = _only_with_a_line(pdb.Pdb.do_until)
    do_return = do_r = _only_with_a_line(pdb.Pdb.do_return)
    for _name in ("do_commands", "do_clear", "do_run", "do_quit", "do_EOF", "do_interact", "do_debug"):
        locals()[_name].__doc__ = getattr(pdb.Pdb, _name).__doc__
    del _name

    # ---- breakpoints over restarts

    def dump_breakpoints(self) -> "Json":
        """All breakpoints and the next number, in JSON types."""
        found = []
        for one in bdb.Breakpoint.bpbynumber:
            if one is None:
                continue
            commands = list(self.commands.get(one.number, ()))
            if commands and getattr(self, "commands_silent", {}).get(one.number):
                commands.insert(0, "silent")
            found.append(
                {
                    "number": one.number,
                    "file": self.reporter.path(one.file),
                    "line": one.line,
                    "condition": one.cond or None,
                    "temporary": bool(one.temporary),
                    "ignore": one.ignore,
                    "enabled": bool(one.enabled),
                    "commands": commands,
                    "function": one.funcname,
                }
            )
        return {"list": found, "next": bdb.Breakpoint.next}

    def restore_breakpoints(self, state: "Json") -> "List[Json]":
        """Set breakpoints as they were dumped, under their numbers; returns those that cannot be set and why."""
        lost = []
        for one in state["list"]:
            self._skip_numbers(one["number"])
            name = os.path.join(self.root, one["file"])
            problem = self.set_break(name, one["line"], one["temporary"], one["condition"], one["function"])
            if problem:
                lost.append(dict(one, why="the file has no such line any more"))
                continue
            made = bdb.Breakpoint.bpbynumber[one["number"]]
            assert made is not None
            made.ignore = one["ignore"]
            made.enabled = one["enabled"]
            if one["commands"]:
                self._restore_commands(one["number"], one["commands"])
        self._skip_numbers(state["next"])
        return lost

    @staticmethod
    def _skip_numbers(number: int) -> None:
        """Make `number` the next breakpoint's."""
        bdb.Breakpoint.next = max(number, bdb.Breakpoint.next)
        while len(bdb.Breakpoint.bpbynumber) < bdb.Breakpoint.next:
            bdb.Breakpoint.bpbynumber.append(None)

    def _restore_commands(self, number: int, commands: "List[str]") -> None:
        if not hasattr(self, "commands_doprompt"):  # from Python 3.14 on, lines are kept as they are
            self.commands[number] = list(commands)
            return
        self.commands[number] = []
        self.commands_doprompt[number] = True
        self.commands_silent[number] = False
        self.commands_bnum = number
        for line in commands:
            self.handle_command_def(line)

    # ---- the program's life

    def run_program(self, program: "Program") -> int:
        """Stop before the program's first line, run it, stop at its uncaught exception; returns its exit status."""
        self.program = program
        self.reset()
        atexit.register(self._finish)
        self._install()
        try:
            self._stop_at_entry()
            self.botframe = sys._getframe()
            if not self._continuing:
                self._awaited = self.canonic(program.filename)
                self.set_step()
            else:
                self.set_continue()
            self.resume(None)
            try:
                self._status = program.run(self)
            finally:
                _settrace(None)
        except SystemExit as error:
            self._status = _exit_status(error)
        except bdb.BdbQuit:
            self._status = 0
        except BaseException as error:
            self._status = 1
            self._at_uncaught(error)
        return int(self._status or 0)

    def _stop_at_entry(self) -> None:
        """Hold a conversation in a frame that looks like the program's first line, before any of it was compiled."""
        name = "__debug_gym_entry__"
        names = self.program.namespace
        self.at_entry = True

        def entry() -> None:
            names.pop(name, None)
            frame = sys._getframe(1)
            self.botframe = frame
            self.converse(Stop("entry"), lambda: self.interaction(frame, None))

        names[name] = entry
        code = compile("\n" * (self.program.first_line - 1) + name + "()", self.program.filename, "exec")
        exec(code, names)
        self.at_entry = False
        if self.quitting:
            raise bdb.BdbQuit

    def _install(self) -> None:
        _signal(INTERRUPT_SIGNAL, self.interrupt)
        _signal(ARM_SIGNAL, self.arm)
        try:
            # A descriptor of its own: the program may close standard error, and the terminal must not hang up then.
            self._stack_output = os.fdopen(_high_copy(2), "w")
            faulthandler.register(STACK_SIGNAL, self._stack_output, all_threads=True)
        except (OSError, AttributeError, ValueError):
            pass
        self.take_hooks()
        threading.settrace(self.backend.on_call)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.in_child)
        if hasattr(threading, "excepthook"):
            self._thread_excepthook = threading.excepthook
            threading.excepthook = self._in_thread

    def take_hooks(self) -> None:
        """Make `breakpoint()` and `pdb.set_trace()` stop here."""
        sys.breakpointhook = self.hook
        pdb.set_trace = self.hook

    def _in_thread(self, args: "Any") -> None:
        """Stop at an exception that ends a thread."""
        self._thread_excepthook(args)
        if args.exc_type is not SystemExit and args.exc_type is not bdb.BdbQuit and args.exc_value is not None:
            self.post_mortem(args.exc_value, Stop("exception"), None)

    def _at_uncaught(self, error: "BaseException") -> None:
        _settrace(None)
        step = error.__traceback__
        while step is not None and step.tb_frame.f_code.co_filename in (OURS, runpy.__file__):
            step = step.tb_next
        error.__traceback__ = step
        try:
            sys.excepthook(type(error), error, step)
        except Exception:
            traceback.print_exception(type(error), error, step)
        self._uncaught = {"type": type(error).__name__, "message": str(error)[:MESSAGE_LENGTH]}
        self.post_mortem(error, Stop("exception"), None)

    def _finish(self) -> None:
        """Tell the host about the end; the last thing before the interpreter ends."""
        if _getpid() != self._pid:
            return
        _settrace(None)
        self._turn.acquire()  # a daemon thread may be talking
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        message: "Json" = {"t": "exit", "status": self._status, "quit": self.quitting, "out": self.output.take()[0]}
        if self._uncaught:
            message["exception"] = self._uncaught
        self._add_breakpoints(message)
        self.channel.send(message)


def _is_hidden(frame: "FrameType") -> bool:
    """Whether a frame only reports the failure: of unittest, or one that pytest hides."""
    return bool(frame.f_locals.get("__tracebackhide__", False)) or "__unittest" in frame.f_globals


def _keep_locals(frame: "Optional[FrameType]") -> None:
    """Write changed locals back to a frame; up to Python 3.12 only a trace event would do it by itself."""
    if frame is None or sys.version_info >= (3, 13):
        return
    try:
        import ctypes

        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    except (ImportError, AttributeError):
        pass


def _exit_status(error: "SystemExit") -> int:
    """The exit status that Python makes of a SystemExit, after printing what it prints."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    with contextlib.suppress(Exception):
        sys.stderr.write("{}\n".format(error.code))
    return 1


class BadTarget(Exception):
    """What should be debugged is not there, or is not Python."""


class Program:
    """What is debugged.

    Attributes:
        filename: file of its first line
        first_line: number of that line
        namespace: globals of `__main__`
        steppable: whether stepping can start at the first line
    """

    steppable = True

    def __init__(self, target: str, args: "List[str]") -> None:
        """Look for the target, without running or importing any of it.

        Raises:
            BadTarget: it is not there, or is not Python
        """
        self.target = target
        self.args = args
        self.first_line = 1
        self.filename = self.find()
        self.become()

    def find(self) -> str:
        """The file that is run."""
        raise NotImplementedError

    def run(self, debugger: "Debugger") -> int:
        """Run it to its end; returns its exit status."""
        raise NotImplementedError

    def become(self) -> None:
        """Make `__main__` and `sys.argv` the program's."""
        module = types.ModuleType("__main__")
        self.namespace = module.__dict__
        self.namespace["__builtins__"] = __builtins__
        self._replaced = sys.modules["__main__"]  # kept: the interpreter clears a module that nobody holds
        sys.modules["__main__"] = module
        sys.argv[:] = [self.filename, *self.args]

    def put_first(self, directory: str) -> None:
        """Make a directory the first entry of `sys.path`, as Python does at the start.

        Modules that we loaded from the standard library make way for ones of the same name in there.
        """
        if sys.flags.isolated or getattr(sys.flags, "safe_path", False):
            return
        sys.path.insert(0, directory)
        try:
            entries = set(os.listdir(directory or "."))
        except OSError:
            return
        for name in list(sys.modules):
            top = name.partition(".")[0]
            if top in LOADED_AT_START or top in BUILTIN_MODULES:
                continue
            if top + ".py" in entries or (
                top in entries and os.path.isfile(os.path.join(directory, top, "__init__.py"))
            ):
                del sys.modules[name]


class Script(Program):
    """`python file.py arguments`."""

    def find(self) -> str:
        """See Program."""
        if os.path.isdir(self.target):
            raise BadTarget("{} is a directory, not a Python file".format(self.target))
        if not os.path.isfile(self.target):
            raise BadTarget("there is no file {}".format(self.target))
        path = os.path.join(os.getcwd(), self.target)
        try:
            with open(path, "rb") as file:
                self.source = file.read()
            tree = compile(self.source, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise BadTarget("{} is not Python: {}".format(self.target, error)) from None
        except OSError as error:
            raise BadTarget("{} cannot be read: {}".format(self.target, error.strerror)) from None
        self.first_line = getattr(tree.body[0], "lineno", 1) if tree.body else 1  # type: ignore[attr-defined]
        return path

    def become(self) -> None:
        """See Program."""
        super().become()
        sys.argv[0] = self.target
        self.put_first(os.path.dirname(os.path.realpath(self.filename)))
        loader = importlib.machinery.SourceFileLoader("__main__", self.filename)
        name = self.filename if sys.version_info >= (3, 9) else self.target
        self.namespace.update(__file__=name, __cached__=None, __loader__=loader, __package__=None, __spec__=None)

    def run(self, debugger: "Debugger") -> int:
        """See Program."""
        if b"unittest" in self.source:
            watch_unittest(debugger)
        exec(compile(self.source, self.namespace["__file__"], "exec", dont_inherit=True), self.namespace)
        return 0


class Module(Program):
    """`python -m module arguments`."""

    def find(self) -> str:
        """See Program."""
        self.put_first(os.getcwd() if sys.version_info >= (3, 7) else "")
        parts = self.target.split(".")
        try:
            spec = importlib.util.find_spec(parts[0])
        except (ImportError, ValueError, AttributeError):
            spec = None
        for depth in range(1, len(parts)):
            if spec is None:
                break
            spec = self._inside(spec, ".".join(parts[: depth + 1]))
        if spec is None:
            raise BadTarget("there is no module {}".format(self.target))
        if spec.submodule_search_locations is not None:
            spec = self._inside(spec, self.target + ".__main__")
            if spec is None:
                raise BadTarget("{} is a package without __main__, it cannot be run".format(self.target))
        if not spec.origin or not spec.has_location:
            raise BadTarget("{} is not a module in Python source".format(self.target))
        if spec.origin.endswith(".py"):
            try:
                with open(spec.origin, "rb") as file:
                    tree = compile(file.read(), spec.origin, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
            except (SyntaxError, ValueError) as error:
                raise BadTarget("{} is not Python: {}".format(self.target, error)) from None
            except OSError as error:
                raise BadTarget("{} cannot be read: {}".format(self.target, error.strerror)) from None
            self.first_line = getattr(tree.body[0], "lineno", 1) if tree.body else 1  # type: ignore[attr-defined]
        return spec.origin

    @staticmethod
    def _inside(spec: "importlib.machinery.ModuleSpec", name: str) -> "Optional[importlib.machinery.ModuleSpec]":
        """Find a module of a package without importing the package."""
        if spec.submodule_search_locations is None:
            return None
        return importlib.machinery.PathFinder.find_spec(name, list(spec.submodule_search_locations))

    def run(self, debugger: "Debugger") -> int:
        """See Program."""
        if self.target == "unittest":
            watch_unittest(debugger)
        sys.argv[0] = "-m"
        _, spec, code = runpy._get_module_details(self.target)  # type: ignore[attr-defined]
        sys.argv[0] = spec.origin
        self.namespace.update(
            __file__=spec.origin,
            __cached__=spec.cached,
            __loader__=spec.loader,
            __package__=spec.parent,
            __spec__=spec,
        )
        exec(code, self.namespace)
        return 0


class Pytest(Module):
    """`python -m pytest arguments`, with a plugin that stops at failing tests."""

    steppable = False

    def find(self) -> str:
        """See Program."""
        filename = super().find()
        for before, arg in zip(["", *self.args], self.args):  # noqa: B905 (Python 3.6)
            path = arg.partition("::")[0]
            is_test = (path.endswith(".py") or "::" in arg) and arg[:1] != "-"
            if is_test and (before[:1] != "-" or before in PYTEST_SWITCHES) and not os.path.exists(path):
                raise BadTarget("there is no file {}".format(path))
        return filename

    def run(self, debugger: "Debugger") -> int:
        """See Program."""
        import pytest

        args = [arg for arg in self.args if arg not in ("--pdb", "--trace")]
        return int(pytest.main(args, plugins=[pytest_plugin(debugger)]))


def pytest_plugin(debugger: "Debugger") -> object:
    """Our pytest plugin: a stop at each failing test, nothing that would run the tests elsewhere or trace them."""
    import pytest

    class Plugin(object):
        @pytest.hookimpl(hookwrapper=True)
        def pytest_load_initial_conftests(self, early_config: "Any") -> "Iterator[None]":
            if hasattr(early_config.known_args_namespace, "cov_source"):  # coverage needs the trace function too
                early_config.known_args_namespace.cov_source = []
            yield

        @pytest.hookimpl(tryfirst=True)
        def pytest_cmdline_main(self, config: "Any") -> None:
            if hasattr(config.option, "numprocesses"):  # what -n0 does, over any -n before it
                config.option.numprocesses = 0
                config.option.dist = "no"
                config.option.tx = []

        @pytest.hookimpl(trylast=True)
        def pytest_configure(self, config: "Any") -> None:
            debugger.take_hooks()  # pytest has put its own in place
            pytest.set_trace = debugger.hook

        @pytest.hookimpl(optionalhook=True, tryfirst=True)
        def pytest_timeout_set_timer(self, item: "Any", settings: "Any") -> bool:
            return True  # whoever thinks at a prompt must not run out of pytest-timeout's time

        @pytest.hookimpl(trylast=True)
        def pytest_exception_interact(self, node: "Any", call: "Any", report: "Any") -> None:
            stop = Stop("test failed", test=node.nodeid, when=getattr(call, "when", None))
            debugger.post_mortem(_underlying(call.excinfo.value), stop, sys._getframe(1))
            if debugger.quitting:
                pytest.exit("the debugger quit", returncode=0)

    return Plugin()


def _underlying(error: BaseException) -> BaseException:
    """The program's exception in one of pytest's own: of a test module, a conftest or a doctest."""
    inner = getattr(error, "cause", None) or (getattr(error, "exc_info", None) or (None, None))[1]
    if type(error).__name__ == "CollectError":
        inner = error.__cause__
    of_pytest = type(error).__module__.partition(".")[0] in ("_pytest", "doctest")
    return inner if of_pytest and isinstance(inner, BaseException) and inner.__traceback__ is not None else error


def watch_unittest(debugger: "Debugger") -> None:
    """Stop at each failing test of unittest."""
    import unittest

    def watched(method: "Any") -> "Any":
        @functools.wraps(method)
        def add(self: "Any", test: "Any", *args: "Any") -> "Any":
            result = method(self, test, *args)
            problem = args[-1]
            if problem is not None and problem[1] is not None:
                stop = Stop("test failed", test=(args[0] if len(args) > 1 else test).id())
                debugger.post_mortem(problem[1], stop, sys._getframe(1))
                if debugger.quitting:
                    raise bdb.BdbQuit
            return result

        return add

    for name in ("addError", "addFailure", "addSubTest"):
        setattr(unittest.TestResult, name, watched(getattr(unittest.TestResult, name)))


INTERRUPT_SIGNAL = signal.SIGRTMIN + 6
STACK_SIGNAL = signal.SIGRTMIN + 7
ARM_SIGNAL = signal.SIGRTMIN + 8
BUILTIN_MODULES = frozenset(sys.builtin_module_names)
PYTEST_SWITCHES = frozenset(["-q", "-qq", "-v", "-vv", "-vvv", "-s", "-x", "-l", "-ra", "-rA", "--lf", "--ff", "--sw"])


def make_program(config: "Json") -> "Program":
    """What the configuration asks to debug."""
    if config["kind"] == "script":
        return Script(config["target"], config["args"])
    if config["target"] == "pytest":
        return Pytest("pytest", config["args"])
    return Module(config["target"], config["args"])


def main(descriptor: int) -> int:
    """Debug what the host asks for; returns the exit status."""
    channel = Channel(descriptor)
    config = channel.receive()
    debugger = Debugger(channel, config["root"])
    try:
        program = make_program(config)
    except BadTarget as error:
        channel.send({"t": "error", "message": str(error)})
        return 2
    debugger.hello = {
        "python": list(sys.version_info[:3]),
        "root": debugger.root,
        "signals": {"interrupt": int(INTERRUPT_SIGNAL), "stack": int(STACK_SIGNAL)},
        "lost": debugger.restore_breakpoints(config["breakpoints"]),
    }
    return debugger.run_program(program)
