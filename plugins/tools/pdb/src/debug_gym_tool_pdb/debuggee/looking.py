"""Commands that look, and leave the program as it is."""

import codeop
import contextlib
import inspect
import io
import linecache
import pdb
import re
import sys
import types

from debug_gym_core.debugging.inside.limits import TimeLimit, repr_of

from .channel import _GONE, _ORIGINAL_BUILTINS, Channel, _give_builtins, _take_back_builtins
from .conversation import IGNORED, Conversation, documented, shortened
from .evaluating import evaluate
from .frames import folded, has_arguments, in_order, is_cleared, is_shown, line_of, local_names
from .guide import DIFFERENCES, long_name, overview
from .hints import MOST_NAMED
from .locations import NAME, NO_LINE
from .report import CLEARED, MOST_LOCALS
from .values import REPR_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Dict, Iterator, Optional, Tuple

    from .channel import Replaced

for _name in ("compile", "eval", "exec", "repr"):
    # What pdb evaluates sees the built-in functions of the program; pdb does not evaluate by them.
    vars(pdb).setdefault(_name, _ORIGINAL_BUILTINS[_name])
    vars(codeop).setdefault(_name, _ORIGINAL_BUILTINS[_name])

CONVENIENCE = "__pdb_convenience_variables"
HELP_LENGTH = 1500
MOST_LINES = 100
"""Lines that an expression may have."""
MOST_REPEATED = 3
"""Frames of a recursion that are shown rather than counted."""


