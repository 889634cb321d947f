"""Commands that run code: the program's, and the user's in it."""

import codeop
import re
import sys
import warnings

from debug_gym_core.debugging.inside.process import _settrace

from .breaking import Breaking
from .channel import Channel
from .conversation import documented
from .frames import keep_locals, line_of, local_names
from .jumps import BEFORE, begins_at, jump_target, why_not_to_jump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Dict, Optional

    Json = Dict[str, Any]

WITHOUT_ARGUMENT = {
    "continue": "c takes no argument: until LINE runs to a line, ignore N COUNT passes breakpoint N so many times",
    "return": "r takes no argument: a function cannot be made to return something else",
    "next": "n takes a count at most, outside of a breakpoint's commands; several commands are written one a line",
    "step": "s takes a count at most, outside of a breakpoint's commands; b FUNCTION, then c, stops in a function of"
    " that name",
}


@documented
class Running(Breaking):
    """Steps and jumps, restart and end, statements.

    Attributes:
        from_first_line: what to do at the program's first line, of a command that was given before it
    """

    def __init__(self, channel: "Channel", root: str) -> None:
        """See Conversation."""
        super().__init__(channel, root)
        self.from_first_line: "Optional[Callable[[FrameType], object]]" = None

    def stop_here(self, frame: "FrameType") -> bool:
        """See bdb, which compares lines also where there is none."""
        if frame.f_lineno is None and frame is self.stopframe:
            return self.stoplineno != -1 and line_of(frame) >= (self.stoplineno or 0)
        return super().stop_here(frame)

    def set_until(self, frame: "FrameType", lineno: "Optional[int]" = None) -> None:
        """See bdb, which counts on from the line also where there is none."""
        super().set_until(frame, line_of(frame) + 1 if lineno is None else lineno)

    def do_continue(self, arg: str) -> "Any":  # noqa: D102
        return None if self._without("continue", arg) else super().do_continue(arg)

    do_c = do_cont = do_continue

    def do_next(self, arg: str) -> "Any":  # noqa: D102
        if self._without("next", arg) or self._is_before_first_line():
            return None
        if self.at_entry:
            self.from_first_line = self.set_next
        return super().do_next(arg)

    do_n = do_next

    def do_step(self, arg: str) -> "Any":  # noqa: D102
        if self._without("step", arg) or self._is_before_first_line():
            return None
        if self.at_entry:
            self.from_first_line = lambda frame: self.set_step()
        return super().do_step(arg)

    do_s = do_step

    def do_return(self, arg: str) -> "Any":  # noqa: D102
        if self._without("return", arg) or self._is_before_first_line():
            return None
        result = super().do_return(arg)
        if self.at_entry and result:
            self.from_first_line = self.set_return
        return result

    do_r = do_return

    def do_until(self, arg: str) -> "Any":  # noqa: D102
        if self._is_before_first_line():
            return None
        frame = self.curframe
        if frame is not None and frame.f_lineno is None and arg.strip().isdigit() and int(arg) > line_of(frame):
            self.set_until(frame, int(arg))  # pdb would compare it with the line that there is none of
            return 1
        result = super().do_until(arg)
        if self.at_entry and result:
            self.from_first_line = lambda frame: self.set_until(frame, int(arg) if arg else None)
        return result

    do_unt = do_until

    def do_jump(self, arg: str) -> "Any":  # noqa: D102
        if self._is_before_first_line():
            return None
        if self._stop is not None and self._stop.error is not None and not self._stop.step:
            self.error("the exception is over, its frames run no more: c goes on, restart starts again")
            return None
        try:
            wanted = int(arg)
        except ValueError:
            return super().do_jump(arg)
        if self.at_entry:
            self.cmdqueue.insert(0, "jump " + arg)  # for the first line itself: nothing is compiled yet
            self.unannounced = True
            self.set_step()
            return 1
        if self.curframe is None or self.curindex + 1 != len(self.stack):  # pdb says so
            return super().do_jump(arg)
        frame = self.curframe
        statements = self.sources.statements(self.canonic(frame.f_code.co_filename))
        if statements is None:
            return super().do_jump(arg)
        line, refused = jump_target(statements, frame.f_code, wanted)
        if not refused and line < begins_at(frame.f_code):
            # What Python says of the line where it could jump; elsewhere it says that it cannot.
            refused = BEFORE.format(wanted) if self._at_line() else ""
        elif not refused:
            refused = why_not_to_jump(statements, frame.f_code, frame.f_lasti, frame.f_lineno, line)
        if refused:
            self.error("Jump failed: " + refused)
            return None
        before = frame.f_lasti
        try:
            result = super().do_jump(str(line))
        except RuntimeWarning as warning:  # of variables that have no value yet (Python 3.12), where it is an error
            self.message("RuntimeWarning: {}".format(warning))
            with warnings.catch_warnings(module=warnings):  # whatever the program has in sys.modules
                warnings.simplefilter("ignore", RuntimeWarning)
                result = super().do_jump(str(line))
        frame.f_locals  # noqa: B018  # up to Python 3.12, what pdb prints are those as they were read last
        self.jumped(frame, before)
        return result

    do_j = do_jump

    def _at_line(self) -> bool:
        """Whether the program is stopped before a line: elsewhere it cannot jump."""
        stop = self._stop
        return stop is not None and (stop.at is not None or (stop.reason == "step" and not stop.value))

    def jumped(self, frame: "FrameType", before: int) -> None:
        """A frame may have jumped, from this offset in its bytecode."""
        raise NotImplementedError

    def _without(self, command: str, arg: str) -> bool:
        """Refuse an argument that pdb would pass over in silence."""
        if arg.strip(" ()"):
            self.error(WITHOUT_ARGUMENT[command])
            return True
        return False

    def _is_before_first_line(self) -> bool:
        """Whether the program has no line of the user's own to step to; says so."""
        if self.before_runner:
            self.error("the program is a runner of tests: set a breakpoint (b file:line), then continue (c)")
        return self.before_runner

    # ---- the end

    def do_run(self, arg: str) -> "Any":  # noqa: D102
        import shlex

        message: "Json" = {"t": "restart"}
        if arg:
            try:
                message["args"] = shlex.split(arg)
            except ValueError as error:
                self.error("Cannot run {}: {}".format(arg, error))
                return
        message.update(self.output.take())
        self.remembered.add_to(message)
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
        message: "Json" = {"t": "quit"}
        message.update(self.output.take())
        self.remembered.add_to(message)
        self.channel.send(message)

    # ---- the user's code

    def default(self, line: str) -> "Any":
        """Execute a statement, which may go on over several lines."""
        self.hints.typed = line
        try:
            return self._execute(self._whole_statement(line[1:].lstrip() if line[:1] == "!" else line))
        finally:
            self.hints.typed = ""

    def _execute(self, source: str) -> "Any":
        feeding, self._feeding = self._feeding, ""
        frame = self.curframe
        try:
            with self._as_the_program(source):
                return super().default(source)
        finally:
            self._feeding = feeding
            keep_locals(frame)

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

    def do_interact(self, arg: str) -> "Any":  # noqa: D102
        import code

        if not self._rest:
            self.error("interact: write the lines to run below it, in the same call")
            return
        frame = self.curframe
        assert frame is not None
        names = dict(frame.f_globals)
        names.update(local_names(self))
        console = code.InteractiveConsole(names)
        streams, hook = sys.stderr, sys.displayhook
        sys.stderr = self.output
        sys.displayhook = self.displayhook  # Python's own would keep the value alive
        feeding, self._feeding = self._feeding, ""
        try:
            with self.signals.released():
                while self._rest:
                    console.push(self._feed())
                console.push("")
        except SystemExit:
            pass
        finally:
            sys.stderr, sys.displayhook = streams, hook
            self._feeding = feeding

    def do_debug(self, arg: str) -> "Any":  # noqa: D102
        self.message("note: plain pdb answers inside; q ends it")
        self._nested = True
        try:
            with self.signals.released():
                return super().do_debug(arg)
        finally:
            self._nested = False
            _settrace(None)
