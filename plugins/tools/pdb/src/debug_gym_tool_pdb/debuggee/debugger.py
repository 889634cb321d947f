"""The debugger: the program's life from its first line to its end, in each of its processes."""

import atexit
import bdb
import contextlib
import faulthandler
import os
import pdb
import runpy
import signal
import sys
import threading
import traceback

from debug_gym_core.debugging.inside.process import (
    INTERRUPT_SIGNAL,
    STACK_SIGNAL,
    _get_ident,
    _getframe,
    _getpid,
    _settrace,
    _signal,
    high_copy,
)

from .channel import _SIG_DFL, ARM_SIGNAL, Channel, Room, _take_back_builtins
from .family import watch_forks, watch_interpreters, watch_replacement
from .own_frames import is_ours
from .stop import Stop
from .stopping import Stopping
from .unittests import watch_unittest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

    from debug_gym_core.debugging.inside.programs import Program

    Json = Dict[str, Any]


LAST = ("last_type", "last_value", "last_traceback", "last_exc")
"""What `sys` has of the last uncaught exception."""


class Debugger(Stopping):
    """pdb over a channel."""

    def __init__(self, channel: "Channel", root: str) -> None:
        """Debug the calling process; its repository lies at `root`."""
        super().__init__(channel, root)
        self._children = 0
        self._status: "Any" = None
        self._uncaught: "Optional[Json]" = None

    def run_program(self, program: "Program") -> int:
        """Stop before the program's first line, run it, stop at its uncaught exception.

        Returns:
            its exit status, or minus the number of the signal by which Python would end it
        """
        self.program = program
        self.reset()
        atexit.register(self._let_go)
        atexit.register(self._finish)
        self._install()
        try:
            self._stop_at_entry()
            self.botframe = _getframe()
            if not self._continuing:
                self._awaited = self.canonic(program.filename)
                self.set_step()
            else:
                self.set_continue()
            self.stepper = None if self._continuing else _get_ident()
            self.resume(None)
            self.finder.instrument.started = True
            try:
                if program.uses_unittest:
                    watch_unittest(self)
                self._status = program.run()
            finally:
                _settrace(None)
        except SystemExit as error:
            self._status = _exit_status(error)
        except BaseException as error:
            if self.quitting and isinstance(error, bdb.BdbQuit):  # a debugger of the program's own raises it, too
                return 0
            self._status = 1
            self._at_uncaught(error)
            if type(error) is KeyboardInterrupt and sys.version_info >= (3, 8) and self._status == 1:
                self._status = -signal.SIGINT
        return int(self._status or 0)

    def _stop_at_entry(self) -> None:
        """Hold a conversation in a frame that looks like the program's first line, before any of it was compiled."""
        name = "__debug_gym_entry__"
        names = self.program.namespace
        self.at_entry = True

        def entry() -> None:
            names.pop(name, None)
            frame = _getframe(1)
            self.botframe = frame
            self.converse(Stop("entry"), lambda: self.interaction(frame, None))
            self.shown.left(id(frame))

        names[name] = entry
        code = compile("\n" * (self.program.first_line - 1) + name + "()", self.program.filename, "exec")
        exec(code, names)
        self.at_entry = False
        if self.quitting:
            raise bdb.BdbQuit

    def _install(self) -> None:
        _signal(INTERRUPT_SIGNAL, self.interrupt)
        _signal(ARM_SIGNAL, self.arm)
        with contextlib.suppress(OSError, AttributeError, ValueError):
            # A descriptor of its own: the program may close standard error, and the terminal must not hang up then.
            faulthandler.register(STACK_SIGNAL, high_copy(2), all_threads=True)
        self.take_hooks()
        self.tracers.install()
        watch_forks(self.before_fork, self.in_child)
        watch_interpreters(self.started)
        watch_replacement(self.before_replacement, self.not_replaced)
        if hasattr(threading, "excepthook"):
            self._thread_excepthook = threading.excepthook
            threading.excepthook = self._in_thread

    def take_hooks(self) -> None:
        """Make `breakpoint()` and `pdb.set_trace()` stop here."""
        sys.breakpointhook = self.hook
        pdb.set_trace = self.hook

    # ---- children

    def before_fork(self) -> None:
        """Count the children, so that each has a name."""
        self._children += 1

    def in_child(self) -> None:
        """Debug a forked child too; one of a command at the prompt has nothing to do with the host."""
        if _getpid() == self._pid:
            return
        Room.forked()
        if _get_ident() in self.busy or self.quitting or not self._turn.shared:
            self._leave_alone()
            return
        self._pid = self.channel.process = _getpid()
        self._turn.forked()
        self.busy = set()
        self.stepper = self._awaited = self._stop = None
        self._rest, self._feeding = [], None
        self._executing = self._due = False
        self.remembered.forked()
        self.signals.forked()
        self.hello = {}
        self.output.take()
        if sys.stdout is self.output:  # another thread was at its prompt
            sys.stdout = sys.__stdout__
        name = "child {}" if self.reporter.process is None else self.reporter.process + ".{}"
        self.reporter.process = name.format(self._children)
        self._children = 0
        self.set_continue()
        self.finder.wait_for()
        self.learn_breakpoints()
        self.tracers.trace_freely()

    def before_replacement(self) -> bool:
        """Tell the host before the program has another one in its place: after that nobody can.

        Returns:
            whether it was told; where the thread was not talking anyway, it is its turn then
        """
        if _getpid() != self._pid or self.channel.process or self.quitting:
            return False
        if _get_ident() not in self.busy and not self._turn.take():
            return False
        self._tell("replaced")
        return True

    def not_replaced(self) -> None:
        """Take back what `before_replacement` has told."""
        self._tell("stayed")
        if _get_ident() not in self.busy:
            self._turn.give()

    def _tell(self, what: str) -> None:
        """Send a message to which there is no answer; the calling thread stops nowhere meanwhile."""
        ident = _get_ident()
        talks = ident in self.busy
        self.busy.add(ident)
        try:
            self.channel.send({"t": what})
        finally:
            if not talks:
                self.busy.discard(ident)

    def _leave_alone(self) -> None:
        _settrace(None)
        threading.settrace(None)
        for number in (INTERRUPT_SIGNAL, ARM_SIGNAL):
            _signal(number, _SIG_DFL)
        with contextlib.suppress(OSError):
            os.close(self.channel.descriptor)

    # ---- the end

    def _in_thread(self, args: "Any") -> None:
        """Stop at an exception that ends a thread."""
        self._thread_excepthook(args)
        if args.exc_type is not SystemExit and not self.quitting and args.exc_value is not None:
            self.post_mortem(args.exc_value, Stop("exception"), None)

    def _at_uncaught(self, error: "BaseException") -> None:
        _settrace(None)
        step = error.__traceback__
        while step is not None and (is_ours(step.tb_frame) or step.tb_frame.f_code.co_filename == runpy.__file__):
            step = step.tb_next
        error.__traceback__ = step
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, step
        if sys.version_info >= (3, 12):
            sys.last_exc = error
        own = sys.excepthook is not sys.__excepthook__  # which may end the program
        if not own or self.channel.process:
            self._tell_of(error, step)
        if self.channel.process:
            return  # whoever waits for a child learns of its failure from its status
        message = self._undisturbed(lambda: self.values.said(error))
        self._uncaught = {"type": type(error).__name__, "message": message}
        self.post_mortem(error, Stop("exception"), None)
        if own:
            self._tell_of(error, step)

    def _tell_of(self, error: "BaseException", step: "Any") -> None:
        """Have an uncaught exception printed, by the program's way where it has one."""
        try:
            sys.excepthook(type(error), error, step)
        except SystemExit as end:
            self._status = _exit_status(end)
        except Exception:
            traceback.print_exception(type(error), error, step)

    def _finish(self) -> None:
        """Tell the host about the end; the last thing before the interpreter ends."""
        if _getpid() != self._pid or self.channel.process:
            return
        _settrace(None)
        self._turn.take()  # a daemon thread, or a child, may be talking
        _take_back_builtins()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BaseException):  # a stream of the program's own raises what it likes
                stream.flush()
        message: "Json" = {"t": "exit", "status": self._status, "quit": self.quitting}
        message.update(self.output.take())
        if self._uncaught:
            message["exception"] = self._uncaught
        self._add_started(message)
        if not self.quitting and not self._children:  # of those of a child, its parent knows nothing
            message["never"] = self.remembered.never_reached()
        self.remembered.add_to(message)
        self.channel.send(message)

    def _let_go(self) -> None:
        """Leave the program's objects to the interpreter; the last thing before it ends, in a child too."""
        _settrace(None)
        self.quitting = True  # what runs from here on, such as finalizers, stops nowhere
        with contextlib.suppress(MemoryError):
            self.finder.end()
        self.program.release()
        self._set_stopinfo(None, None)
        self.botframe = self.enterframe = None
        self.forget()
        self.displaying.clear()  # type: ignore[attr-defined]  # by frames


def end_by_interrupt() -> None:
    """Have Python end as by an uncaught KeyboardInterrupt, which was told already: by SIGINT, when all is finalized.

    Raises:
        KeyboardInterrupt: always
    """
    hook = sys.excepthook
    last = {name: getattr(sys, name) for name in LAST if hasattr(sys, name)}

    def silent(*error: "Any") -> None:
        sys.excepthook = hook
        vars(sys).update(last)

    sys.excepthook = silent
    raise KeyboardInterrupt


def _exit_status(error: "SystemExit") -> int:
    """The exit status that Python makes of a SystemExit, after printing what it prints."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    with contextlib.suppress(Exception):
        sys.stderr.write("{}\n".format(error.code))
    return 1
