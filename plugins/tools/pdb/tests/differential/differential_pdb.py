"""The standard library's pdb, run as `python -m pdb main.py` runs it, with commands from a list.

Python 3.6, standard library only. `Oracle` is that pdb; what it is told to do as ours does (`like_ours`) are the
differences of `differential_differences`, each as small a change as can be.
"""

import ast
import contextlib
import dis
import inspect
import io
import linecache
import os
import pdb
import re
import reprlib
import sys
import traceback
import types

ours = None
"""Has `why_not_to_jump` and `Statements` of our debugger; the driver sets it."""

RUNNERS = (pdb.__file__, pdb.bdb.__file__, os.path.join(os.path.dirname(os.path.abspath(__file__)), ""))


def is_runner(frame):
    """Whether a frame only runs the program: of the debugger, or of this test."""
    name = frame.f_code.co_filename
    return name == "<string>" or name.startswith(RUNNERS)


class Commands(object):
    """Where pdb reads its commands."""

    def __init__(self, oracle, commands):
        """Hand out these commands, each with the lines that belong to it."""
        self.oracle = oracle
        self.commands = list(commands)
        self.rest = []

    def readline(self):
        """The next line: of the definition under way, else the next command."""
        if self.oracle.commands_defining and self.rest:
            return self.rest.pop(0) + "\n"
        self.oracle.tell()
        if not self.commands:
            os._exit(98)
        command = self.commands.pop(0)
        self.rest = command[1:]
        return command[0] + "\n"


class Oracle(pdb.Pdb):
    """The standard library's pdb, which tells at each prompt what it printed since the last."""

    def __init__(self, commands, send):
        """Read commands from a list."""
        self.text = io.StringIO()
        self.send = send
        super().__init__(stdin=Commands(self, commands), stdout=self.text, nosigint=True, readrc=False)

    def tell(self):
        """Send what was printed."""
        self.send({"t": "prompt", "out": self.take()})

    def take(self):
        """What was printed since the last time, without prompts."""
        text = self.text.getvalue().replace("(Pdb) ", "").replace("(com) ", "")
        self.text.seek(0)
        self.text.truncate()
        return text


class Runner(Oracle):
    """Neither shows the frames that run the program nor stops in them."""

    def get_stack(self, f, t):
        """See bdb."""
        stack, index = super().get_stack(f, t)
        before = sum(1 for frame, _ in stack[: index + 1] if is_runner(frame))
        shown = [entry for entry in stack if not is_runner(entry[0])]
        return (shown, max(0, index - before)) if shown else (stack, index)

    def user_call(self, frame, argument_list):
        """See bdb."""
        if not is_runner(frame):
            super().user_call(frame, argument_list)

    def user_line(self, frame):
        """See bdb."""
        if not is_runner(frame):
            super().user_line(frame)

    def user_return(self, frame, return_value):
        """See bdb."""
        if not is_runner(frame):
            super().user_return(frame, return_value)

    def user_exception(self, frame, exc_info):
        """See bdb."""
        if not is_runner(frame):
            super().user_exception(frame, exc_info)


class StaleLine(Oracle):
    """Leaves no frame traced when it traces nothing: up to Python 3.9 such a frame keeps the line it had then."""

    def trace_dispatch(self, frame, event, arg):
        """See bdb."""
        tracer = super().trace_dispatch(frame, event, arg)
        return tracer if sys.gettrace() is not None else None


class UntracedCallers(Oracle):
    """Traces all callers when it steps, also those that were called when it did not."""

    def _set_stopinfo(self, stopframe, *args, **options):
        super()._set_stopinfo(stopframe, *args, **options)
        if stopframe is None or stopframe is not self.botframe:
            frame = self.stack[-1][0] if getattr(self, "stack", None) else None
            while frame is not None and frame is not self.botframe:
                if not is_runner(frame):
                    frame.f_trace = self.trace_dispatch
                frame = frame.f_back


class ComesBack(Oracle):
    """Does not stop again where a statement of several lines comes back to its first line."""

    def __init__(self, *args):
        """Know of no frame yet."""
        super().__init__(*args)
        self.seen = {}
        self.back = False

    def dispatch_call(self, frame, arg):
        """See bdb."""
        if not frame.f_code.co_flags & inspect.CO_GENERATOR or frame.f_lineno == frame.f_code.co_firstlineno:
            self.seen.pop(id(frame), None)
        return super().dispatch_call(frame, arg)

    def dispatch_line(self, frame):
        """See bdb."""
        line, offset = self.seen.get(id(frame), (0, 0))
        name = os.path.basename(frame.f_code.co_filename)
        last = self.about.get(name, {}).get("last", {}).get(str(frame.f_lineno), 0)
        self.back = frame.f_lineno < line <= last and frame.f_lasti > offset
        # It may be back there twice, as after a branch of a conditional expression.
        self.seen[id(frame)] = line if self.back else frame.f_lineno, frame.f_lasti
        return super().dispatch_line(frame)

    def break_here(self, frame):
        """See bdb."""
        return not self.back and super().break_here(frame)


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


