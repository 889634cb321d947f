"""What pdb's commands do, made as ours do it: see `differential_pdb`. Python 3.6, standard library only."""

import contextlib
import dis
import linecache
import os
import pdb
import re
import reprlib
import sys
import types

from differential_oracle import Oracle, begins, line_starts

ours = None
"""Has `why_not_to_jump` and `Statements` of our debugger; the driver sets it."""


class Evaluates(Oracle):
    """Evaluates conditions as ours does: see `nested conditions` and `hits`."""

    nested = counted = False

    def __init__(self, *args):
        """Have bdb evaluate with a function of ours."""
        super().__init__(*args)
        pdb.bdb.eval = self.evaluate

    def evaluate(self, condition, names, local_names):
        """What `bdb.effective` calls for a condition."""
        code = compile(condition, "<condition>", "eval")
        if self.nested and any(isinstance(one, type(code)) for one in code.co_consts):
            value = eval(code, dict(names, **local_names))
        else:
            value = eval(code, names, local_names)
        if self.counted and not value:
            sys._getframe(1).f_locals["b"].hits -= 1
        return value


class NestedConditions(Evaluates):
    """Functions in a condition, as of a comprehension, see the frame's local names."""

    nested = True


class NestedExpressions(Oracle):
    """Functions in an expression that is printed see the frame's local names."""

    def __init__(self, *args):
        """Have pdb evaluate with a function of ours."""
        super().__init__(*args)
        pdb.eval = self.evaluate_printed

    @staticmethod
    def evaluate_printed(expression, names, local_names):
        """What `p` calls."""
        code = compile(expression, "<string>", "eval")
        wanted = {name for one in code.co_consts if isinstance(one, type(code)) for name in one.co_names}
        if wanted & set(local_names):
            return eval(code, dict(names, **local_names))
        return eval(code, names, local_names)


class Hits(Evaluates):
    """Counts a hit when the condition holds."""

    counted = True


class ContinuationLines(Oracle):
    """Sets a breakpoint on a line inside a statement at its first line, whatever is on it."""

    def checkline(self, filename, lineno):
        """See pdb."""
        about = self.about.get(os.path.basename(filename), {})
        starts = about.get("starts", {})
        first = lineno if lineno in about.get("docstrings", ()) else starts.get(str(lineno), lineno)
        if first in about.get("plain", ()):  # pdb takes what begins with a string for a docstring
            return first
        line = super().checkline(filename, first)
        return starts.get(str(line), line) if line else line


class BlankLines(Oracle):
    """Sets a breakpoint on a line without code at the next one with code, if that is in the same function.

    No line of a docstring has any.
    """

    def checkline(self, filename, lineno):
        """See pdb."""
        lines = linecache.getlines(filename)
        about = self.about.get(os.path.basename(filename))
        if about is None:
            return super().checkline(filename, lineno)
        documents = lineno in about["docstrings"]
        blank = 0 < lineno <= len(lines) and (not lines[lineno - 1].strip() or lines[lineno - 1].strip()[0] == "#")
        with_code = with_code_in(compile("".join(lines), filename, "exec", dont_inherit=True))
        starts = about.get("starts", {})
        begins = starts.get(str(lineno), lineno)
        own = {lineno, begins}.union(int(line) for line, first in starts.items() if first == begins)
        nothing = lineno <= len(lines) and not blank and not own & with_code and begins not in about["plain"]
        if documents or blank or nothing:
            functions = about["functions"]
            after = min([line for line in with_code if line > lineno], default=0)
            if after and functions[lineno] and functions[lineno] == functions[after]:
                lineno = after
            elif documents or nothing:
                self.error("Docstring" if documents else "There is no code at this line")
                return 0
        return super().checkline(filename, lineno)


def with_code_in(code):
    """The lines that have code."""
    found = {line for _, line in dis.findlinestarts(code) if line}
    return found.union(*(with_code_in(one) for one in code.co_consts if isinstance(one, types.CodeType)))


class StaticFunctions(Oracle):
    """Sets a breakpoint on a function at the first line of its body, whether it is there yet, decorated or not.

    Where that is the line of its header, it stops in the function only, as pdb's breakpoints on functions do.
    """

    def do_break(self, arg, temporary=0):
        """See pdb."""
        name, comma, condition = arg.partition(",")
        short, known = None, len(pdb.bdb.Breakpoint.bpbynumber)
        for file, about in self.about.items():
            if name in about["bodies"]:
                arg = "{}:{}{}{}".format(file, about["bodies"][name], comma, condition)
                short = name.rpartition(".")[2] if name in about["short"] else None
        super().do_break(arg, temporary)
        for one in pdb.bdb.Breakpoint.bpbynumber[known:]:
            one.funcname = one.funcname or short

    do_b = do_break

    def do_tbreak(self, arg):
        """See pdb."""
        self.do_break(arg, 1)


