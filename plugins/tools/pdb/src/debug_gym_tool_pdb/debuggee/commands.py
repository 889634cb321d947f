"""pdb's commands: what the host says and what it is answered."""

import bdb
import codeop
import contextlib
import functools
import inspect
import linecache
import os
import pdb
import re
import sys
import types

from .channel import (
    _ATTRIBUTES,
    _ORIGINAL_BUILTINS,
    Channel,
    Input,
    Output,
    OwnBuiltins,
    _get_ident,
    _give_builtins,
    _settrace,
    _take_back_builtins,
)
from .files import Files
from .frames import keep_locals
from .report import Reporter
from .shown import Shown
from .statements import Sources
from .values import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Dict, Iterator, List, Optional, Tuple

    Json = Dict[str, Any]

for _name in ("compile", "eval", "exec", "repr"):
    # What pdb evaluates sees the built-in functions of the program; pdb does not evaluate by them.
    vars(pdb).setdefault(_name, _ORIGINAL_BUILTINS[_name])
    vars(codeop).setdefault(_name, _ORIGINAL_BUILTINS[_name])

IGNORED = "the file is ignored in this task: its source is not shown"


class Stop:
    """Why the program is stopped."""

    def __init__(
        self,
        reason: str,
        error: "Optional[BaseException]" = None,
        value: "Tuple[Any, ...]" = (),
        step: bool = False,
        **details: "Any",
    ) -> None:
        """Describe a stop.

        Args:
            reason: what the report calls it
            error: the exception that stopped the program
            value: the value that is being returned, in a tuple
            step: whether it stops only because the thread was stepping
            details: what else the report says
        """
        self.at: "Optional[bdb.Breakpoint]" = None  # the breakpoint that it is for
        self.reason = reason
        self.error = error
        self.value = value
        self.step = step
        self.details = details


def _only_with_a_line(command: "Any") -> "Any":
    """A stepping command, refused before the first line of a program that has none of the user's own."""

    @functools.wraps(command)
    def checked(self: "Commands", arg: str) -> "Any":
        if self.at_entry and not self.program.steppable:
            self.error("the program is pytest: set a breakpoint (b file:line), then continue (c)")
            return None
        return command(self, arg)

    return checked