class FirstLines(Oracle):
    """Stops where a statement begins, also when that is not at its first line."""

    def break_here(self, frame):
        """See bdb."""
        name = self.canonic(frame.f_code.co_filename)
        about = self.about.get(os.path.basename(name), {})
        for line in self.breaks.get(name, ()):
            last = about.get("last", {}).get(str(line))
            if last and frame.f_lasti in begins(frame.f_code, line, last, line in about["once"]):
                return self.break_at(frame, line)
        return super().break_here(frame)

    def break_at(self, frame, line):
        """As `break_here`, at another line than the frame's."""
        check = pdb.bdb.checkfuncname
        pdb.bdb.checkfuncname = lambda b, frame: b.funcname in (None, frame.f_code.co_name)
        try:
            found, temporary = pdb.bdb.effective(self.canonic(frame.f_code.co_filename), line, frame)
        finally:
            pdb.bdb.checkfuncname = check
        if found:
            self.currentbp = found.number
            if temporary and found.temporary:
                self.do_clear(str(found.number))
        return bool(found)


def begins(code, first, last, once):
    """Offsets at which a statement of several lines begins at another line than its first."""
    found, before = [], 0
    if code.co_firstlineno < first or code.co_name == "<module>":
        for offset, line in line_starts(code):
            if first <= line <= last and not first <= before <= last:
                found.append((offset, line))
            before = line
    return [offset for offset, line in found[: 1 if once else None] if line != first]


def line_starts(code):
    """Offsets at which a code object comes to another line, and the line."""
    if sys.version_info < (3, 10):
        yield from dis.findlinestarts(code)
        return
    before = None
    for offset, _, line in code.co_lines():
        if line is not None and line != before:
            yield offset, line
            before = line


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


class Generators(Oracle):
    """Stops after a step out of a generator that ends in what ran it."""

    caller = None

    def dispatch_return(self, frame, arg):
        """See bdb."""
        if frame is self.caller:
            self._set_stopinfo(None, None)
        if frame in (self.stopframe, self.returnframe) and is_generator(frame) and not is_yielding(frame):
            caller = frame.f_back
            of_task = frame.f_code.co_flags & inspect.CO_COROUTINE
            between = []
            while of_task and caller is not None and os.path.basename(caller.f_code.co_filename) not in self.about:
                between.append(caller)
                caller = caller.f_back
            if not all(map(is_generator, between)):
                return self.leave_task(frame, arg, caller)
            if caller is not None and not is_runner(caller):
                self.caller = caller
                caller.f_trace = self.trace_dispatch
        return super().dispatch_return(frame, arg)

    def leave_task(self, frame, arg, caller):
        """Stop at the return of a task's coroutine; a step from there goes to what runs the tasks."""
        self._set_stopinfo(None, None)
        result = super().dispatch_return(frame, arg)
        if self.stopframe in (None, frame):
            if caller is not None and not is_runner(caller):
                self._set_stopinfo(caller, caller)
                caller.f_trace = self.trace_dispatch
            else:
                self.set_continue()
        return result

    def dispatch_line(self, frame):
        """See bdb."""
        if frame is self.caller:
            self._set_stopinfo(None, None)
        return super().dispatch_line(frame)

    def _set_stopinfo(self, *args, **options):
        self.caller = None
        super()._set_stopinfo(*args, **options)


class OtherCoroutines(Oracle):
    """After `r` in a generator or coroutine, stops at the end of what is awaited only in what was there already."""

    def __init__(self, *args):
        """Know of no frame yet."""
        self.there = []
        super().__init__(*args)

    def dispatch_call(self, frame, arg):
        """See bdb."""
        if self.stopframe is None and frame not in self.there:
            self.there.append(frame)
        return super().dispatch_call(frame, arg)

    def dispatch_exception(self, frame, arg):
        """See bdb."""
        if self.stopframe is not None and frame is not self.stopframe and frame not in self.there:
            return self.trace_dispatch
        return super().dispatch_exception(frame, arg)

    def _set_stopinfo(self, stopframe, *args, **options):
        super()._set_stopinfo(stopframe, *args, **options)
        frame = self.stack[-1][0] if getattr(self, "stack", None) else None
        while frame is not None:
            if stopframe is self.botframe and frame in self.there:
                self.there.remove(frame)
            elif stopframe is not self.botframe and frame not in self.there:
                self.there.append(frame)
            frame = frame.f_back


