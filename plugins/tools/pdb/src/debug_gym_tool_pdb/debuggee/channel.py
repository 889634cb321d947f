"""The conversation with the host, and what the rest of the debuggee is built on."""

import _signal as _signal_in_c  # type: ignore[import-not-found]
import _thread
import ast
import builtins
import contextlib
import dis
import functools
import genericpath
import inspect
import io
import operator
import os
import posixpath
import re
import signal
import stat
import sys
import threading
import tokenize
import traceback
import types

from debug_gym_core.debugging.inside.process import Messages, _get_ident, _getframe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Dict, Iterator, List, Match, Optional, Set, Tuple

    Json = Dict[str, Any]
    Tracer = Callable[[FrameType, str, Any], Any]
    Replaced = List[Tuple[Dict[str, Any], str, Any, Any]]


OUTPUT_LIMIT = 64 * 1024

# Bound once, so that a program that replaces them (as tests do with mocks) does not replace ours.
_gettrace = sys.gettrace
_getrecursionlimit = sys.getrecursionlimit
_setrecursionlimit = sys.setrecursionlimit
_allocate_lock = _thread.allocate_lock
_start_new_thread = _thread.start_new_thread
_compile = compile
_compile_pattern = re.compile
_is = operator.is_
_partial = functools.partial
_ATTRIBUTES = vars(types.ModuleType)["__dict__"]
"""Finds the attributes of a module without running any code of the program's."""
_SIG_DFL = _signal_in_c.SIG_DFL
_SIG_IGN = _signal_in_c.SIG_IGN
_BUILTINS = vars(builtins)
_ORIGINAL_BUILTINS = dict(_BUILTINS)
_MODULES = (ast, dis, genericpath, inspect, posixpath, re, stat, tokenize, traceback)
"""Modules of which all functions are original ones at a stop; not linecache, which doctest has show its examples."""
_NAMES = (
    (os, ("fsdecode", "fsencode", "fspath", "getcwd", "listdir", "lstat", "readlink", "scandir", "stat")),
    (sys, ("_current_frames", "_getframe", "exc_info", "getrecursionlimit", "setrecursionlimit")),
    (threading, ("current_thread", "get_ident", "main_thread")),
)
_KINDS = (types.FunctionType, types.BuiltinFunctionType)
_ORIGINALS: "List[Tuple[Dict[str, Any], Dict[str, Any]]]" = [
    (_BUILTINS, _ORIGINAL_BUILTINS),
    *((vars(one), {name: getattr(one, name) for name in names}) for one, names in _NAMES),
    *((vars(one), {name: f for name, f in vars(one).items() if isinstance(f, _KINDS)}) for one in _MODULES),
]
"""Functions that we, pdb and the standard library use, by the namespaces that they are looked up in."""
_GONE = object()
ARM_SIGNAL = signal.SIGRTMIN + 8


class Pattern(object):
    """A regular expression that is compiled when it is first used: to compile all of them would hold up each start."""

    findall: "Callable[[str], List[str]]"
    match: "Callable[[str], Optional[Match[str]]]"
    search: "Callable[[str], Optional[Match[str]]]"
    sub: "Callable[[str, str], str]"

    def __init__(self, text: str, flags: int = 0) -> None:
        """Keep it for later; the arguments are those of `re.compile`."""
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> "Any":
        """What the compiled pattern has."""
        found = self.__dict__[name] = getattr(_compile_pattern(self._text, self._flags), name)
        return found


def _tables_of_modules() -> "Iterator[Dict[str, Any]]":
    """Modules by their names: those of the program, and those that a warm start has in store for it."""
    yield sys.modules
    for finder in list(sys.meta_path):
        if hasattr(finder, "__dict__"):
            yield vars(finder).get("debug_gym_modules", {})


def _all_modules() -> "Iterator[Tuple[str, Any]]":
    """Modules under their names, in use or in store."""
    for table in _tables_of_modules():
        for name, module in list(table.items()):
            yield name, module


def _take_back_builtins() -> "Replaced":
    """Make Python's built-in functions, and others that we and pdb call, what they were at the start.

    Returns:
        where the program had others, these, and what is there instead: for `_give_builtins`
    """
    replaced = []
    for namespace, originals in _ORIGINALS:
        if all(map(_is, map(namespace.get, originals), originals.values())):
            continue
        for name, original in originals.items():
            found = namespace.get(name, _GONE)
            if found is not original:
                namespace[name] = like = _like(original)
                replaced.append((namespace, name, found, like))
    return replaced


def _like(original: "Any") -> "Any":
    """What does as an original function, but is not it: no thread of the program's puts it back by itself."""
    return _partial(original) if isinstance(original, _KINDS) else original


def _give_builtins(replaced: "Replaced") -> None:
    """Put the program's own functions in place again, but where another thread of it has put another meanwhile."""
    for namespace, name, value, like in replaced:
        if namespace.get(name) is not like:
            continue
        if value is _GONE:
            del namespace[name]
        else:
            namespace[name] = value