class Assignments(Oracle):
    """Takes `n = 3` for the assignment that it is."""

    def onecmd(self, line):
        """See pdb."""
        return super().onecmd("!" + line if re.match(r"[abcn] [-+]?= ", line) else line)


class PostMortem(Oracle):
    """Jumps nowhere when the program is over."""

    over = False

    def do_jump(self, arg):
        """See pdb."""
        if self.over:
            return self.error("the exception is over, its frames run no more: c goes on, restart starts again")
        return super().do_jump(arg)

    do_j = do_jump


class Jumps(Oracle):
    """Jumps to the beginning of a statement, and nowhere where the interpreter would crash."""

    def do_jump(self, arg):
        """See pdb."""
        frame = self.curframe
        name = self.canonic(frame.f_code.co_filename)
        about = self.about.get(os.path.basename(name))
        if about is None or not re.match(r"-?\d+\Z", arg) or self.curindex + 1 != len(self.stack):
            return super().do_jump(arg)
        line = about["jumps"].get(arg, int(arg))
        after = [one for _, one in line_starts(frame.f_code) if one and one >= line]
        if not after:
            return self.error("Jump failed: line {} comes after the current code block".format(arg))
        if line < frame.f_code.co_firstlineno:
            return super().do_jump(arg)
        line = about["jumps"].get(str(min(after)), min(after))
        if str(line) in about["last"]:
            found = begins(frame.f_code, line, about["last"][str(line)], True)
            line = dict(line_starts(frame.f_code))[found[0]] if found else line
        with open(name, "rb") as file:
            statements = ours.Statements.parse(file.read(), name)
        refused = ours.why_not_to_jump(statements, frame.f_code, frame.f_lasti, frame.f_lineno, line)
        if refused:
            return self.error("Jump failed: " + refused)
        super().do_jump(str(line))
        if hasattr(self, "seen"):  # as if it had come there by itself
            self.seen[id(frame)] = frame.f_lineno, frame.f_lasti
        return None

    do_j = do_jump


class NoCommands(Oracle):
    """Takes no commands for a breakpoint that there is not."""

    def do_commands(self, arg):
        """See pdb."""
        try:
            self.get_bpbynumber(arg)
        except ValueError as error:
            return self.error("cannot set commands: {}".format(error))
        return super().do_commands(arg)


class OwnNames(Oracle):
    """Leaves what a function returned, or raised, not among its variables.

    Python 3.12 does not have it there, after a jump into what had a comprehension.
    """

    returns = returned = None

    def user_return(self, frame, return_value):
        """See pdb."""
        self.returns, self.returned = frame, return_value
        try:
            super().user_return(frame, return_value)
        finally:
            self.returns = self.returned = None
            forget(frame, "__return__")

    def user_exception(self, frame, exc_info):
        """See pdb."""
        try:
            super().user_exception(frame, exc_info)
        finally:
            forget(frame, "__exception__")

    def format_stack_entry(self, frame_lineno, lprefix=": "):
        """See pdb."""
        text = super().format_stack_entry(frame_lineno, lprefix)
        frame = frame_lineno[0]
        if frame is not self.returns and "__return__" in frame.f_locals:
            text = text.replace("()->" + reprlib.repr(frame.f_locals["__return__"]), "()", 1)
        elif frame is self.returns and "__return__" not in frame.f_locals:
            text = text.replace("()", "()->" + reprlib.repr(self.returned), 1)
        return text

    def do_retval(self, arg):
        """See pdb."""
        if self.curframe is self.returns:
            self.message(repr(self.returned))
        else:
            self.error("Not yet returned!")

    do_rv = do_retval


def forget(frame, name):
    """Take away what pdb has put among the variables of a frame; from Python 3.13 on that cannot be."""
    with contextlib.suppress(TypeError):
        names = frame.f_locals
        if name in names:
            del names[name]


class FrozenCode(Oracle):
    """Shows code that is frozen into the interpreter as that of the file that has its source."""

    def canonic(self, filename):
        """See bdb."""
        if filename.startswith("<frozen "):
            module = filename[len("<frozen ") : -1].split(".")
            file = os.path.join(os.path.dirname(os.__file__), *module) + ".py"
            if os.path.exists(file):
                linecache.cache[filename] = (0, None, linecache.getlines(file), file)
                filename = file
        return super().canonic(filename)