class Commands(pdb.Pdb):
    """pdb's commands, read from a channel and answered on it."""

    def __init__(self, channel: "Channel", root: str) -> None:
        """Talk over a channel; the program's repository lies at `root`."""
        self.output = Output()
        readline = sys.modules.get("readline", self)
        sys.modules["readline"] = None  # type: ignore[assignment]
        try:
            super().__init__(
                stdin=Input(self._next_line),  # type: ignore[arg-type]
                stdout=self.output,  # type: ignore[arg-type]
                nosigint=True,
                readrc=False,
            )
        finally:
            if readline is self:
                del sys.modules["readline"]
            else:
                sys.modules["readline"] = readline  # type: ignore[assignment]
        self.channel = channel
        self.root = os.path.realpath(root)
        self.files = Files(self.root, self.canonic)
        self.shown = Shown()
        self.sources = Sources()
        self.values = Values()
        self.reporter = Reporter(self.files, self.shown, self.values)
        self.program: "Any" = None
        self.at_entry = False
        self.hello: "Json" = {}
        self._cwd = os.getcwd()
        self._stop: "Optional[Stop]" = None
        self._due = False
        self._failed = False
        self._executing = False
        self._interrupted = False
        self._feeding: "Optional[str]" = None
        self._rest: "List[str]" = []
        self._used = 0
        self._last_fed = ""
        self._nested = False
        self._sent_breakpoints: "Optional[Json]" = None
        self._started: "Dict[str, bool]" = {}
        self._replaced: "Dict[str, Any]" = {}

    # ---- conversation with the host

    @property
    def prompt(self) -> str:
        """No prompt is ever printed; a recursive debugger derives its own from the usual one."""
        return "(Pdb) " if self._nested else ""

    @prompt.setter
    def prompt(self, value: str) -> None:
        pass

    def _next_line(self) -> str:
        """What pdb reads next: a line that belongs to the command under way, else the host's next command."""
        if self._feeding is not None:
            return self._feed() + "\n" if self._rest else self._feeding
        self.channel.send(self._prompt_message())
        request = self.channel.receive()
        while "loaded" in request:
            self.channel.send({"t": "answer", "loaded": self._has_loaded(request["loaded"])})
            request = self.channel.receive()
        self._failed = self._interrupted = False
        self._rest = list(request.get("rest", ()))
        self._used = 0
        return str(request["cmd"]) + "\n"

    def _has_loaded(self, path: str) -> bool:
        """Whether the program runs code of a file of the repository."""
        wanted = os.path.join(self.root, path)
        linecache.checkcache(wanted)
        names = {frame.f_code.co_filename for frame, _ in self.stack}
        for module in list(sys.modules.values()):
            if not issubclass(type(module), types.ModuleType):
                continue  # anything can be put there; asking it for attributes, or for its class, runs its code
            attributes = _ATTRIBUTES.__get__(module)
            name = attributes.get("__file__") if type(attributes) is dict else None
            if type(name) is str:
                names.add(name)
        base = os.path.basename(wanted)
        return any(os.path.basename(name) == base and self.canonic(name) == wanted for name in names)

    def _feed(self) -> str:
        self._used += 1
        self._last_fed = self._rest.pop(0)
        return self._last_fed

    def _prompt_message(self) -> "Json":
        out, _ = self.output.take()
        if self._nested and out.endswith("((Pdb)) "):
            out = out[: -len("((Pdb)) ")]
        message: "Json" = {"t": "prompt", "out": out, "failed": self._failed, "used": self._used}
        if self._interrupted:
            message["interrupted"] = True
        if self._due and self._stop is not None:
            self._due = False
            try:
                message["stop"] = self._report(self._stop)
            except Exception as error:  # the program has replaced what the report is made with
                why = "it cannot be described: {}: {}".format(type(error).__name__, self.values.said(error))
                message["stop"] = {"reason": self._stop.reason, "note": why}
            self._add_started(message)
        self._add_breakpoints(message)
        if self.hello:
            message["hello"], self.hello = self.hello, {}
        return message

    def _report(self, stop: "Stop") -> "Json":
        report: "Json" = {"reason": stop.reason}
        report.update((key, value) for key, value in stop.details.items() if value is not None)
        if self.at_entry and not self.program.steppable:
            return report
        report.update(self.reporter.report(self.stack, self.curindex, stop.error, stop.value))
        if stop.reason == "interrupt":
            report["threads"] = self.reporter.threads()
        return report

    def started(self, how: str) -> None:
        """Remember that the program started an interpreter in which nothing of ours is."""
        self._started.setdefault(how, False)

    def _add_started(self, message: "Json") -> None:
        """Tell once of interpreters in which breakpoints do not stop."""
        fresh = [how for how, told in self._started.items() if not told]
        if fresh and self.breaks:
            message["started"] = fresh
            self._started.update((how, True) for how in fresh)

    def _add_breakpoints(self, message: "Json") -> None:
        state = self.dump_breakpoints()
        if state != self._sent_breakpoints:
            self._sent_breakpoints = message["breakpoints"] = state

    # ---- commands

    def onecmd(self, line: str) -> "Any":
        """Carry out a command; what it prints to the program's standard output is pdb's output."""
        if self.commands_defining:
            return super().onecmd(line)
        saved, sys.stdout = sys.stdout, self.output
        before = self.output.talker, self.output.program
        self.output.talker = _get_ident()
        if saved is not self.output:
            self.output.program = saved
        self._executing = True
        try:
            return super().onecmd(line)
        except bdb.BdbQuit:
            raise
        except Exception as error:  # of pdb itself: the program has replaced what it uses
            self.error("the command failed: {}: {}".format(type(error).__name__, self.values.said(error)))
            return None
        finally:
            self._executing = False
            self.output.talker, self.output.program = before
            if sys.stdout is self.output:
                sys.stdout = saved

    def error(self, msg: str) -> None:
        """Print an error as pdb does, and remember that the command failed."""
        self._failed = True
        self.message("*** {}".format(msg))

    def message(self, msg: str, end: str = "\n") -> None:
        """Print as pdb does, whatever the program has made of `print`."""
        self.output.write("{}{}".format(msg, end))

    def checkline(self, filename: str, lineno: int) -> int:
        """Check as pdb does whether a line can have a breakpoint."""
        line = super().checkline(filename, lineno)
        self._failed = self._failed or not line
        return line

    def print_stack_entry(self, *args: "Any", **kwargs: "Any") -> None:
        """Print an entry as pdb does; before the first line of pytest there is none to print."""
        if not (self.at_entry and self._due and not self.program.steppable):
            super().print_stack_entry(*args, **kwargs)

    def format_stack_entry(self, frame_lineno: "Tuple[FrameType, int]", lprefix: str = ": ") -> str:
        """Describe a frame as pdb does, without the source of a file that is ignored."""
        frame, line = frame_lineno
        if not self._is_ignored(frame):
            return super().format_stack_entry(frame_lineno, lprefix)
        name = self.canonic(frame.f_code.co_filename)
        return "{}({}){}(){}{}".format(name, line, frame.f_code.co_name, lprefix, IGNORED)

    def _is_ignored(self, value: "Any") -> bool:
        """Whether a frame, or what else has source, is of a file that is ignored in the task."""
        if not self.files.ignored:
            return False
        try:
            filename = inspect.getfile(value)
        except (TypeError, OSError):
            return False
        return self.files.is_ignored(filename)

    def do_list(self, arg: str) -> "Any":  # noqa: D102
        if self.curframe is not None and self._is_ignored(self.curframe):
            return self.error(IGNORED)
        return super().do_list(arg)

    do_l = do_list

    def do_longlist(self, arg: str) -> "Any":  # noqa: D102
        if self.curframe is not None and self._is_ignored(self.curframe):
            return self.error(IGNORED)
        return super().do_longlist(arg)

    do_ll = do_longlist

    def do_source(self, arg: str) -> "Any":  # noqa: D102
        evaluate = self._getval

        def checked(text: str) -> "Any":
            value = evaluate(text)
            if self._is_ignored(value):
                self.error(IGNORED)
                raise ValueError(IGNORED)
            return value

        self._getval = checked  # type: ignore[method-assign, assignment]
        try:
            return super().do_source(arg)
        finally:
            del self._getval

    def do_threads(self, arg: str) -> None:
        """threads

        List all threads and where each is, innermost call first, in the
        repository's own code; an asterisk marks the one that is stopped.
        The others run on while one is stopped.
        """  # noqa: D403, D415 (what `help threads` prints)
        self.message(self.reporter.all_threads(self.stack))

    do_th = do_threads

    def default(self, line: str) -> "Any":
        """Execute a statement, which may go on over several lines."""
        source = self._whole_statement(line[1:].lstrip() if line[:1] == "!" else line)
        feeding, self._feeding = self._feeding, ""
        frame = self.curframe
        try:
            with self._as_the_program():
                return super().default(source)
        finally:
            self._feeding = feeding
            keep_locals(frame)

    @contextlib.contextmanager
    def _as_the_program(self) -> "Iterator[None]":
        """Evaluate with the built-in functions that the program has: pdb itself works with Python's own."""
        _give_builtins(self._replaced)
        try:
            yield
        finally:
            self._replaced = _take_back_builtins()

    def _getval(self, arg: str) -> "Any":
        with self._as_the_program():
            return super()._getval(arg)

    def _getval_except(self, arg: str, *args: "Any", **kwargs: "Any") -> "Any":
        with self._as_the_program():
            return super()._getval_except(arg, *args, **kwargs)

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

    def do_commands(self, arg: str) -> "Any":  # noqa: D102
        try:
            if arg.strip().isdigit():
                self.get_bpbynumber(int(arg))
        except ValueError as error:  # up to Python 3.10, pdb would keep them for a breakpoint to come
            self.error("cannot set commands: {}".format(error))
            return None
        self._feeding = "end\n"
        self._last_fed = ""
        try:
            return super().do_commands(arg)
        finally:
            self._feeding = None
            ended = self._last_fed.strip() in ("", "end")
            if not ended and self._rest and self._rest[0].strip() == "end":  # pdb ends at a command that resumes
                self._feed()

    def do_clear(self, arg: str) -> "Any":  # noqa: D102
        if not arg:
            found = [one for one in bdb.Breakpoint.bpbynumber if one]
            self.clear_all_breaks()
            for one in found:
                self.message("Deleted {}".format(one))
            return None
        name, colon, line = arg.rpartition(":")
        if colon:
            arg = "{}:{}".format(self.lookupmodule(name.strip()) or name, line)
        return super().do_clear(arg)

    do_cl = do_clear

    def lookupmodule(self, filename: str) -> "Optional[str]":
        """Find a file as the host names it: by its path in the repository, absolute, or as pdb does.

        Outside of the repository, whatever links lead there, only what could be imported is found.
        """
        found = self.files.find(filename)
        if found is None:
            found = super().lookupmodule(filename)
            if found is None or not os.path.isfile(found):
                found = self._only_one(filename)
        return found if found is None or self.files.is_code(os.path.realpath(found)) else None

    def _only_one(self, filename: str) -> "Optional[str]":
        """The only file of that name in the repository."""
        found = self.files.called(filename)
        if len(found) > 1:
            name = os.path.basename(found[0])
            self.message("Several files are called {}: {}".format(name, ", ".join(map(self.files.path, found))))
        return found[0] if len(found) == 1 else None

    def do_run(self, arg: str) -> "Any":  # noqa: D102
        import shlex

        message: "Json" = {"t": "restart", "out": self.output.take()[0]}
        if arg:
            try:
                message["args"] = shlex.split(arg)
            except ValueError as error:
                self.error("Cannot run {}: {}".format(arg, error))
                return
        self._add_breakpoints(message)
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
        message: "Json" = {"t": "quit", "out": self.output.take()[0]}
        self._add_breakpoints(message)
        self.channel.send(message)

    def do_interact(self, arg: str) -> "Any":  # noqa: D102
        import code

        if not self._rest:
            self.error("interact: write the lines to run below it, in the same call")
            return
        frame = self.curframe
        assert frame is not None
        names = dict(frame.f_globals)
        names.update(self.curframe_locals)
        console = code.InteractiveConsole(names)
        streams, hook = sys.stderr, sys.displayhook
        sys.stderr = self.output
        sys.displayhook = self.displayhook  # Python's own would keep the value alive
        feeding, self._feeding = self._feeding, ""
        try:
            while self._rest:
                console.push(self._feed())
            console.push("")
        except SystemExit:
            pass
        finally:
            sys.stderr, sys.displayhook = streams, hook
            self._feeding = feeding

    def do_debug(self, arg: str) -> "Any":  # noqa: D102
        self._nested = True
        try:
            return super().do_debug(arg)
        finally:
            self._nested = False
            _settrace(None)

    do_next = do_n = _only_with_a_line(pdb.Pdb.do_next)
    do_step = do_s = _only_with_a_line(pdb.Pdb.do_step)
    do_until = do_unt = _only_with_a_line(pdb.Pdb.do_until)
    do_return = do_r = _only_with_a_line(pdb.Pdb.do_return)
    for _name in ("do_commands", "do_clear", "do_run", "do_quit", "do_EOF", "do_interact", "do_debug"):
        locals()[_name].__doc__ = getattr(pdb.Pdb, _name).__doc__
    del _name

    # ---- breakpoints over restarts

    def dump_breakpoints(self) -> "Json":
        """All breakpoints and the next number, in JSON types."""
        found = []
        for one in bdb.Breakpoint.bpbynumber:
            if one is None:
                continue
            commands = list(self.commands.get(one.number, ()))
            if commands and getattr(self, "commands_silent", {}).get(one.number):
                commands.insert(0, "silent")
            found.append(
                {
                    "number": one.number,
                    "file": self.files.path(one.file),
                    "line": one.line,
                    "condition": one.cond or None,
                    "temporary": bool(one.temporary),
                    "ignore": getattr(one, "given", one.ignore),  # each run counts from the beginning
                    "enabled": bool(one.enabled),
                    "commands": commands,
                    "function": one.funcname,
                }
            )
        return {"list": found, "next": bdb.Breakpoint.next}

    def restore_breakpoints(self, state: "Json") -> "List[Json]":
        """Set breakpoints as they were dumped, under their numbers; returns those that cannot be set and why."""
        lost = []
        for one in state["list"]:
            self._skip_numbers(one["number"])
            name = os.path.join(self.root, one["file"])
            problem = self.set_break(name, one["line"], one["temporary"], one["condition"], one["function"])
            if problem:
                lost.append(dict(one, why="the file has no such line any more"))
                continue
            made = bdb.Breakpoint.bpbynumber[one["number"]]
            assert made is not None
            made.ignore = made.given = one["ignore"]
            made.enabled = one["enabled"]
            if one["commands"]:
                self._restore_commands(one["number"], one["commands"])
        self._skip_numbers(state["next"])
        return lost

    def change_breakpoints(self, old: "Json", new: "Json") -> None:
        """Make the breakpoints, of which `old` is the dump, what `new` says."""
        before = {one["number"]: one for one in old["list"]}
        for number in set(before) - {one["number"] for one in new["list"]}:
            self.clear_bpbynumber(number)
        fresh = [one for one in new["list"] if one["number"] not in before]
        self.restore_breakpoints({"list": fresh, "next": new["next"]})
        for one in new["list"]:
            was = before.get(one["number"], one)
            if one != was:
                there = bdb.Breakpoint.bpbynumber[one["number"]]
                assert there is not None
                there.cond, there.temporary = one["condition"], one["temporary"]
                there.ignore, there.enabled = one["ignore"], one["enabled"]
                self._restore_commands(one["number"], one["commands"])

    @staticmethod
    def _skip_numbers(number: int) -> None:
        """Make `number` the next breakpoint's."""
        bdb.Breakpoint.next = max(number, bdb.Breakpoint.next)
        while len(bdb.Breakpoint.bpbynumber) < bdb.Breakpoint.next:
            bdb.Breakpoint.bpbynumber.append(None)

    def _restore_commands(self, number: int, commands: "List[str]") -> None:
        if not hasattr(self, "commands_doprompt"):  # from Python 3.14 on, lines are kept as they are
            self.commands[number] = list(commands)
            return
        self.commands[number] = []
        self.commands_doprompt[number] = True
        self.commands_silent[number] = False
        self.commands_bnum = number
        for line in commands:
            self.handle_command_def(line)

    # ---- files

    def canonic(self, filename: str) -> str:
        """The real path, so that a file is one file whatever links lead to it."""
        name = self.fncache.get(filename)
        if name is None:
            if filename[:1] == "<" and filename[-1:] == ">":
                name = filename
            else:
                with OwnBuiltins():
                    name = os.path.realpath(os.path.join(self._cwd, filename))
            self.fncache[filename] = name
        return name
