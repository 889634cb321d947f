"""Where the program stops: one thread at a time talks to the host."""

import bdb
import pdb
import sys
import traceback

from debug_gym_core.debugging.inside.process import _get_ident, _getframe, _getpid, _settrace

from .channel import Channel, Room, _gettrace, _give_builtins, _take_back_builtins
from .family import Turn
from .frames import ends_async_for, is_hidden, line_of, real_line
from .own_frames import is_ours
from .stop import Stop
from .tracing import Tracing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any, Callable, List, Optional, Set, Tuple


OF_A_STOP = ("_frame", "_retval", "_exception")
"""Variables that pdb makes at a stop."""


class Stopping(Tracing):
    """Stops: at a line, at an exception, where the program or the host asks for one."""

    def __init__(self, channel: "Channel", root: str) -> None:
        """See Conversation."""
        super().__init__(channel, root)
        self._turn = Turn(channel.descriptor)

    def converse(self, stop: "Stop", talk: "Callable[[], object]", wait: bool = True) -> bool:
        """Let one thread talk to the host while it is stopped.

        Args:
            stop: why it is stopped
            talk: runs pdb's command loop
            wait: for another thread's conversation to end; else nothing happens while there is one

        Returns:
            whether it talked
        """
        if _getpid() != self._pid or self.quitting:
            return False
        with Room():
            if not self._turn.take(wait):
                return False
            talked = False
            try:
                self._replaced = _take_back_builtins()
                try:
                    talked = self._talk(stop, talk)
                finally:
                    _give_builtins(self._replaced)
            finally:
                self._turn.give(keep=talked and not self._continuing)
            return talked

    def _talk(self, stop: "Stop", talk: "Callable[[], object]") -> bool:
        """Talk in one's turn, unless there is nothing to stop for any more; returns whether there was."""
        goes_on = False
        try:
            gone = self.learn_breakpoints()
            if self.quitting or (stop.step and self.stepper != _get_ident()):
                return False  # the step was overtaken: meanwhile another thread stopped and was told to go on
            cleared = stop.at is not None and bdb.Breakpoint.bpbynumber[stop.at.number] is not stop.at
            if cleared or stop.details.get("breakpoint") in gone:
                return False  # whoever had the turn before cleared it, or it was temporary and stopped there
            self.busy.add(_get_ident())
            self._stop, self._due = stop, True
            self.signals.hold()
            try:
                talk()
            except KeyboardInterrupt:
                self.message("--KeyboardInterrupt--")
            # Before the turn is another thread's, which must know whose step it is.
            self.stepper = None if self._continuing else _get_ident()
            goes_on = not self.quitting
            return True
        finally:
            if not goes_on:  # else they are still held back while the program is armed: until `deliver`
                self.signals.release()
            self._stop, self._due = None, False
            if sys.version_info < (3, 14):
                self.curframe_locals = {}  # pdb would keep the program's objects alive
            self.convenience = {name: one for name, one in self.convenience.items() if name not in OF_A_STOP}
            self.busy.discard(_get_ident())
            self.remembered.share()

    def learn_breakpoints(self) -> "Set[int]":
        """Take over what happened to the breakpoints in other processes; the numbers of those that are gone."""
        changed, gone = self.remembered.learn()
        if changed:
            self.finder.watch()
        return gone

    # ---- as pdb stops

    def user_call(self, frame: "FrameType", argument_list: "Any") -> None:
        """Stop at a call while stepping."""
        if self._awaited is None and self.converse(
            Stop("call", step=True), lambda: pdb.Pdb.user_call(self, frame, argument_list)
        ):
            self.resume(frame)

    def user_line(self, frame: "FrameType") -> None:
        """Stop at a line."""
        elsewhere = self._awaited is not None and self.canonic(frame.f_code.co_filename) != self._awaited
        if elsewhere and _get_ident() not in self._hits and not self.break_here(frame):
            return
        hit = self._hits.pop(_get_ident(), None)
        self._awaited = None
        if self.from_first_line is not None:  # where the command at the entry was to go on from
            go_on, self.from_first_line = self.from_first_line, None
            if not self.break_here(frame):
                go_on(frame)
                self.resume(frame)
                return
            hit = self._hits.pop(_get_ident(), None)
        if hit is None:
            stop = Stop("step", step=True)
        else:
            stop = Stop("breakpoint", breakpoint=hit.breakpoint.number, note=hit.note)
            stop.at = hit.breakpoint

        def talk() -> None:
            self._note_others(frame, stop)
            self.currentbp = hit.breakpoint.number if hit is not None else 0
            if hit is not None and hit.last:
                self.message("Deleted {}".format(hit.breakpoint))
                self.clear_bpbynumber(hit.breakpoint.number)
            try:
                pdb.Pdb.user_line(self, frame)
            except KeyboardInterrupt:  # in the commands of the breakpoint
                self.message("--KeyboardInterrupt--")
                self.interaction(frame, None)

        if self.converse(stop, talk):
            self.resume(frame)

    def _note_others(self, frame: "FrameType", stop: "Stop") -> None:
        """Let the other breakpoints of a place know why a stop there is not theirs."""
        why = "a step stopped there first" if stop.at is None else "its condition did not hold"
        line = self.finder.begun(frame) or line_of(frame)
        for one in bdb.Breakpoint.bplist.get((self.canonic(frame.f_code.co_filename), line), ()):
            if one is stop.at:  # none after it was asked
                why = "breakpoint {} stopped there first".format(one.number)
            elif one.enabled and one.funcname in (None, frame.f_code.co_name):
                one.passed = why  # type: ignore[attr-defined]

    def user_return(self, frame: "FrameType", return_value: "Any") -> None:
        """Stop at a return."""
        if self._awaited is None:
            stop = Stop("return", value=(return_value,), step=True)

            def talk() -> None:
                self.message("--Return--")
                self.interaction(frame, None)

            if self.converse(stop, talk):
                self.resume(frame)

    def user_exception(self, frame: "FrameType", exc_info: "Any") -> None:
        """Stop at an exception while stepping."""
        if self._awaited is None:
            error = exc_info[1] if isinstance(exc_info[1], BaseException) else None
            stop = Stop("exception", error=error, step=True)
            if isinstance(error, StopIteration) and exc_info[2] is None:  # what is awaited, or a generator, ended
                stop = Stop("step", value=(error.value,), step=True)
            elif isinstance(error, StopAsyncIteration) and ends_async_for(frame):
                stop = Stop("step", step=True)

            def talk() -> None:
                internal = "Internal " if not exc_info[2] and exc_info[0] is StopIteration else ""
                self.message(internal + self._in_words(exc_info[0], exc_info[1]))
                self.interaction(frame, exc_info[2])

            if self.converse(stop, talk):
                self.resume(frame)

    def _in_words(self, kind: "Any", value: "Any") -> str:
        """An exception as Python ends a traceback; its text is code of the program's."""
        text, odd = self.guarded(_last_line, kind, value)
        return str(text) if not odd else "{}: <its text {}>".format(getattr(kind, "__name__", kind), odd)

    def get_stack(
        self, f: "Optional[FrameType]", t: "Optional[TracebackType]"
    ) -> "Tuple[List[Tuple[FrameType, int]], int]":
        """The stack without our own frames; in post-mortem the current one is the last that is not hidden."""
        stack, index = super().get_stack(f, t)
        before = sum(1 for frame, _ in stack[: index + 1] if is_ours(frame))
        shown = [(frame, real_line(frame, line)) for frame, line in stack if not is_ours(frame)]
        if not shown:
            return stack, index
        index = max(0, min(index - before, len(shown) - 1))
        if f is None:
            index = len(shown) - 1
            while index and is_hidden(shown[index][0]):
                index -= 1
        return shown, index

    # ---- in the middle of a line, and after the end

    def stop_now(self, frame: "FrameType", stop: "Stop", wait: bool = True) -> None:
        """Stop in a frame that is in the middle of a line."""
        self.tracers.keep()
        tracer = _gettrace()
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
        self.tracers.keep()
        _settrace(None)
        held = error if sys.version_info >= (3, 13) else error.__traceback__
        for frame, _ in traceback.walk_tb(error.__traceback__):
            self.shown.left(id(frame))
        if error.__traceback__ is not None:
            stop.error = error
            self.converse(stop, lambda: self.interaction(None, held))  # type: ignore[arg-type]
        if not self.quitting:
            self.set_continue()
            self.stepper = None
            self.resume(then)

    def interrupt(self, signum: int, frame: "Optional[FrameType]") -> None:
        """Handle the host's signal: stop at once in the very frame that runs, or end the command that runs."""
        if _getpid() != self._pid or self.quitting:
            return
        if self.busy:
            self._interrupt_command()
            return
        self.end_condition(frame)
        while frame is not None and (is_ours(frame) or frame.f_code.co_filename in (bdb.__file__, pdb.__file__)):
            frame = frame.f_back
        if frame is not None:
            self.stop_now(frame, Stop("interrupt"), wait=False)

    def _interrupt_command(self) -> None:
        if not self._executing:
            return
        self._failed = self._interrupted = True
        if _get_ident() in self.busy:
            self.signals.interrupt()
            return
        try:
            import ctypes

            for ident in self.busy:
                raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
                raise_in(ctypes.c_ulong(ident), ctypes.py_object(KeyboardInterrupt))
        except (ImportError, AttributeError):
            pass

    def hook(self, *args: "Any", **kwargs: "Any") -> None:
        """Stop where the program calls `breakpoint()` or `pdb.set_trace()`."""
        frame = _getframe(1)
        if _getpid() == self._pid and not self.quitting and _get_ident() not in self.busy:
            if kwargs.get("header") is not None:
                self.message(kwargs["header"])
            self.stop_now(frame, Stop("breakpoint"))


def _last_line(kind: "Any", value: "Any") -> str:
    return traceback.format_exception_only(kind, value)[-1].strip()
