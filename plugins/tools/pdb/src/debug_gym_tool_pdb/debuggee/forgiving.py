"""pdb's commands as people type them: what was meant is done, or it is said what would be right."""

import bdb
import contextlib
import inspect
import io
import keyword
import linecache
import pdb
import re
import sys
import traceback
import types

from .channel import Pattern
from .commands import IGNORED, Commands
from .frames import in_order
from .guide import (
    DIFFERENCES,
    ELSEWHERE,
    INFO,
    SYNONYMS,
    TOOLS,
    command_near,
    long_name,
    nearest,
    overview,
)
from .jumps import BEFORE, begins_at, jump_target, why_not_to_jump
from .places import Search, Source
from .report import MOST_LOCALS
from .values import REPR_SECONDS, TimeLimit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, List, Optional, Tuple

    from .channel import Channel

MOST_NAMED = 5
HELP_LENGTH = 1500
TAKES_PYTHON = frozenset(
    (
        "alias",
        "commands",
        "condition",
        "debug",
        "display",
        "interact",
        "p",
        "pp",
        "print",
        "source",
        "undisplay",
        "whatis",
    )
)
"""Commands whose argument is Python, or text, in which `#` and brackets mean something."""

LIKE_A_CALL = frozenset(("p", "pp", "print", "display", "undisplay", "source", "whatis", "help", "h", "exit", "quit"))
"""Commands that do with brackets around their argument what they do without."""

