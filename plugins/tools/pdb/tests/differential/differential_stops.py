"""Where pdb stops, made as ours does: see `differential_pdb`. Python 3.6, standard library only."""

import ast
import dis
import inspect
import linecache
import os
import pdb
import sys

from differential_oracle import Oracle, begins, is_runner, line_starts


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
