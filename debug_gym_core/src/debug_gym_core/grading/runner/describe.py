"""What is told of a failure: the exception in a line, and the repository's frames with short texts for their locals.

Values are those of the tested code, whose `repr` may do anything: texts are bounded in length, and in time.
"""

import os
import re
import sys
from time import monotonic

from . import files
from .apart import Lost, NoCopy, apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType
    from typing import Any, Union

    Details = dict[str, Any]

TEXT = 500
VALUE = 160
_GROUP = getattr(sys.modules["builtins"], "BaseExceptionGroup", None)  # type: Any
LOCALS = 20
FRAMES = 12
DETAILS = 20000
"""Characters of locals in one failure."""
SECONDS = 15.0
"""For which a run is held up by describing its failures; of those after that no frames are told."""
DETAILED = 40
"""Failures of one run whose frames are reported; `eval` shows those of ten, each of which may be run again."""
MEMBERS = 3
"""Exceptions in a group that are told of."""
MOST_ITEMS = 10000
"""Elements of a container that is still shown."""
SIZED = (str, bytes, list, tuple, set, frozenset, dict)
ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]{4,16}\b| id='[0-9]{6,}'|(?:(?<=started)|(?<=stopped)|(?<=daemon)) [0-9]{6,}\b")
INSTALLED = re.compile(r"(^|/)(site-packages|dist-packages|lib/python[0-9.]+)/")
"""In the path of a file that lies below the repository, and is an environment's."""
SLOW = 0.2
"""Seconds after which the `repr` of a value is given up."""


