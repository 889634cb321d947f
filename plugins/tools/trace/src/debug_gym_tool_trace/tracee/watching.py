"""Which call is followed, and what becomes of each event of it; where the events come from is a backend's matter."""

from debug_gym_core.debugging.inside.process import _get_ident, _getpid
from debug_gym_core.debugging.inside.signals import is_of_a_handler

from .channel import _main_ident
from .frames import caller, has_wrong_line, is_awaiting, is_transparent, kind_of, yielded_value
from .scope import Scope
from .story import MOST_CALLS, Call
from .telling import AT_ONCE, Telling
from .values import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Callable, Dict, List, Optional

    from .backend import Backend
    from .channel import Channel
    from .files import Files
    from .source import Definition

    Json = Dict[str, Any]


MOST_STEPS = 20000
"""Steps that are looked at, of all calls that are followed together; after that only how they end."""

MOST_HEARD = 200000
"""Calls of the repository's functions that are heard of while a call is followed."""

UNSEEN = "the program was near its recursion limit, or a handler of its own for a signal raised an exception meanwhile"
"""Why a call may not be followed of which nothing else is known."""

QUIET = ("StopIteration", "StopAsyncIteration", "GeneratorExit")
"""Exceptions by which loops and generators end; no failure."""


class Watch:
    """Waits for one call of a function and follows it.

    Attributes:
        root: the call that is followed; None: it was not made yet
        count: calls so far, that one with them
        done: whether it is over
        backend: where events come from; set once, before `start`
        test: name of the test that runs, as the test runner has it
        blind: whether calls may not have been heard of
    """

    backend: "Backend"

    def __init__(self, channel: "Channel", files: "Files", number: int, depth: int) -> None:
        """Wait for nothing yet.

        Args:
            channel: where to tell of it
            files: the repository's
            number: of the call, from 1
            depth: how many levels of calls below it are followed as it is
        """
        self._telling = Telling(channel)
        self._files = files
        self._number = number
        self._depth = depth
        self._values = Values()
        self._process = _getpid()
        self._calls: "Dict[int, Call]" = {}
        self._busy: "Optional[int]" = None
        self._steps = 0
        self._heard = 0
        self._deaf = False
        self._codes: "Dict[int, Any]" = {}
        self._places: "frozenset[Any]" = frozenset()
        self._file = ""
        self.names: "frozenset[str]" = frozenset()
        self.root: "Optional[Call]" = None
        self.count = 0
        self.done = False
        self.problem = ""
        self.test = ""
        self.blind = False

    def want(self, file: str, definitions: "List[Definition]") -> None:
        """Wait for calls of a function.

        Args:
            file: the real name of its file
            definitions: where it is defined; there may be several, of a property say
        """
        self._file = file
        self.names = frozenset(one.code for one in definitions)
        self._places = frozenset((one.code, one.first) for one in definitions if one.code != "<module>")

    # ---- before the call

    def is_wanted(self, code: "CodeType") -> bool:
        """Whether a code object is that of the function; its name is one of `names`."""
        known = self._codes.get(id(code))
        if known is None:
            here = (code.co_name, code.co_firstlineno) in self._places or code.co_name == "<module>"
            here = here and self._files.real(code.co_filename) == self._file and self._files.is_written(code)
            known = self._codes[id(code)] = (code, here)
        found: bool = known[1]
        return found

    def begins(self, frame: "FrameType") -> bool:
        """A call of the function begins; whether it is the one to follow from here on."""
        if self._busy == _get_ident() or self.root is not None or _getpid() != self._process:
            return False
        self.count += 1
        if self.count < self._number:
            self._guarded(self._counted)
        if self.count != self._number:
            return False
        try:
            self._guarded(self._begin, frame)
        finally:
            if self.root is None:
                self.problem = self.problem or UNSEEN
        return self.root is not None and not self.done

    def _counted(self) -> None:
        """Another call than the one to follow: the host knows of it, however the program ends."""
        if self._telling.is_due(self.count):
            self.tell()

    def _begin(self, frame: "FrameType") -> None:
        about = self._about(frame)
        about["call"] = self.count
        about["definition"] = frame.f_code.co_firstlineno
        about["from"] = self._files.place(caller(frame, self._files))
        about["main_thread"] = _get_ident() == _main_ident
        about["test"] = self.test
        self.root = self._call(about, frame, 0, True)
        self.tell()

    def _about(self, frame: "FrameType") -> "Json":
        code = frame.f_code
        name = self._files.function(code) if code.co_name != "<module>" else code.co_name
        return {
            "function": name,
            "file": self._files.path(code.co_filename),
            "line": code.co_firstlineno,
            "kind": kind_of(code),
        }

    def _call(self, about: "Json", frame: "FrameType", level: int, detailed: bool) -> "Call":
        call = Call(about, frame, Scope(frame, self._values, self._files, detailed), level, detailed)
        self._calls[id(frame)] = call
        self.backend.follow(call)
        return call

    # ---- while it lasts

    def find(self, frame: "FrameType") -> "Optional[Call]":
        """The call that a frame is, of those that are followed or made by them."""
        if self._busy == _get_ident():
            return None
        call = self._calls.get(id(frame))
        return call if call is not None and call.frame is frame else None

    def called(self, frame: "FrameType") -> "Optional[Call]":
        """A function begins; it is a call only when one that is followed made it."""
        if self._busy == _get_ident() or self.done or self.root is None:
            return None
        self._heard += 1
        if self._heard > MOST_HEARD:
            self._deaf = True
            self.backend.no_more_calls()
            return None
        code = frame.f_code
        if is_transparent(code) or not self._files.is_own(code.co_filename):
            return None
        parent = self._parent(frame)
        if parent is None or not parent.detailed or parent.step is None or not self._files.is_written(code):
            return None
        if len(parent.step.calls) >= MOST_CALLS or parent.unfollowed:
            parent.step.more_calls += 1
            return None
        call: "Optional[Call]" = self._guarded(self._called, frame, parent)
        return call

    def _parent(self, frame: "FrameType") -> "Optional[Call]":
        """The call that a frame was called by, or goes on by."""
        outer = caller(frame, self._files)
        return self._calls.get(id(outer)) if outer is not None else None

    def _called(self, frame: "FrameType", parent: "Call") -> "Optional[Call]":
        detailed = parent.level < self._depth and self._steps < MOST_STEPS
        about = self._about(frame)
        if detailed:
            about["definition"] = frame.f_code.co_firstlineno
        call = self._call(about, frame, parent.level + 1, detailed)
        assert parent.step is not None
        parent.step.makes(call)
        return call

    def line(self, call: "Call", frame: "FrameType", line: int) -> None:
        """A followed call is about to carry out a line."""
        if self.done or not call.detailed:
            return
        if call.unfollowed or self._steps >= MOST_STEPS:
            if not self._deaf:
                self._deaf = True
                self.backend.no_more_calls()
            call.unfollowed += 1
            if call.unfollowed > MOST_HEARD:
                self.backend.end_only(call)
            return
        source = self._files.source(frame.f_code.co_filename)
        unit = source.unit(line)
        if not call.is_step(unit, frame.f_lasti):
            return
        self._guarded(self._step, call, frame, unit, source)

    def handles(self, call: "Call", error: "Optional[BaseException]") -> None:
        """A call may handle an exception at the line that it begins: it may be raised again without a word."""
        if error is None or id(error) == call.outer:
            call.handled, call.handled_id = None, 0
        elif id(error) != call.handled_id:
            call.handled_id = id(error)
            self._guarded(self._handles, call, error)

    def _handles(self, call: "Call", error: "BaseException") -> None:
        call.handled = self._values.exception(error)

    def _step(self, call: "Call", frame: "FrameType", unit: "Any", source: "Any") -> None:
        self._finish(call, frame)
        call.begin(unit, source, frame.f_lasti)
        self._steps += 1
        self.tell(slowly=True)

    def _finish(self, call: "Call", frame: "FrameType") -> None:
        """See what the last step changed."""
        if call.detailed:
            changed = call.scope.changes(frame)
            if call.unfollowed:
                call.at_end = changed
            elif call.step is not None:
                known = dict(call.step.changed)
                known.update(changed)
                call.step.changed = list(known.items())

    def raised(self, call: "Call", error: "BaseException", inside: bool = False) -> None:
        """An exception is raised in a call, or comes to it from one that it made.

        Args:
            call: which
            error: the exception
            inside: whether no `raise` of its own raises it, so that it may be a loop's or a generator's that ends
        """
        self._guarded(self._raised, call, error, inside and type(error).__name__ in QUIET)

    def _raised(self, call: "Call", error: "BaseException", quiet: bool) -> None:
        said = self._values.exception(error)
        call.hears(said, quiet)
        if call.step is not None and type(error).__name__ not in QUIET:
            call.step.raises(said)

    def yielded(self, call: "Call", frame: "FrameType", value: "Any") -> None:
        """A call is left for a while."""
        self._guarded(self._yielded, call, frame, value)

    def _yielded(self, call: "Call", frame: "FrameType", value: "Any") -> None:
        if call.step is None or not call.step.unit.collects:  # or it may have variables that are not its own
            self._finish(call, frame)
        call.ended = {"how": "suspended", "line": frame.f_lineno}
        if is_awaiting(frame, value):
            if call.step is not None:
                call.step.awaited += 1
        else:
            call.yields_value(self._values.text(yielded_value(value)))
        self.tell(slowly=True)

    def returned(self, call: "Call", frame: "FrameType", value: "Any") -> None:
        """A call is over."""
        self._guarded(self._ended, call, frame, "returned", value)

    def unwound(self, call: "Call", frame: "FrameType", error: "BaseException") -> None:
        """A call is over by an exception."""
        self._guarded(self._ended, call, frame, "raised", error)

    def leaves(self, call: "Call", frame: "FrameType") -> None:
        """An exception leaves a call, as far as is known which; `left` follows."""
        self._guarded(self._leaves, call, frame)

    def _leaves(self, call: "Call", frame: "FrameType") -> None:
        self._finish(call, frame)
        line = call.line if has_wrong_line(frame) else frame.f_lineno
        call.ended = {"how": "raised", "line": line, "exception": call.left_by}

    def left(self, call: "Call", error: "Optional[BaseException]") -> None:
        """It has left it; None: who called it does not say more."""
        if call.ended is not None and call.frame is not None:
            self._guarded(self._left, call, error)

    def _left(self, call: "Call", error: "Optional[BaseException]") -> None:
        assert call.ended is not None and call.frame is not None
        if error is not None:
            call.ended["exception"] = self._values.exception(error)
        self._end(call, call.frame, call.ended)

    def _ended(self, call: "Call", frame: "FrameType", how: str, value: "Any") -> None:
        self._finish(call, frame)
        ended: "Json" = {"how": how, "line": frame.f_lineno}
        if how == "returned":
            ended["value"] = self._values.text(value, 2 * 120)
        else:
            ended["exception"] = self._values.exception(value)
        self._end(call, frame, ended)

    def _end(self, call: "Call", frame: "FrameType", ended: "Json") -> None:
        parent = self._parent(frame)
        call.end(ended, parent.step if parent is not None else None)
        self._calls.pop(id(frame), None)
        if call is self.root:
            self.stop()
            self.tell()

    def stop(self) -> None:
        """Follow nothing any more."""
        self.done = True
        self._calls.clear()
        self.backend.stop()

    # ---- what is told

    def tell(self, slowly: bool = False, **more: "Any") -> None:
        """Tell the host what was seen so far; `slowly`: if it was not told just now."""
        if slowly and not self._telling.is_due(self._steps):
            return
        message: "Json" = {"t": "story", "calls": self.count, "done": self.done, "problem": self.problem}
        message.update(all=self.count < AT_ONCE, blind=self.blind)
        message["story"] = self.root.as_json() if self.root is not None else None
        message.update(more)
        self._telling.tell(message)

    def tell_now(self, frame: "Optional[FrameType]") -> None:
        """Tell it where the program is too: a frame, or the one of the repository that led there."""
        if frame is not None and not self._files.is_own(frame.f_code.co_filename):
            frame = caller(frame, self._files)
        self._busy = _get_ident()
        try:
            self.tell(now=self._files.place(frame))
        finally:
            self._busy = None

    def test_ended(self) -> bool:
        """A test is over: whether the call was in it, and is over too."""
        self.backend.settle()
        if self.root is None or self.root.about["test"] != self.test:
            return False
        if self.program_ended():
            self.tell()
        return self.done

    def program_ended(self) -> bool:
        """What would have run the call is over: whether its end was missed, in the main thread; it may wait."""
        self.backend.settle()
        self.blind = self.blind or not (self.done or self.backend.hears())
        root = self.root
        if root is None or self.done or root.state != "running" or not root.about["main_thread"]:
            return False
        root.end({"how": "unseen"})
        self.stop()
        return True

    def _guarded(self, act: "Callable[..., Any]", *arguments: "Any") -> "Any":
        """Do what an event asks for: what fails in it is no concern of the program's, and ends the following."""
        self._busy = _get_ident()
        try:
            return act(*arguments)
        except RecursionError:  # the program is at its limit
            return None
        except Exception as error:
            if is_of_a_handler(error):
                if not self.backend.lasts:
                    said = "an exception of the program's own signal handler ({}) came while it was looked at"
                    self._give_up(said.format(type(error).__name__))
                raise
            self._give_up("{}: {}".format(type(error).__name__, error))
            return None
        finally:
            self._values.end()
            self._busy = None

    def _give_up(self, why: str) -> None:
        """Follow nothing any more, and say why."""
        self.problem = why
        self.stop()
        self.tell()