WITHOUT_ARGUMENT = {
    "continue": "c takes no argument: until LINE runs to a line, ignore N COUNT passes breakpoint N so many times",
    "return": "r takes no argument: a function cannot be made to return something else",
    "next": "n takes a count at most, outside of a breakpoint's commands",
    "step": "s takes a count at most, outside of a breakpoint's commands",
}
NEEDS_EXPRESSION = frozenset(("p", "pp", "whatis", "source"))
_ASSIGNMENT = Pattern(r"\s*(?:=(?!=)|(?:[-+*/%&|^@]|//|\*\*|<<|>>)=|,|:\s*\w+\s*=)")
_OPERATOR = Pattern(r"\s*(?:[=!]=|<|>|[+*/%&|^@]|(?:-\s)|(?:in|is|and|or|if|not in)\s)")
_COMMENT = Pattern(r"(?:^|\s)#[^'\"]*\Z")
_CONDITION = Pattern(r"\s*(?:,\s*if\b|,|\bif\b|\bwhen\b)\s*")
_TRACEBACK_PLACE = Pattern(r'File "([^"]+)", line (\d+)(?:, in \S+)?\Z')
_PDB_PLACE = Pattern(r"(?:> )?(\S+)\((\d+)\)(?:\S+\(\))?\Z")
_ABOUT_NUMBER = Pattern(
    r"Breakpoint (number|\d)|Non-numeric breakpoint|There (is no|are no) breakpoint|cannot set commands"
)
_NAME = Pattern(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*\Z")


class Forgiving(Commands):
    """pdb's commands for those who know another debugger, or have only read the help."""

    def __init__(self, channel: "Channel", root: str) -> None:
        """See Commands."""
        super().__init__(channel, root)
        self.from_first_line: "Optional[Callable[[FrameType], object]]" = None
        self._typed = ""

    def onecmd(self, line: str) -> "Any":
        """Carry out what a line means."""
        if self.commands_defining:
            return super().onecmd(line)
        return super().onecmd(self._meant(line.strip()))

    def emptyline(self) -> "Any":
        """Do nothing: what is empty is only a part between `;;`, after which pdb would do the last command again."""

    def _meant(self, line: str) -> str:
        """The line as pdb understands it."""
        match = re.match(r"[^\W\d]\w*", line)
        if match is None:
            return "" if line.startswith("#") else line
        word, rest = match.group(), line[match.end() :]
        if not hasattr(self, "do_" + word):
            meant = self._foreign(word, rest)
            return line if meant is None else meant
        if word not in TAKES_PYTHON:
            rest = _COMMENT.sub("", rest)
            line = word + rest
        if self._is_python(word, rest):
            return "!" + line
        if rest[:1] == "(":  # from 3.13 on, pdb takes it for a call
            return word if re.match(r"\(\s*\)\Z", rest) else word + " " + rest
        return line

    def _is_python(self, word: str, rest: str) -> bool:
        """Whether a line that begins with a command's name is a statement, as `n = 3` and `args.name` are."""
        if re.match(r"\s*\(\s*\)\Z", rest):  # n()
            return False
        if rest[:1] == "(":
            return word not in LIKE_A_CALL
        if re.match(r"\.[^\W\d]", rest) or rest[:1] == "[" or _ASSIGNMENT.match(rest):
            return True
        takes_nothing = long_name(word) in ("args", "continue", "longlist", "next", "quit", "return", "step", "retval")
        return takes_nothing and bool(_OPERATOR.match(rest)) and self._in_scope(word)

    def _foreign(self, word: str, rest: str) -> "Optional[str]":
        """What a command of another debugger is called in pdb; None: it is none, or a name of the program's."""
        if word == "info" and rest.strip() in INFO and not self._in_scope(word):
            word, rest = INFO[rest.strip()], ""
        elif word == "set" and re.match(r"\s+(?:var\s+)?\w+\s*=", rest):
            return "!" + re.sub(r"\A\s+(?:var\s+)?", "", rest)
        else:
            known = self._in_scope(word) and word not in ("breakpoint", "locals", "print", "type", "vars")
            if word not in SYNONYMS or known or not re.match(r"\s+[\w'\"{(\[*~-]|\Z", rest):
                return None
            if rest.strip() and _compiles(word + rest):
                return None
            if word in ("print", "type") and not rest:
                return None
            word = SYNONYMS[word]
        if word == "locals":
            self._show_locals()
            return ""
        return word + rest if word != "!" else "!" + rest.strip()

    def _in_scope(self, name: str) -> bool:
        frame = self.curframe
        names = (self.curframe_locals, frame.f_globals) if frame is not None else ()
        return any(name in one for one in names) or name in vars(_BUILTIN_NAMES)

    def _show_locals(self) -> None:
        """The variables of the current frame, as the stop report shows them."""
        values = self.curframe_locals
        names = [name for name in list(values) if name.isidentifier() and not name.startswith("__")]
        if self.curframe is not None and values is self.curframe.f_globals:
            kinds = (types.ModuleType, types.FunctionType, type)
            names = [name for name in names if not isinstance(values[name], kinds)]
        if self.curframe is not None:
            names = in_order(names, self.curframe)
        with TimeLimit(REPR_SECONDS) as limit:
            for name in names[:MOST_LOCALS]:
                self.message("{} = {}".format(name, self.values.describe(values[name], limit)))
        if len(names) > MOST_LOCALS or not names:
            self.message("({} more: pp locals())".format(len(names) - MOST_LOCALS) if names else "There are none.")

    # ---- errors

    def error(self, msg: str) -> None:
        """Print an error as pdb does, then what would be right."""
        super().error(msg)
        hint = self._hint(str(msg))
        if hint:
            self.message("hint: " + hint)

    def _hint(self, message: str) -> "Optional[str]":
        if _ABOUT_NUMBER.match(message):
            return self._which_breakpoints(message)
        if message.startswith("No help for"):
            word = message.partition("'")[2].partition("'")[0].strip("()")
            near = command_near(word, self._all_commands())
            return "did you mean {}?".format(near) if near else "help lists the commands"
        error = sys.exc_info()[1]
        if error is None or not message.startswith(type(error).__name__):
            return None
        if traceback.format_exception_only(type(error), error)[-1].strip() != message.strip():
            return None
        if isinstance(error, NameError):
            return self._hint_for_name(str(error))
        if isinstance(error, AttributeError):
            return _hint_for_attribute(error)
        return self._hint_for_syntax() if isinstance(error, SyntaxError) else None

    def _which_breakpoints(self, said: str) -> "Optional[str]":
        found = [one for one in bdb.Breakpoint.bpbynumber if one]
        if not found:
            return None if said.startswith("There are no breakpoints") else "there are no breakpoints"
        named = ", ".join(
            "{} at {}:{}".format(one.number, self.files.path(one.file), one.line) for one in found[:MOST_NAMED]
        )
        more = len(found) - MOST_NAMED
        return "breakpoints are {}{}".format(named, " and {} more".format(more) if more > 0 else "")

    def _hint_for_name(self, message: str) -> "Optional[str]":
        match = re.search(r"'([^']+)'", message)
        frame = self.curframe
        if match is None or frame is None:
            return None
        name = match.group(1)
        typed = re.match(r"\s*([^\W\d]\w*)", self._typed)
        if typed is not None and typed.group(1) == name:
            known = self._hint_for_word(name)
            if known:
                return known
        near = nearest(name, [*self.curframe_locals, *frame.f_globals, *vars(_BUILTIN_NAMES)])
        if near:
            return "did you mean {}?".format(" or ".join(near))
        if self.at_entry:
            return "nothing has run yet: c goes on to a breakpoint, n to the next line"
        return None

    def _hint_for_word(self, word: str) -> "Optional[str]":
        """What to say of a first word that is no command and no variable."""
        if word in ELSEWHERE:
            return ELSEWHERE[word]
        if word in TOOLS:
            return "{} is a tool of its own, where there is one; this is the debugger".format(word)
        frame = self.curframe
        scope = [*self.curframe_locals, *frame.f_globals] if frame is not None else []
        near = nearest(word, scope, 1)
        command = command_near(word, [*self._all_commands(), *SYNONYMS])
        if command in SYNONYMS:
            command = "the command " + SYNONYMS[command]
        elif command:
            command = "the command " + command
        found = [*near, command] if command else near
        return "did you mean {}?".format(" or ".join(found)) if found else None

    def _hint_for_syntax(self) -> "Optional[str]":
        typed = re.match(r"\s*([^\W\d]\w*)", self._typed)
        word = typed.group(1) if typed is not None else ""
        if not word or keyword.iskeyword(word) or hasattr(self, "do_" + word) or "\n" in self._typed:
            return None
        if self._in_scope(word) and (word not in ELSEWHERE or word not in vars(_BUILTIN_NAMES)):
            return None
        return self._hint_for_word(word) or "this is neither a command of pdb nor Python; help lists the commands"

    def _all_commands(self) -> "List[str]":
        return [name[3:] for name in dir(type(self)) if name.startswith("do_")]

    def default(self, line: str) -> "Any":
        """Execute a statement."""
        self._typed = line
        try:
            return super().default(line)
        finally:
            self._typed = ""

    # ---- commands that only read

    def do_help(self, arg: str) -> "Any":  # noqa: D102
        topic = arg.strip(" ()")
        if topic in ("", "pdb"):
            return self.message(overview())
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
            for entry in self.stack[hidden:]:
                self.print_stack_entry(entry)
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

    def do_args(self, arg: str) -> "Any":  # noqa: D102
        frame = self.curframe
        assert frame is not None
        code = frame.f_code
        if not code.co_argcount + code.co_kwonlyargcount and not code.co_flags & (
            inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
        ):
            self.message("{} has no arguments.".format(code.co_name))
            return None
        return super().do_args(arg)

    do_a = do_args

    def do_list(self, arg: str) -> "Any":  # noqa: D102
        if self._has_no_line("source"):
            return None
        match = re.match(r"(.+?)\s*:\s*(\d+)\s*(?:,\s*(\d+))?\Z", arg)
        if match:
            return self._list_file(match.group(1), int(match.group(2)), match.group(3))
        if _NAME.match(arg):
            return self.do_source(arg)
        return super().do_list(arg)

    do_l = do_list

    def _list_file(self, name: str, first: int, last: "Optional[str]") -> None:
        path = self.lookupmodule(name)
        if path is None:
            self.error("there is no file {}".format(name) + self._near_files(name))
        elif self.files.is_ignored(path):
            self.error(IGNORED)
        else:
            lines = linecache.getlines(path)
            begin, end = (first, int(last)) if last else (max(1, first - 5), first + 5)
            if begin > len(lines):
                self.error("{} has {} lines".format(self.files.path(path), len(lines)))
            else:
                self._print_lines(lines[begin - 1 : end], begin, self.get_file_breaks(self.canonic(path)))

    def do_longlist(self, arg: str) -> "Any":  # noqa: D102
        return None if self._has_no_line("source") else super().do_longlist(arg)

    do_ll = do_longlist

    def _has_no_line(self, what: str) -> bool:
        """Whether a program that begins with code of others has no line of the user's own to show; says so."""
        if not (self.at_entry and not self.program.steppable):
            return False
        self.error("the program is pytest, which has no {} of its own to show: b FILE:LINE, then c".format(what))
        return True

    def do_p(self, arg: str) -> "Any":  # noqa: D102
        return self._with_expression("p", arg, super().do_p)

    def do_pp(self, arg: str) -> "Any":  # noqa: D102
        return self._with_expression("pp", arg, super().do_pp)

    def do_whatis(self, arg: str) -> "Any":  # noqa: D102
        return self._with_expression("whatis", arg, super().do_whatis)

    def do_source(self, arg: str) -> "Any":  # noqa: D102
        return self._with_expression("source", arg, super().do_source)

    def _with_expression(self, command: str, arg: str, do: "Callable[[str], Any]") -> "Any":
        if not arg.strip():
            known = [name for name in self.curframe_locals if not name.startswith("__")]
            if self.curframe is not None:
                known = in_order(known, self.curframe)
            names = ", ".join(known[:MOST_NAMED])
            self.error("{} takes an expression{}".format(command, ", such as one of: " + names if names else ""))
            return None
        return do(arg)

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

    def do_debug(self, arg: str) -> "Any":  # noqa: D102
        self.message("note: plain pdb answers inside; q ends it")
        return super().do_debug(arg)

    # ---- commands that run

    def do_continue(self, arg: str) -> "Any":  # noqa: D102
        return None if self._without("continue", arg) else super().do_continue(arg)

    do_c = do_cont = do_continue

    def do_next(self, arg: str) -> "Any":  # noqa: D102
        return None if self._without("next", arg) else super().do_next(arg)

    do_n = do_next

    def do_step(self, arg: str) -> "Any":  # noqa: D102
        return None if self._without("step", arg) else super().do_step(arg)

    do_s = do_step

    def do_return(self, arg: str) -> "Any":  # noqa: D102
        if self._without("return", arg):
            return None
        result = super().do_return(arg)
        if self.at_entry and result:
            self.from_first_line = self.set_return
        return result

    do_r = do_return

    def do_until(self, arg: str) -> "Any":  # noqa: D102
        result = super().do_until(arg)
        if self.at_entry and result and arg:
            self.from_first_line = lambda frame: self.set_until(frame, int(arg))
        return result

    do_unt = do_until

    def do_jump(self, arg: str) -> "Any":  # noqa: D102
        if self.at_entry:
            self.error("nothing has run yet: n goes to the first line, from which j can jump")
            return None
        if self._stop is not None and self._stop.error is not None and not self._stop.step:
            self.error("the exception is over, its frames run no more: c goes on, restart starts again")
            return None
        try:
            wanted = int(arg)
        except ValueError:
            return super().do_jump(arg)
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
        result = super().do_jump(str(line))
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

    # ---- breakpoints

    def do_break(self, arg: str, temporary: "Any" = 0) -> "Any":  # noqa: D102
        if arg:
            found = self._place(arg)
            if found is None:
                return
            arg = found
        elif not any(bdb.Breakpoint.bpbynumber):
            self.message("There are no breakpoints.")
            return
        known = {one.number for one in bdb.Breakpoint.bpbynumber if one}
        super().do_break(arg, temporary)
        for one in [one for one in bdb.Breakpoint.bpbynumber if one and one.number not in known]:
            others = [str(other.number) for other in self.get_breaks(one.file, one.line) if other is not one]
            if others:
                self.message("note: at this line there is breakpoint {} too".format(" and ".join(others)))

    do_b = do_break

    def do_tbreak(self, arg: str) -> "Any":  # noqa: D102
        self.do_break(arg, 1)

    def _place(self, arg: str) -> "Optional[str]":
        """A place as pdb writes it, `file:line[, condition]`, for one as people do; None: said why it is none."""
        where, condition = self._split(arg.strip())
        if condition is not None and not self._check(condition):
            return None
        where = where.strip("'\"` ")
        if re.match(r"\d+\Z", where):
            if self._has_no_line("line"):
                return None
        elif ":" in where:
            file, _, inside = where.rpartition(":")
            file = file.rstrip(": ")
            path = self.lookupmodule(file)
            if path is None:
                self.error("there is no file {}".format(file) + self._near_files(file))
                return None
            if not inside.strip().isdigit():
                found = self._function(inside.strip(), path) if _NAME.match(inside.strip()) else None
                if found is None:
                    if not _NAME.match(inside.strip()):
                        self.error("Bad lineno: {}; b FILE:LINE, as b app.py:12".format(inside))
                    return None
                where = found
            else:
                where = "{}:{}".format(path, int(inside))
        elif _NAME.match(where):
            known, path = self._function_in_scope(where)
            if known is None or path is not None:
                found = self._function(known or where, path)
                if found is None:
                    return None
                where = found
        else:
            self.error("{!r} is no place: b FILE:LINE, as b app.py:12, or b FUNCTION".format(where[:80]))
            return None
        return where if condition is None else "{}, {}".format(where, condition)

    def _split(self, arg: str) -> "Tuple[str, Optional[str]]":
        """The place, in pdb's form, and the condition."""
        match = _TRACEBACK_PLACE.match(arg) or _PDB_PLACE.match(arg)
        if match:
            return "{}:{}".format(*match.groups()), None
        arg = re.sub(r"\A([^\s,]+)(?:\s*,\s*|\s+)(?:line\s+)?(\d+)(?=\s*(?:,|\Z|if\b))", self._with_colon, arg)
        arg = re.sub(r"\A(?:line\s+|:)(\d+)", r"\1", arg)
        arg = re.sub(r"::", ":", re.sub(r"\A(\S+?\.py)::(\w+)::(\w+)", r"\1:\2.\3", arg))
        match = _CONDITION.search(arg)
        if match:
            return arg[: match.start()], arg[match.end() :]
        match = re.match(r"((?:\S+:)?\d+)\s+(\S.*)\Z", arg)
        if match and _compiles(match.group(2), "eval"):
            return match.group(1), match.group(2)
        return arg, None

    def _with_colon(self, match: "Any") -> str:
        """`app.py 12` and `app.py, 12` as `app.py:12`."""
        name, line = match.groups()
        if name.isdigit() or ":" in name or not (name.endswith(".py") or self.lookupmodule(name)):
            return str(match.group())
        return "{}:{}".format(name, line)

    def _check(self, condition: str) -> bool:
        """Whether a condition compiles; says why not."""
        try:
            compile(condition.strip(), "<condition>", "eval", dont_inherit=True)
        except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
            self._failed = True
            why = getattr(error, "msg", None) or str(error)
            self.message("*** The condition {!r} is no Python expression: {}".format(condition.strip()[:200], why))
            return False
        return True

    def _function_in_scope(self, name: str) -> "Tuple[Optional[str], Optional[str]]":
        """The name of the function that a name stands for in the current frame, and its file.

        It is the name itself where pdb finds the right function by it; another one, qualified, for what is decorated.
        """
        if self.at_entry and not self.program.steppable:
            return None, None
        frame = self.curframe
        assert frame is not None
        first, _, rest = name.partition(".")
        try:
            value = eval(first, frame.f_globals, self.curframe_locals)
            for part in rest.split(".") if rest else ():
                value = inspect.getattr_static(value, part)
        except (NameError, AttributeError):
            return None, None
        inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        function = inspect.unwrap(inner) if isinstance(inner, types.FunctionType) else inner
        if not isinstance(function, types.FunctionType) or function.__code__.co_filename[:1] == "<":
            return None, None
        if function is value or function is getattr(value, "__func__", None):
            return name, None
        return function.__qualname__.replace(".<locals>", ""), self.canonic(function.__code__.co_filename)

    def _function(self, name: str, path: "Optional[str]" = None) -> "Optional[str]":
        """Where a function is that nobody has imported yet; None: said why it cannot be found."""
        search = Search(self.root, self.files.ignored)
        frame = self.curframe
        own = None if path or frame is None else self.files.path(frame.f_code.co_filename)
        if path is not None:
            found = search.find(name, self.files.path(path))
        else:
            inside = own is not None and own[:1] not in "/<" and self._file_of(name) is None
            found = (search.find(name, own) if inside else []) or search.find(name)
        places = [one for one in found if one.line is not None]
        if len(places) == 1:
            return "{}:{}".format(places[0].file, places[0].line)
        if places:
            named = ", ".join("{}:{} {}".format(one.file, one.line, one.name) for one in places[:MOST_NAMED])
            self.error("several functions are called {}: {}".format(name, named))
        elif found:
            self.error("{} is a class without __init__: b {}.METHOD".format(name, name))
        else:
            where = " in {}".format(self.files.path(path)) if path else ""
            near = nearest(name.rpartition(".")[2], search.names)
            hint = "; did you mean {}?".format(" or ".join(near)) if near else "; b FILE:LINE, as b app.py:12"
            self.error("there is no function {}{}{}".format(name, where, hint))
        return None

    def _file_of(self, name: str) -> "Optional[str]":
        head = name.partition(".")[0]
        return self.lookupmodule(head) if "." in name else None

    def _near_files(self, name: str) -> str:
        """What else a file may be called."""
        near = self.files.near(name)
        return "; did you mean {}?".format(" or ".join(near)) if near else ""

    def checkline(self, filename: str, lineno: int) -> int:
        """Check whether a line can have a breakpoint; one without code stands for the next of its function."""
        text = linecache.getline(filename, lineno).strip()
        name = self.files.path(filename)
        if (text and text[:1] != "#") or name in self.files.ignored:
            return super().checkline(filename, lineno)
        linecache.checkcache(filename)
        lines = linecache.getlines(filename)
        try:
            source = Source(filename)
            near = source.near(lineno)
            after = source.line_after(lineno) if lineno <= len(lines) else None
        except (OSError, SyntaxError, ValueError, RecursionError):
            return super().checkline(filename, lineno)
        if after is not None:
            self.message(
                "Line {} is {}: the next line with code is taken.".format(lineno, "a comment" if text else "blank")
            )
            return super().checkline(filename, after)
        if lineno > len(lines):
            self.error("End of file: {} has {} lines".format(name, len(lines)))
        else:
            self.error("Blank or comment")
        shown = ["{} `{}`".format(one, source.lines[one - 1].strip()[:60]) for one in near]
        if shown:
            self.message("hint: near it there is code at " + " and ".join(shown))
        return 0

    def do_clear(self, arg: str) -> "Any":  # noqa: D102
        if arg.strip() in ("all", "*"):
            arg = ""
        elif ":" not in arg:
            arg = self._numbers(arg)
        return super().do_clear(arg)

    do_cl = do_clear

    def do_enable(self, arg: str) -> "Any":  # noqa: D102
        return self._switch(arg, super().do_enable)

    def do_disable(self, arg: str) -> "Any":  # noqa: D102
        return self._switch(arg, super().do_disable)

    def _switch(self, arg: str, do: "Callable[[str], Any]") -> "Any":
        numbers = self._numbers(arg or "all")
        if not numbers:
            self.error("There are no breakpoints")
            return None
        return do(numbers)

    def _numbers(self, arg: str) -> str:
        """Breakpoints by number, with `all`, ranges and places replaced by the numbers that they stand for."""
        found: "List[str]" = []
        existing = [one for one in bdb.Breakpoint.bpbynumber if one]
        for word in arg.replace(",", " ").split():
            bounds = re.match(r"(\d+)-(\d+)\Z", word)
            file, _, line = word.rpartition(":")
            if word in ("all", "*"):
                inside = existing
            elif bounds:
                first, last = map(int, bounds.groups())
                inside = [one for one in existing if first <= one.number <= last]
            elif file and line.isdigit():
                path = self.canonic(self.lookupmodule(file) or file)
                inside = [one for one in existing if one.file == path and one.line == int(line)]
            else:
                inside = []
            found += [str(one.number) for one in inside] or ([word] if word not in ("all", "*") else [])
        return " ".join(found)

    def do_condition(self, arg: str) -> "Any":  # noqa: D102
        number, _, condition = arg.strip().partition(" ")
        condition = re.sub(r"\A(?:if\b|,)\s*", "", condition.strip())
        if condition and number.isdigit() and not self._check(condition):
            return None
        return super().do_condition("{} {}".format(number.rstrip(","), condition).strip())

    def do_ignore(self, arg: str) -> "Any":  # noqa: D102
        words = arg.replace(",", " ").split()
        if len(words) == 1:
            self.error("ignore takes a breakpoint's number and how often it is passed, as ignore 1 5")
            return None
        if len(words) > 1 and not words[1].isdigit():
            self.error("{} is no count; as in ignore 1 5".format(words[1]))
            return None
        result = super().do_ignore(" ".join(words))
        if words and words[0].isdigit() and not self._failed:
            one = bdb.Breakpoint.bpbynumber[int(words[0])]
            assert one is not None
            one.given = one.ignore  # type: ignore[attr-defined]
        return result

    def do_commands(self, arg: str) -> "Any":  # noqa: D102
        if not arg:
            existing = [one.number for one in bdb.Breakpoint.bpbynumber if one]
            if not existing:
                self.error("There are no breakpoints")
                return None
            arg = str(existing[-1])
        if not self._rest:
            self.error("write the commands below it, in the same call, and `end` after them")
            return None
        return super().do_commands(arg)

    for _name in [_name for _name in list(locals()) if _name.startswith("do_")]:
        locals()[_name].__doc__ = getattr(pdb.Pdb, _name).__doc__
    del _name


def _compiles(text: str, mode: str = "single") -> bool:
    try:
        compile(text.strip(), "<typed>", mode, dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return False
    return True


def _hint_for_attribute(error: "AttributeError") -> "Optional[str]":
    """Attributes that are near, where Python tells of what object (from 3.10 on)."""
    name, value = getattr(error, "name", None), getattr(error, "obj", None)
    if not isinstance(name, str) or value is None:
        return None
    names = {key for kind in type(value).__mro__ for key in vars(kind)}
    with contextlib.suppress(AttributeError):  # without running the program's own lookup
        names.update(key for key in object.__getattribute__(value, "__dict__") if isinstance(key, str))
    near = nearest(name, names)
    return "did you mean {}?".format(" or ".join(near)) if near else None


_BUILTIN_NAMES = sys.modules["builtins"]