class Describer(object):
    """Tells of failures: the exception in a line, the repository's frames with bounded locals.

    Args:
        root: of the repository
        details: whether frames are told of at all: the `repr` of what is in them may do anything
    """

    def __init__(self, root: str, details: bool = True) -> None:
        self.root = files.real(root) + os.sep
        self.paths = {}  # type: dict[str, Union[str, None]]
        self.left = DETAILED if details else 0
        self.patience = SECONDS

    def inside(self, filename: str) -> "Union[str, None]":
        """The path of a repository's file relative to the root; None for any other."""
        if filename not in self.paths:
            path = files.real(files.joined(self.root, filename))
            relative = path[len(self.root) :] if path.startswith(self.root) and files.exists(path) else None
            if relative and INSTALLED.search(relative):
                relative = None
            self.paths[filename] = relative
        return self.paths[filename]

    def tell(self, error: BaseException, trace: "Union[TracebackType, None]") -> "Details":
        """Describe a failure.

        Args:
            error: the exception
            trace: its traceback

        Returns:
            `message` and `frames` as a dict
        """
        frames = []  # type: list[Details]
        try:
            message = self.line(error)
        except BaseException as problem:  # Whatever objects of the tested code do must not cost the result.
            message = "{} ({})".format(type(error).__name__, type(problem).__name__)
        if self.left > 0 and self.patience > 0:
            self.left -= 1
            began = monotonic()
            try:
                frames = self.frames_apart(error, trace)
            except BaseException as problem:  # As above.
                message += " (where it was raised cannot be told: {})".format(type(problem).__name__)
            self.patience -= monotonic() - began
        return {"message": message, "frames": frames}

    def frames_apart(self, error: BaseException, trace: "Union[TracebackType, None]") -> "list[Details]":
        """The frames, with variables that are described in a copy of the process where there can be one."""
        inner = members(error)[:1] or [one for one in [caused_by(error)] if one is not None]
        traces = [(trace, ""), *((one.__traceback__, one_line(one)[:VALUE]) for one in inner)]
        try:
            return list(apart(lambda: self.frames(traces)))
        except NoCopy:
            return self.frames(traces)
        except Lost as problem:
            return self.frames(traces, why_none=str(problem))

    def line(self, error: BaseException) -> str:
        """The exception in a line, of a group what is in it, and the one that caused it."""
        text = one_line(error)
        inside = members(error)
        if inside:
            told = [self.member(one) for one in inside[:MEMBERS]] + ["..."] * (len(inside) > MEMBERS)
            text = "{}: {}".format(text[:VALUE], "; ".join(told))
        cause = caused_by(error)
        return "{} (from {})".format(text, one_line(cause)[:VALUE]) if cause is not None else text

    def member(self, error: BaseException) -> str:
        """An exception of a group in a line, and the innermost place of the repository at which it was raised."""
        places = list(self.places(error.__traceback__))
        where = " (at {}:{} in {})".format(*places[-1][:3]) if places else ""
        return one_line(error)[:VALUE] + where

    def places(self, trace: "Union[TracebackType, None]") -> "Iterator[tuple[str, int, str, FrameType]]":
        """File, line, function and frame of the repository's frames, innermost last."""
        while trace is not None:
            code = trace.tb_frame.f_code
            path = self.inside(code.co_filename)
            if path:
                yield path, trace.tb_lineno, code.co_name, trace.tb_frame
            trace = trace.tb_next

    def frames(self, traces: "list[tuple[Union[TracebackType, None], str]]", why_none: str = "") -> "list[Details]":
        """The repository's frames, innermost last; of many the first few and the last.

        Args:
            traces: the traceback; then that of an exception in the group, or that caused it, and what that is
            why_none: what keeps their variables from being described, which the innermost tells in their place

        Returns:
            a dict for each: where it is, `locals`, `of` where it is one of another exception, and how many are
            `left_out` before it
        """
        found = []  # type: list[Details]
        frames = []  # type: list[FrameType]
        known = set()  # type: set[int]
        for trace, of in traces:
            for path, line, name, frame in self.places(trace):
                if id(frame) not in known:
                    known.add(id(frame))
                    found.append(dict({"of": of} if of else {}, file=path, line=line, function=name))
                    frames.append(frame)
        if len(found) > FRAMES:
            found[4 - FRAMES]["left_out"] = len(found) - FRAMES
            found, frames = found[:4] + found[4 - FRAMES :], frames[:4] + frames[4 - FRAMES :]
        budget = [DETAILS]
        for one, frame in reversed(list(zip(found, frames))):  # noqa: B905 - Python 3.6
            one["locals"] = {} if why_none else self.locals(frame, budget)
        if why_none and found:
            found[-1]["locals"] = {"...": "not described: {}".format(why_none)}
        return found

    def locals(self, frame: "FrameType", budget: "list[int]") -> "dict[str, str]":
        """The variables of a frame, without what is only imported or defined there."""
        values = {}  # type: dict[str, str]
        hidden = (type(sys), type(len), type(self.locals), type(lambda: 0), type)
        code = frame.f_code
        order = {name: place for place, name in enumerate(code.co_varnames + code.co_cellvars + code.co_freevars)}
        for name, value in sorted(frame.f_locals.items(), key=lambda one: order.get(one[0], len(order))):
            # Not `isinstance`, which asks the object for its class: that of a proxy is made up only then.
            if not name.isidentifier() or name.startswith("__") or issubclass(type(value), hidden):
                continue
            if len(values) == LOCALS or budget[0] <= 0:
                values["..."] = "more"
                break
            try:
                values[name] = show(value)
            except BaseException:  # It may raise anything when it is only asked what it has.
                values[name] = "<{}>".format(type(value).__name__)
            budget[0] -= len(name) + len(values[name])
        return values


def members(error: BaseException) -> "list[BaseException]":
    """The exceptions of which a group consists, those of groups in it in their place; none of another exception."""
    found = []  # type: list[BaseException]
    waiting = [error] if _GROUP is not None and issubclass(type(error), _GROUP) else []
    while waiting and len(found) <= MEMBERS:
        one = waiting.pop()
        if issubclass(type(one), _GROUP):
            waiting.extend(reversed(_GROUP.exceptions.__get__(one)))  # Whatever the class makes of it.
        else:
            found.append(one)
    return found