def is_generator(frame):
    """Whether a frame can be left and entered again."""
    return bool(frame.f_code.co_flags & pdb.bdb.GENERATOR_AND_COROUTINE_FLAGS)


def is_yielding(frame):
    """Whether a generator or coroutine that returns will be resumed."""
    code, at = frame.f_code.co_code, frame.f_lasti
    pauses = [dis.opmap[name] for name in ("YIELD_VALUE", "YIELD_FROM") if name in dis.opmap]
    if code[at] in pauses:
        return True
    if sys.version_info < (3, 11):
        return at + 2 < len(code) and code[at + 2] == dis.opmap["YIELD_FROM"]
    return code[at] == dis.opmap["RESUME"] and code[at - 2] in pauses


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


class LateCommands(Oracle):
    """Does the commands of a breakpoint where it has stopped."""

    def stop_here(self, frame):
        self.currentbp = 0
        return Oracle.stop_here(self, frame)


class InsideLines(Oracle):
    """Does not stop again where a comprehension goes on to its next element."""

    def dispatch_line(self, frame):
        """See bdb."""
        if frame.f_lasti in jumps_inside_lines(frame.f_code):
            return self.trace_dispatch
        return super().dispatch_line(frame)


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


def forget(frame, name):
    """Take away what pdb has put among the variables of a frame; from Python 3.13 on that cannot be."""
    with contextlib.suppress(TypeError):
        names = frame.f_locals
        if name in names:
            del names[name]


def jumps_inside_lines(code):
    """Offsets to and from which there are only jumps back from the same line, in a comprehension."""
    lines = {offset: line for first, end, line in code.co_lines() for offset in range(first, end, 2)}
    jumps = [one for one in dis.get_instructions(code) if one.opcode in dis.hasjrel or one.opcode in dis.hasjabs]
    same = [one for one in jumps if one.argval < one.offset and lines[one.argval] == lines[one.offset]]
    same = [one for one in same if one.opname != "JUMP_BACKWARD" or is_in_comprehension(code, one)]
    back = {one.argval for one in same}
    others = {one.argval for one in jumps if one not in same}
    return (back | {one.offset for one in same}) - others - set(dict(line_starts(code)))


def is_in_comprehension(code, jump):
    """Whether an instruction is of a comprehension or a generator expression, by what the source says."""
    if code.co_name == "<genexpr>":
        return True
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:
        return True
    at = jump.positions
    if at.lineno is None:  # no statement's
        return True
    return any(
        (node.lineno, node.col_offset) < (at.lineno, at.col_offset)
        and (at.end_lineno, at.end_col_offset) < (node.end_lineno, node.end_col_offset)
        for node in ast.walk(tree)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp))
    )


LIKE_OURS = {
    "late commands": LateCommands,
    "runner": Runner,
    "stale line": StaleLine,
    "untraced callers": UntracedCallers,
    "comes back": ComesBack,
    "nested conditions": NestedConditions,
    "nested expressions": NestedExpressions,
    "hits": Hits,
    "first lines": FirstLines,
    "post-mortem": PostMortem,
    "jumps": Jumps,
    "no commands": NoCommands,
    "continuation lines": ContinuationLines,
    "blank lines": BlankLines,
    "static functions": StaticFunctions,
    "assignments": Assignments,
    "other coroutines": OtherCoroutines,
    "generators": Generators,
    "inside lines": InsideLines,
    "own names": OwnNames,
    "frozen code": FrozenCode,
}
"""What ours does otherwise, by the names of `differential_differences`."""


def run(root, request, send):
    """Run `main.py` as `pdb.main` does, once; returns its exit status."""
    path = os.path.join(root, "main.py")
    sys.argv[:] = [path]
    sys.path.insert(0, root)
    kinds = [LIKE_OURS[name] for name in request["like_ours"]]
    oracle = type("LikeOurs", (*kinds, Oracle), {"about": request["about"]})(request["commands"], send)
    end = {"t": "exit", "status": 0}
    try:
        if hasattr(oracle, "_runscript"):
            oracle._runscript(path)
        else:
            oracle._run(pdb._ScriptTarget(path))
    except SystemExit as error:
        end["status"] = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException as error:
        traceback.print_exc()
        end["status"] = 1
        oracle.over = True
        end["exception"] = {"type": type(error).__name__, "message": str(error)}
        oracle.interaction(None, error if sys.version_info >= (3, 13) else error.__traceback__)
    end["out"] = oracle.take()
    send(end)
    return end["status"]