@documented
class Looking(Conversation):
    """Help, the stack, source, values.

    Attributes:
        convenience: variables that are pdb's, `$name`, and not the program's
    """

    def __init__(self, channel: "Channel", root: str) -> None:
        """See Conversation."""
        super().__init__(channel, root)
        self._replaced: "Replaced" = []
        self.convenience: "Dict[str, Any]" = {}

    def do_help(self, arg: str) -> "Any":  # noqa: D102
        topic = arg.strip(" ()")
        if topic in ("", "pdb"):
            return self.message(overview(self.rewinds))
        collected = io.StringIO()
        saved, self.stdout = self.stdout, collected
        try:
            super().do_help(topic)
        finally:
            self.stdout = saved
        text = collected.getvalue()
        if self._failed:
            self.stdout.write(text)
            return None
        text = inspect.cleandoc(text)
        if len(text) > HELP_LENGTH:
            text = text[:HELP_LENGTH].rpartition("\n")[0] + "\n[...]"
        self.message("\n".join(part for part in (text, DIFFERENCES.get(long_name(topic), "")) if part))
        return None

    do_h = do_help

    def do_where(self, arg: str) -> "Any":  # noqa: D102
        if not arg:
            own = [place for place, (frame, _) in enumerate(self.stack) if self.files.is_own(frame.f_code.co_filename)]
            hidden = own[0] if own and own[0] > 2 and own[0] <= self.curindex else 0
            self._print_folded(hidden)
            if hidden:
                self.message("({} frames of the runner above these: w {})".format(hidden, len(self.stack)))
            return
        try:
            count = int(arg)
        except ValueError:
            self.error("Invalid count ({})".format(arg))
            return
        for entry in self.stack[-count:] if count > 0 else self.stack[: -count or None]:
            self.print_stack_entry(entry)

    do_w = do_bt = do_where

    def _print_folded(self, begin: int) -> None:
        """Print the stack from its `begin`, without the middle of a recursion."""
        for at, length, times in folded([(frame.f_code, line) for frame, line in self.stack[begin:]]):
            end = begin + at + length * times
            cut = range(begin + at + length, end - length)
            if len(cut) < MOST_REPEATED or self.curindex in cut:
                cut = range(0)
            for place in range(begin + at, end):
                if place not in cut:
                    self.print_stack_entry(self.stack[place])
                elif place == cut[0]:
                    self.message("  [{} more frames like this: w {}]".format(len(cut), len(self.stack)))

    def do_args(self, arg: str) -> "Any":  # noqa: D102
        frame = self.curframe
        assert frame is not None
        if is_cleared(frame):
            return self.message(CLEARED)
        if not has_arguments(frame.f_code):
            self.message("{} has no arguments.".format(frame.f_code.co_name))
            return None
        return super().do_args(arg)

    do_a = do_args

    def do_list(self, arg: str) -> "Any":  # noqa: D102
        if self._has_no_line("source"):
            return None
        match = re.match(r"(.+?)\s*:\s*(\d+)\s*(?:,\s*(\d+))?\Z", arg)
        if match:
            return self._list_file(match.group(1), int(match.group(2)), match.group(3))
        if arg.endswith(".py") and not arg.startswith("."):
            return self._list_file(arg, 1, "11")
        if NAME.match(arg):
            return self.do_source(arg)
        if self._is_in_ignored():
            return self.error(IGNORED)
        here = self.curframe
        if here is not None and here.f_lineno is None and (arg == "." or (not arg and self.lineno is None)):
            first = max(1, line_of(here) - 5)  # pdb would count from its line
            arg = "{}, {}".format(first, first + 10)
        with self.files.lines_of(here):
            return super().do_list(arg)

    do_l = do_list

    def _list_file(self, name: str, first: int, last: "Optional[str]") -> None:
        path = self.lookupmodule(name)
        if path is None:
            self.error(self.files.missing(name))
        elif self.files.is_ignored(path):
            self.error(IGNORED)
        else:
            lines = linecache.getlines(path)
            begin, end = (max(1, first), int(last)) if last else (max(1, first - 5), first + 5)
            end = begin + end if last and end < begin else end  # a count then, to pdb
            if begin > len(lines):
                self.error("{} has {} lines".format(self.files.path(path), len(lines)))
            else:
                self._print_lines(lines[begin - 1 : end], begin, self.get_file_breaks(self.canonic(path)))

    def do_longlist(self, arg: str) -> "Any":  # noqa: D102
        if self._has_no_line("source"):
            return None
        if self._is_in_ignored():
            return self.error(IGNORED)
        with self.files.lines_of(self.curframe):
            return super().do_longlist(arg)

    do_ll = do_longlist

    def _is_in_ignored(self) -> bool:
        """Whether the current frame is of a file that is ignored in the task."""
        return self.curframe is not None and self.is_ignored(self.curframe)

    def _has_no_line(self, what: str) -> bool:
        """Whether the program has no line of the user's own to show; says so."""
        if self.before_runner:
            self.error(NO_LINE.format(what))
        return self.before_runner

    def do_p(self, arg: str) -> "Any":  # noqa: D102
        return self._with_expression("p", arg, super().do_p)

    def do_pp(self, arg: str) -> "Any":  # noqa: D102
        return self._with_expression("pp", arg, super().do_pp)

    def do_whatis(self, arg: str) -> "Any":  # noqa: D102
        return self._with_expression("whatis", arg, super().do_whatis)

    def do_source(self, arg: str) -> "Any":  # noqa: D102
        return self._with_expression("source", arg, self._show_source)

    def _show_source(self, arg: str) -> "Any":
        evaluate, found = self._getval, contextlib.ExitStack()

        def checked(text: str) -> "Any":
            value = evaluate(text)
            if self.is_ignored(value):
                self.error(IGNORED)
                raise ValueError(IGNORED)
            found.enter_context(self.files.lines_of(value))
            return value

        self._getval = checked  # type: ignore[method-assign, assignment]
        try:
            with found:
                return super().do_source(arg)
        finally:
            del self._getval

    def _with_expression(self, command: str, arg: str, do: "Callable[[str], Any]") -> "Any":
        if not arg.strip():
            known = [name for name in local_names(self) if is_shown(name)]
            if self.curframe is not None:
                known = in_order(known, self.curframe)
            names = ", ".join(known[:MOST_NAMED])
            self.error("{} takes an expression{}".format(command, ", such as one of: " + names if names else ""))
            return None
        return do(self._whole_expression(arg))

    def _whole_expression(self, source: str) -> str:
        """Add the lines that an expression needs to be complete, where it is so with those that follow."""
        if not self._rest:
            return source
        lines = [source, *self._rest[:MOST_LINES]]
        for count in range(1, len(lines) + 1):
            whole = "\n".join(lines[:count])
            try:
                is_whole = codeop.compile_command(whole, "<stdin>", "eval") is not None
            except (SyntaxError, ValueError, OverflowError):
                break
            if is_whole:
                for _ in range(count - 1):
                    self._feed()
                return whole
        return source

    def do_alias(self, arg: str) -> "Any":  # noqa: D102
        if not arg and not self.aliases:
            self.message("There are no aliases.")
            return None
        return super().do_alias(arg)

    def do_unalias(self, arg: str) -> "Any":  # noqa: D102
        if arg.strip() not in self.aliases:
            self.error("there is no alias {}".format(arg.strip()))
            return None
        return super().do_unalias(arg)

    def do_threads(self, arg: str) -> None:
        """threads

        List all threads and where each is, innermost call first, in the
        repository's own code; an asterisk marks the one that is stopped.
        The others run on while one is stopped.
        """  # noqa: D403, D415 (what `help threads` prints)
        self.message(self.reporter.all_threads(self.stack))

    do_th = do_threads

    # ---- values

    def show_locals(self) -> None:
        """Show the variables of the current frame as the stop report does."""
        values = local_names(self)
        names = [name for name in list(values) if is_shown(name)]
        if self.curframe is not None and values is self.curframe.f_globals:
            kinds = (types.ModuleType, types.FunctionType, type)
            names = [name for name in names if not issubclass(type(values[name]), kinds)]
        if self.curframe is not None:
            names = in_order(names, self.curframe)
        with TimeLimit(REPR_SECONDS) as limit:
            for name in names[:MOST_LOCALS]:
                self.message("{} = {}".format(name, self.values.describe(values[name], limit)))
        if len(names) > MOST_LOCALS or not names:
            cleared = self.curframe is not None and is_cleared(self.curframe)
            nothing = CLEARED if cleared else "There are none."
            self.message("({} more: pp locals())".format(len(names) - MOST_LOCALS) if names else nothing)

    def do_retval(self, arg: str) -> "Any":  # noqa: D102
        stop = self._stop
        if stop is None or stop.reason != "return" or self.curindex + 1 != len(self.stack):
            self.error("Not yet returned!")
        else:
            self.message(self._whole(stop.value[0]))

    do_rv = do_retval

    def set_convenience_variable(self, frame: "FrameType", name: str, value: "Any") -> None:
        """Keep a variable of pdb's (`$name`, from 3.12 on) out of the program's own."""
        self.convenience[name] = value

    @contextlib.contextmanager
    def _as_the_program(self, text: str) -> "Iterator[None]":
        """Evaluate with the functions that the program has: pdb itself works with Python's own.

        Args:
            text: what is evaluated; pdb's own names are there only for one that has them
        """
        names = self.curframe.f_globals if self.curframe is not None else {}
        own = self._own_names(text)
        before = {name: names.get(name, _GONE) for name in own}
        names.update(own)
        vars(pdb).update(eval=evaluate, exec=evaluate)  # for as long: the program's own pdb is none of ours
        _give_builtins(self._replaced)
        try:
            with self.signals.released():
                yield
        finally:
            self._replaced = _take_back_builtins()
            vars(pdb).update((name, _ORIGINAL_BUILTINS[name]) for name in ("eval", "exec"))
            for name, value in before.items():
                if value is _GONE:
                    names.pop(name, None)
                else:
                    names[name] = value

    def _own_names(self, text: str) -> "Dict[str, Any]":
        """What pdb calls the value that is being returned, the exception that is on its way, and its own variables."""
        stop = self._stop
        found: "Dict[str, Any]" = {}
        if CONVENIENCE in text:
            found[CONVENIENCE] = self.convenience
        if stop is not None and self.curindex + 1 == len(self.stack):
            if "__return__" in text and stop.reason == "return":
                found["__return__"] = stop.value[0]
            if "__exception__" in text and stop.error is not None:
                found["__exception__"] = type(stop.error), stop.error
        return found

    def _exec_in_closure(self, *arguments: "Any") -> bool:
        """Leave statements to `evaluate`: pdb (from 3.13 on) would carry out twice what raises."""
        return False

    def _getval(self, arg: str) -> "Any":
        frame = self.curframe
        assert frame is not None
        try:
            with self._as_the_program(arg):
                return evaluate(arg, frame.f_globals, local_names(self))
        except BaseException as error:  # also one that a handler of a signal raised just before or after
            self.error(self.values.as_pdb_says(error))
            raise

    def _getval_except(self, arg: str, *args: "Any", **kwargs: "Any") -> "Any":
        with self._as_the_program(arg):
            return super()._getval_except(arg, *args, **kwargs)

    # ---- expressions that are shown at each stop

    def preloop(self) -> None:
        """Show what changed of them; from 3.13 on pdb does so with the frame."""
        if sys.version_info < (3, 13):
            self._show_display()

    def _show_display(self) -> None:
        displaying = self.displaying.get(self.curframe) or {}  # type: ignore[attr-defined]
        for expression, old in list(displaying.items()):
            new, odd = self._evaluated(expression)
            if odd:
                self.message("display {}: it {}, and is displayed no more".format(expression, odd))
                del displaying[expression]
                continue
            differs, odd = self.guarded(_is_unequal, new, old)
            if new is not old and (differs or odd):  # the truth of a comparison of arrays raises
                displaying[expression] = new
                shown = self._whole(new), self._whole(old)
                self.message("display {}: {}  [old: {}]".format(expression, *shown))

    def _evaluated(self, expression: str) -> "Tuple[Any, str]":
        """The value of an expression, however long that takes; and whether the host has ended it, in words."""
        executing, self._executing = self._executing, True
        try:
            value = self._getval_except(expression)  # what it raises, it returns in words
        finally:
            self._executing = executing
        return value, "takes too long" if self._interrupted else ""

    def _whole(self, value: "Any") -> str:
        """The repr of a value; where that fails or takes too long, what says so."""
        text, odd = self.guarded(repr_of, value)
        return str(text) if not odd else "<{}, whose repr {}>".format(type(value).__name__, odd)

    def _print_lines(self, lines: "Any", *args: "Any", **kwargs: "Any") -> None:
        """Print source as pdb does, but of a very long line not all."""
        super()._print_lines([shortened(line) for line in lines], *args, **kwargs)


def _is_unequal(new: "Any", old: "Any") -> bool:
    return bool(new != old)