def caused_by(error: BaseException) -> "Union[BaseException, None]":
    """The exception from which another was raised, or while which was handled; None: there is none to tell of."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def one_line(error: BaseException) -> str:
    """An exception's class and text on one line."""
    text = guarded(str, error)
    if type(error).__name__ in ("CollectError", "ImportError") and "Traceback" in text:
        text = text.rstrip().rpartition("\n")[2].lstrip("E ")  # It quotes a whole traceback, which ends with the cause.
    text = " ".join(text[: 8 * TEXT].split())
    name = type(error).__name__
    return without_addresses("{}: {}".format(name, text) if text else name)[:TEXT]


def without_addresses(text: str) -> str:
    """A text without the addresses of objects, which differ from run to run."""
    return ADDRESS.sub("", text)


BRACKETS = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    dict: ("{", "}"),
}  # type: dict[type, tuple[str, str]]


def show(value: "Any", depth: int = 2) -> str:
    """A short text for a value, whatever its size and whatever its `repr` does."""
    text = _show(value, depth)
    return text if len(text) <= VALUE else text[: VALUE - 3] + "..."


def _show(value: "Any", depth: int) -> str:
    kind = type(value)  # type: Any
    if kind in (str, bytes):
        return str(repr(value[:VALUE]))
    if kind is int:
        return repr(value) if value.bit_length() < 2000 else "<int of {} bits>".format(value.bit_length())
    brackets = BRACKETS.get(kind)
    if brackets:
        if not value:
            return str(repr(value))
        if depth < 0:
            return brackets[0] + "..." + brackets[1]
        parts = []  # type: list[str]
        for part in value.items() if kind is dict else value:
            if len(parts) == 12:
                parts.append("... {} in all".format(len(value)))
                break
            if kind is dict:
                parts.append(_show(part[0], depth - 1) + ": " + _show(part[1], depth - 1))
            else:
                parts.append(_show(part, depth - 1))
        return brackets[0] + ", ".join(parts) + ("," if kind is tuple and len(value) == 1 else "") + brackets[1]
    if kind.__repr__ is object.__repr__ and depth >= 0 and getattr(value, "__dict__", None):
        fields = ["{}={}".format(name, _show(one, depth - 1)) for name, one in list(vars(value).items())[:8]]
        return "<{} {}>".format(kind.__name__, ", ".join(fields))
    for builtin in SIZED:
        if issubclass(kind, builtin) and builtin.__len__(value) > MOST_ITEMS:
            return "<{} of {} items>".format(kind.__name__, builtin.__len__(value))
    text = guarded(repr, value)
    return without_addresses(" ".join(text[: 4 * VALUE].split()))


class TooSlow(BaseException):
    """Raised in code of the program that takes too long to describe a value."""


def _call(function: "Callable[[Any], Any]", value: "Any") -> "Any":
    return function(value)


_CALL = _call.__code__
_slow = {}  # type: dict[int, type]


def _give_up(number: int, frame: "Union[FrameType, None]") -> None:
    """End what `_call` calls, and nothing else: the time may be over just before it, or just after."""
    caller = frame and frame.f_back
    while caller is not None:
        if caller.f_code is _CALL:
            raise TooSlow
        caller = caller.f_back


def guarded(function: "Callable[[Any], Any]", value: "Any") -> str:
    """`str` or `repr` of a value; its class's name when that raises or takes too long (in the main thread).

    A class whose objects took too long once is asked no more.
    """
    import _signal as signal  # type: ignore[import-not-found] # The module without enums: quicker to import.

    if id(type(value)) in _slow:
        return "<{}>".format(type(value).__name__)
    before = None  # type: Any
    armed = False
    try:
        if signal.getitimer(signal.ITIMER_REAL)[0] == 0:
            before = signal.signal(signal.SIGALRM, _give_up)
            armed = True
            signal.setitimer(signal.ITIMER_REAL, SLOW, 0.01)
    except (ValueError, AttributeError):
        pass  # Not in the main thread: no limit can be had.
    try:
        text = _call(function, value)
        return text if type(text) is str else "<{}>".format(type(value).__name__)
    except TooSlow:
        _slow[id(type(value))] = type(value)
        return "<{}>".format(type(value).__name__)
    except BaseException:  # The program's code may raise anything.
        return "<{}>".format(type(value).__name__)
    finally:
        if armed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)
