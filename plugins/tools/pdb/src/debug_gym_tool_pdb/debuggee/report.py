"""Describes where the program stopped."""

import inspect
import linecache
import os
import reprlib
import signal
import sys
import threading
import types

from .channel import (
    OURS,
    Pattern,
    _get_ident,
    _getsignal,
    _monotonic,
    _process_time,
    _setitimer,
    _signal,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

    Json = Dict[str, Any]
    Tracer = Callable[[FrameType, str, Any], Any]

SOURCE_LINES = 4
SOURCE_WIDTH = 200
MOST_LOCALS = 30
MOST_FRAMES = 8
MOST_THREADS = 8
MOST_LISTED = 30
FRAMES_LISTED = 5
UNNAMED = "a thread without a name"
MOST_EXCEPTIONS = 5
REPR_SECONDS = 0.2
MOST_PATIENCE = 4
MESSAGE_LENGTH = 400
_COROUTINE_FLAGS = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR
_ADDRESS = Pattern(r" at 0x[0-9A-Fa-f]+")


class OutOfTime(BaseException):
    """A repr took too long."""


class TimeLimit:
    """Raises OutOfTime in the block when it takes too long; only in the main thread, where signals arrive.

    On a busy machine most of the time may be others': what has hardly had the processor is given more.

    The program's own timer and handler are as they were after it.
    """

    def __init__(self, seconds: float) -> None:
        """Prepare a limit in seconds of wall-clock time."""
        self.seconds = seconds
        self.expired = False
        self.active = False

    def __enter__(self) -> "TimeLimit":
        if threading.current_thread() is threading.main_thread() and _getsignal(signal.SIGALRM) is not None:
            self.active = True
            self._handler = _signal(signal.SIGALRM, self._ring)
            self._started, self._used = _monotonic(), _process_time()
            # Rings again and again: code under it may swallow the first exception.
            self._timer = _setitimer(signal.ITIMER_REAL, self.seconds, 0.05)
        return self

    def _ring(self, signum: int, frame: "Optional[FrameType]") -> None:
        if self.active:
            taken, used = _monotonic() - self._started, _process_time() - self._used
            if self.expired or used > self.seconds / 2 or taken > self.seconds * MOST_PATIENCE:
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


class Followed:
    """Stands where a frame has its trace function, and goes when the frame goes.

    Attributes:
        instead_of: what traced the frame before it was suspended
    """

    def __init__(self, left: "Callable[[int], None]", frame: int, instead_of: "Optional[Tracer]" = None) -> None:
        """Call `left` with the identity of the frame."""
        self._left = left
        self._frame = frame
        self.active = True
        self.instead_of = instead_of

    def __call__(self, frame: "FrameType", event: str, arg: "Any") -> None:
        """Trace nothing."""

    def __del__(self) -> None:
        if self.active:
            self._left(self._frame)


class Reporter:
    """Describes where the program stopped, in JSON types.

    Attributes:
        process: what the process is called; None: it is the first one
    """

    def __init__(self, root: str, canonic: "Callable[[str], str]") -> None:
        """Describe a program whose repository lies at `root`."""
        self.root = root.rstrip("/") + "/"
        self.canonic = canonic
        self.process: "Optional[str]" = None
        self._seen: "Dict[int, Dict[str, str]]" = {}
        self._followed: "Set[int]" = set()
        self._repr = BoundedRepr()

    def left(self, frame: int) -> None:
        """Forget the locals of a frame that is gone: its identity may be another frame's soon."""
        self._seen.pop(frame, None)
        self._followed.discard(frame)

    def keep_only(self, tops: "Iterable[Optional[FrameType]]") -> None:
        """Forget the locals of all frames but those that are called now, by their innermost ones.

        A suspended generator may be gone before anything tells, unless it is followed.
        """
        alive = set(self._followed)
        for top in tops:
            frame = top
            while frame is not None:
                alive.add(id(frame))
                frame = frame.f_back
        for key in list(self._seen):
            if key not in alive:
                self._seen.pop(key, None)

    def follow(self, frame: "FrameType", instead_of: "Optional[Tracer]" = None) -> "Optional[Followed]":
        """What tells when a frame is gone that nothing traces, as its trace function; None: it was not shown.

        Before Python 3.10 a frame that has a trace function knows its line only while the thread is traced.
        """
        if sys.version_info >= (3, 10) and id(frame) in self._seen:
            self._followed.add(id(frame))
            return Followed(self.left, id(frame), instead_of)
        self.left(id(frame))
        return None

    def unfollow(self, frame: "FrameType") -> None:
        """A frame gets another trace function, so that its own goes before it does."""
        if type(frame.f_trace) is Followed:
            frame.f_trace.active = False
            self._followed.discard(id(frame))

    def suspended(self, frame: "FrameType", tracer: "Optional[Tracer]") -> "Optional[Tracer]":
        """A generator's frame returns: what traces it from now on, instead of `tracer`.

        It may come back, and it may be gone without having run again.
        """
        self.unfollow(frame)
        return self.follow(frame, tracer) or tracer

    def resumed(self, frame: "FrameType") -> None:
        """A frame is called, or a suspended one comes back: what traced it before traces it again."""
        tracer = frame.f_trace
        if type(tracer) is Followed and tracer.instead_of is not None:
            self.unfollow(frame)
            frame.f_trace = tracer.instead_of

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
        result["thread"] = _thread_names().get(_get_ident(), UNNAMED)
        if self.process is not None:
            result["process"] = self._process_name()
        task = self._task(stack[: index + 1])
        if task is not None:
            result["task"] = task
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

    def _task(self, stack: "List[Tuple[FrameType, int]]") -> "Optional[Json]":
        """The asyncio task that runs, and what awaits what in it: the current frame first."""
        task = _current_task()
        outermost = getattr(task, "_coro", None)
        top = getattr(outermost, "cr_frame", None) or getattr(outermost, "gi_frame", None)
        frames = [frame for frame, _ in stack]
        if top not in frames:
            return None
        inside = stack[frames.index(top) :]
        name = task.get_name() if hasattr(task, "get_name") else getattr(outermost, "__name__", "?")
        awaits = [self.place(f, n) for f, n in reversed(inside) if f.f_code.co_flags & _COROUTINE_FLAGS]
        return {"name": str(name)[:MESSAGE_LENGTH], "awaits": awaits[:MOST_FRAMES]}

    def _process_name(self) -> "Optional[str]":
        """The name that multiprocessing gave to the process, or ours."""
        module = sys.modules.get("multiprocessing.process")
        name = None if module is None else module.current_process().name
        return self.process if name in (None, "MainProcess") else str(name)

    def all_threads(self, stack: "List[Tuple[FrameType, int]]") -> str:
        """Every thread and where it is: innermost first, in the repository's own code when it is in any.

        Args:
            stack: of the calling thread, outermost first
        """
        names = _thread_names()
        here = _get_ident()
        tops = sorted(_other_frames().items(), key=lambda one: (one[0] not in names, str(names.get(one[0])), one[0]))
        lines = ["* {}: {}".format(names.get(here, UNNAMED), self._shown(list(reversed(stack))))]
        for ident, top in tops[: MOST_LISTED - 1]:
            frames = [(one, one.f_lineno) for one in _outwards(top) if one.f_code.co_filename != OURS]
            lines.append("  {}: {}".format(names.get(ident, UNNAMED), self._shown(frames)))
        if len(tops) >= MOST_LISTED:
            lines.append("  [{} more]".format(len(tops) - MOST_LISTED + 1))
        return "\n".join(lines)

    def _shown(self, frames: "List[Tuple[FrameType, int]]") -> str:
        own = [one for one in frames if self.is_own(one[0].f_code.co_filename)]
        places = [self.place(*one) for one in (own or frames[:1])]
        text = " < ".join("{function} {file}:{line}".format(**one) for one in places[:FRAMES_LISTED])
        if len(places) > FRAMES_LISTED:
            text += " < [{} more]".format(len(places) - FRAMES_LISTED)
        return text or "nowhere"

    def threads(self) -> "List[Json]":
        """Where the other threads are, in the repository's own code."""
        names = _thread_names()
        found = []
        for ident, top in _other_frames().items():
            frame: "Optional[FrameType]" = top
            while frame is not None and not self.is_own(frame.f_code.co_filename):
                frame = frame.f_back
            if frame is not None:
                found.append(dict(self.place(frame, frame.f_lineno), name=names.get(ident, UNNAMED)))
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
        names = in_order(names, frame)
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

    def said(self, error: "BaseException") -> str:
        """An exception's text; empty when its own code fails or takes too long."""
        try:
            with TimeLimit(REPR_SECONDS) as limit:
                return self._message(error, limit)
        except OutOfTime:
            return ""

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


def _thread_names() -> "Dict[Optional[int], str]":
    """Names of threads; those that `_thread` started have none, and asking for the current one's would make one up."""
    return {thread.ident: thread.name for thread in list(threading._active.values())}  # type: ignore[attr-defined]


def _outwards(frame: "Optional[FrameType]") -> "Iterator[FrameType]":
    """A frame and those that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _current_task() -> "Any":
    """The asyncio task that the calling thread runs; None: none, or the program has no asyncio."""
    events, tasks = sys.modules.get("asyncio.events"), sys.modules.get("asyncio.tasks")
    if events is None or tasks is None:
        return None
    loop = events._get_running_loop()
    if loop is None:
        return None
    current = getattr(tasks, "current_task", None) or tasks.Task.current_task
    return current(loop)


def in_order(names: "Iterable[str]", frame: "FrameType") -> "List[str]":
    """Local names as they come in the code; up to Python 3.7 a frame gives them as it likes."""
    code = frame.f_code
    order = {name: place for place, name in enumerate(code.co_varnames + code.co_cellvars + code.co_freevars)}
    return sorted(names, key=lambda name: order.get(name, len(order)))


def _other_frames() -> "Dict[int, FrameType]":
    """Where the other threads are; a frame that holds itself would keep the program's objects alive."""
    frames = sys._current_frames()
    frames.pop(_get_ident(), None)
    return frames