ROOM = 300
"""Calls within each other that a stop may need."""
_ROOMS: "Set[Room]" = set()
"""Those that are in use."""


class Room:
    """Lets us call functions where the program is near its recursion limit, which is that of all its threads.

    The limit is what the deepest of those needs that are in a room, and is set back when none is. So near to it that
    Python refuses that, up to 3.8 by 50 calls, steps go on with the higher one: `insist` when they are over.
    """

    _lock = threading.RLock()  # whoever has it may be interrupted by a signal, at which we stop too
    _original = _raised = 0

    def __enter__(self) -> None:
        depth = 0
        frame: "Optional[FrameType]" = _getframe()
        while frame is not None:
            depth += 1
            frame = frame.f_back
        with Room._lock:
            _ROOMS.add(self)
            limit = _getrecursionlimit()
            if depth > limit - ROOM:  # `is_needed` would be one call more
                if limit != Room._raised:
                    Room._original = limit
                Room._raised = depth + 2 * ROOM
                _setrecursionlimit(Room._raised)

    def __exit__(self, *error: object) -> None:
        with Room._lock:
            _ROOMS.discard(self)
            if not _ROOMS:
                Room._set_back()

    @staticmethod
    def is_needed(depth: int) -> bool:
        """Whether a call within as many others is near the limit."""
        return depth > _getrecursionlimit() - ROOM

    @staticmethod
    def _set_back() -> None:
        """Set the limit back, unless the program has set another."""
        if Room._raised and _getrecursionlimit() == Room._raised:
            with contextlib.suppress(RecursionError):
                _setrecursionlimit(Room._original)

    @staticmethod
    def insist() -> None:
        """Have another thread set the limit back, where Python has refused that in the calling one.

        Where that cannot be done, it is set back after the next stop.
        """
        if not Room._raised or _getrecursionlimit() != Room._raised:
            return
        done = _allocate_lock()

        def set_back() -> None:
            if Room._lock.acquire(False):  # the waiting thread may have it, and be in a signal handler
                if not _ROOMS:
                    Room._set_back()
                Room._lock.release()
            done.release()

        done.acquire()
        try:
            _start_new_thread(set_back, ())
        except RuntimeError:
            return
        done.acquire()  # and call nothing from here on: there may be no room

    @staticmethod
    def forked() -> None:
        """Begin anew in a child, which has none of the other threads."""
        Room._lock = threading.RLock()
        _ROOMS.clear()
        Room._set_back()


class OwnBuiltins(Room):
    """Python's built-in functions do what the original ones do meanwhile, for what we ask of the standard library.

    So are others that tests replace by mocks: those that find files, look at code, or search text. There is room, too.

    Our own modules have theirs for good.
    """

    def __enter__(self) -> None:
        """Take them back."""
        Room.__enter__(self)
        self._replaced = _take_back_builtins()

    def __exit__(self, *error: "Any") -> None:
        """Give the program its own again."""
        _give_builtins(self._replaced)
        Room.__exit__(self, *error)


class Channel(Messages):
    """Messages to and from the host.

    Attributes:
        process: the number of a forked child that talks over it; 0: the first process
    """

    process = 0

    def send(self, message: "Json") -> None:
        """Send one message; a host that is gone ends the program."""
        if self.process:
            message["pid"] = self.process
        super().send(message)

    def receive(self) -> "Json":
        """Wait for the next message; a host that is gone ends the program.

        A message for another process is dropped: it died before it could read it.
        """
        while True:
            message = super().receive()
            if message.get("for", self.process) == self.process:
                return message


class Output(io.TextIOBase):
    """What pdb prints until the next prompt: head and tail of it, when it is long.

    Attributes:
        talker: the thread that carries out a command, while this is the program's standard output too
        program: where the other threads go on printing meanwhile
    """

    encoding = "utf-8"
    errors = "backslashreplace"
    talker: "Optional[int]" = None
    program: "Any" = None

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
        if self.talker is not None and self.talker != _get_ident() and self.program is not None:
            written: int = self.program.write(text)
            return written
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

    def close(self) -> None:
        """Stay open: what a statement at the prompt takes for the program's standard output is pdb's own."""

    def _shorten(self) -> None:
        surplus = len(self._tail) - OUTPUT_LIMIT // 2
        if surplus > 0:
            self._cut += surplus
            self._tail = self._tail[surplus:]

    def take(self) -> "Json":
        """Hand out the text, and by how many characters it is shorter than what was printed; start empty again."""
        self._shorten()
        head, tail, cut = "".join(self._head), self._tail, self._cut
        self.__init__()  # type: ignore[misc]
        if not cut:
            return {"out": head + tail}
        gap = "\n[... {} characters left out ...]\n".format(cut)
        return {"out": head + gap + tail, "missing": cut - len(gap)}


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
