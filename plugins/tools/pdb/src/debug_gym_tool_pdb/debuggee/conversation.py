"""pdb with other ears and another mouth: the host tells it over a channel what to do, and is answered there."""

import bdb
import inspect
import linecache
import os
import pdb
import reprlib
import sys

from debug_gym_core.debugging.inside.limits import OutOfTime, TimeLimit
from debug_gym_core.debugging.inside.process import _get_ident

from .channel import Channel, Input, Output, OwnBuiltins
from .files import Files
from .hints import Hints
from .locations import Locations
from .meaning import Meaning
from .modules import FROZEN, file_of_frozen, loaded
from .remembered import Remembered
from .report import Reporter
from .shown import Shown
from .signals import Signals
from .statements import Sources
from .values import REPR_SECONDS, Values
from .vocabulary import Aliases, Vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Dict, List, Optional, Tuple

    from .stop import Stop

    Json = Dict[str, Any]

LINE_LENGTH = 1000
"""Characters that are shown of a line of source."""

IGNORED = "the file is ignored in this task: its source is not shown"


class Conversation(pdb.Pdb):
    """pdb that reads commands from a channel and answers on it.

    Attributes:
        program: what is debugged
        at_entry: whether nothing of it has run yet
        hello: what the next message says besides, once
        unannounced: whether the next stop is left at once, by a command that was given before
        rewinds: whether stops are kept, to go back to them
    """

    rewinds = False

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
        self._cwd = os.getcwd()
        self.files = Files(self.root, self.canonic)
        self.sources = Sources()
        self.shown = Shown()
        self.values = Values()
        self.signals = Signals()
        self.reporter = Reporter(self.files, self.shown, self.values)
        self.vocabulary = Vocabulary(self)
        self.meaning = Meaning(self.vocabulary)
        self.hints = Hints(self.vocabulary, self.files.path)
        self.locations = Locations(self, self.files, lambda: self.before_runner)
        self.remembered = Remembered(self, self.files)
        self.program: "Any" = None
        self.at_entry = False
        self.hello: "Json" = {}
        self.unannounced = False
        self._stop: "Optional[Stop]" = None
        self._due = False
        self._failed = False
        self._executing = False
        self._interrupted = False
        self._feeding: "Optional[str]" = None
        self._read = 0
        self._rest: "List[str]" = []
        self._used = 0
        self._last_fed = ""
        self._nested = False
        self._started: "List[str]" = []

    @property
    def before_runner(self) -> bool:
        """Whether the program is a runner of tests that has not begun: no line of the user's own is to be shown yet."""
        return self.at_entry and not bool(self.program.steppable)

    # ---- what the host says

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
        if self._due and self._stop is not None:
            self.keep(self._stop)
        self.channel.send(self._prompt_message())
        request = self.channel.receive()
        while "loaded" in request:
            self.channel.send({"t": "answer", "loaded": self._has_loaded(request["loaded"])})
            request = self.channel.receive()
        self._failed = self._interrupted = False
        self._read += 1
        self._rest = list(request.get("rest", ()))
        self._used = 0
        return str(request["cmd"]) + "\n"

    def keep(self, stop: "Stop") -> None:
        """Keep a stop of which the host is about to be told, to go back to it; here none is kept."""

    def _has_loaded(self, path: str) -> bool:
        """Whether the program runs code of a file of the repository."""
        wanted = os.path.join(self.root, path)
        linecache.checkcache(wanted)
        names = {frame.f_code.co_filename for frame, _ in self.stack}.union(name for name, _ in loaded())
        base = os.path.basename(wanted)
        return any(os.path.basename(name) == base and self.canonic(name) == wanted for name in names)

    def _feed(self) -> str:
        self._used += 1
        self._last_fed = self._rest.pop(0)
        return self._last_fed

    # ---- what it is answered

    def _prompt_message(self) -> "Json":
        message: "Json" = {"t": "prompt", "failed": self._failed, "used": self._used}
        message.update(self.output.take())
        if self._nested and message["out"].endswith("((Pdb)) "):
            message["out"] = message["out"][: -len("((Pdb)) ")]
        if self._due and self._stop is not None:
            self._due = False
            executing, self._executing = self._executing, True  # that the host may interrupt it
            try:
                message["stop"] = self._report(self._stop)
            except (Exception, KeyboardInterrupt) as error:  # the program has replaced what the report is made with
                why = "it cannot be described: {}: {}".format(type(error).__name__, self.values.said(error))
                if isinstance(error, KeyboardInterrupt):
                    why = "it takes too long to describe it"
                message["stop"] = dict(self._briefly(self._stop), note=why)
            finally:
                self._executing = executing
            self._add_started(message)
        if self._interrupted:
            message["interrupted"] = True
        self.remembered.add_to(message)
        if self.hello:
            message["hello"], self.hello = self.hello, {}
        return message

    def _briefly(self, stop: "Stop") -> "Json":
        """Why it stopped, and where."""
        report: "Json" = {"reason": stop.reason}
        report.update((key, value) for key, value in stop.details.items() if value is not None)
        if not self.before_runner:
            report.update(self.reporter.place(*self.stack[self.curindex]))
        return report

    def _report(self, stop: "Stop") -> "Json":
        report = self._briefly(stop)
        if self.before_runner:
            return report
        report.update(self.reporter.report(self.stack, self.curindex, stop.error, stop.value))
        if stop.reason == "interrupt":
            report["threads"] = self.reporter.threads()
        return report

    def started(self, how: str) -> None:
        """Remember that the program started an interpreter in which nothing of ours is."""
        if how not in self._started:
            self._started.append(how)

    def _add_started(self, message: "Json") -> None:
        """Tell of interpreters in which breakpoints do not stop; the host knows what it was told by other processes."""
        if self._started and self.breaks:
            message["started"] = list(self._started)

    # ---- how a command is carried out

    def _cmdloop(self) -> None:
        """Read and carry out commands; whatever fails in that is no concern of the program's."""
        while True:
            before = self._read
            try:
                return super()._cmdloop()
            except bdb.BdbQuit:
                raise
            except BaseException as error:
                if self._read == before:  # nobody could say anything any more
                    raise
                self.error("the debugger failed: {}: {}".format(type(error).__name__, self.values.said(error)))

    def precmd(self, line: str) -> str:
        """Put what an alias stands for in its place; one that begins with its own name means what that means else."""
        aliases, self.aliases = self.aliases, Aliases(self.aliases)
        executing, self._executing = self._executing, True
        try:
            return super().precmd(line)
        except IndexError:  # it stands for nothing
            return ""
        finally:
            self.aliases, self._executing = aliases, executing

    def guarded(self, function: "Callable[..., Any]", *arguments: "Any") -> "Tuple[Any, str]":
        """Call something that describes a value, which is code of the program's.

        Returns:
            what it returned, and how it ended else, in words; empty: it returned

        Raises:
            KeyboardInterrupt: the host ends the command that runs
        """
        executing, self._executing = self._executing, True  # that the host may interrupt it before a prompt too
        try:
            with TimeLimit(REPR_SECONDS) as limit:
                return limit.call(function, *arguments), ""
        except BaseException as error:
            if executing and isinstance(error, KeyboardInterrupt):
                raise
            late = isinstance(error, (OutOfTime, KeyboardInterrupt))
            return None, "took too long" if late else "raised " + type(error).__name__
        finally:
            self._executing = executing

    def onecmd(self, line: str) -> "Any":
        """Carry out what a line means; what it prints to the program's standard output is pdb's output.

        A line that speaks of that output is about the program's own.
        """
        if self.commands_defining:
            return super().onecmd(line)
        saved = sys.stdout
        if "stdout" not in line:
            sys.stdout = self.output
        before = self.output.talker, self.output.program
        self.output.talker = _get_ident()
        if saved is not self.output:
            self.output.program = saved
        self._executing = True
        try:
            meant = self.meaning.of(line.strip())
            if meant is None:
                self.show_locals()
                meant = ""
            return super().onecmd(meant)
        except (bdb.BdbQuit, KeyboardInterrupt):
            raise
        except BaseException as error:  # of pdb itself: the program has replaced what it uses, or a repr raises
            self.error("the command failed: {}: {}".format(type(error).__name__, self.values.said(error)))
            return None
        finally:
            self._executing = False
            self.output.talker, self.output.program = before
            if sys.stdout is self.output:
                sys.stdout = saved

    def emptyline(self) -> "Any":
        """Do nothing: what is empty is only a part between `;;`, after which pdb would do the last command again."""

    def show_locals(self) -> None:
        """Show the variables of the current frame, for which pdb has no command."""
        raise NotImplementedError

    def error(self, msg: str) -> None:
        """Print an error as pdb does, then what would be right; remember that the command failed."""
        self._failed = True
        self.message("*** {}".format(msg))
        hint = self.hints.of(str(msg), self.at_entry)
        if hint:
            self.message("hint: " + hint)

    def message(self, msg: str, end: str = "\n") -> None:
        """Print as pdb does, whatever the program has made of `print`."""
        self.output.write("{}{}".format(msg, end))

    def print_stack_entry(self, *args: "Any", **kwargs: "Any") -> None:
        """Print an entry as pdb does; before the first line of a runner there is none to print."""
        unannounced, self.unannounced = self.unannounced, False
        if not unannounced and not (self._due and self.before_runner):
            super().print_stack_entry(*args, **kwargs)

    def format_stack_entry(self, frame_lineno: "Tuple[FrameType, int]", lprefix: str = ": ") -> str:
        """Describe a frame as pdb does, without the source of a file that is ignored."""
        frame, line = frame_lineno
        name, stop = self.canonic(frame.f_code.co_filename), self._stop
        text = "{}({}){}()".format(name, line, frame.f_code.co_name)
        if self.is_ignored(frame):
            return text + lprefix + IGNORED
        if stop is not None and stop.reason == "return" and frame is self.stack[-1][0]:
            shown, odd = self.guarded(reprlib.repr, stop.value[0])
            text += "->" + (shown if not odd else "<a value whose repr {}>".format(odd))
        file = self.files.with_lines(frame.f_code.co_filename)
        source, odd = self.guarded(linecache.getline, file, line, frame.f_globals)
        return text + lprefix + shortened(source.strip()) if not odd and source.strip() else text

    def is_ignored(self, value: "Any") -> bool:
        """Whether a frame, or what else has source, is of a file that is ignored in the task."""
        if not self.files.ignored:
            return False
        try:
            filename = inspect.getfile(value)
        except (TypeError, OSError):
            return False
        return self.files.is_ignored(filename)

    # ---- files

    def lookupmodule(self, filename: str) -> "Optional[str]":
        """Find a file as the host names it: by its path in the repository, absolute, or as pdb does.

        Outside of the repository, whatever links lead there, only what could be imported is found.
        """
        found = self.files.find(filename)
        if found is None:
            found = super().lookupmodule(filename)
            if found is None or not os.path.isfile(found) or not self.files.is_own(found):
                ours = self.files.called(filename)
                found = self._only_one(ours) if ours else found or self.files.module(filename)
        if found is not None and not os.path.isfile(found):
            return None
        return found if found is None or self.files.is_code(os.path.realpath(found)) else None

    def _only_one(self, found: "List[str]") -> "Optional[str]":
        """The only one of the repository's files of a name."""
        if len(found) > 1:
            name = os.path.basename(found[0])
            self.message("Several files are called {}: {}".format(name, ", ".join(map(self.files.path, found))))
        return found[0] if len(found) == 1 else None

    def canonic(self, filename: str) -> str:
        """The real path, so that a file is one file whatever links lead to it, and when it is frozen."""
        name = self.fncache.get(filename)
        if name is None:
            is_no_path = filename[:1] == "<" and filename[-1:] == ">"
            if is_no_path and filename[: len(FROZEN)] != FROZEN:
                name = filename  # without a call: the program may be near its recursion limit
            else:
                with OwnBuiltins():
                    file = file_of_frozen(filename) if is_no_path else filename
                    name = os.path.realpath(os.path.join(self._cwd, file)) if file else filename
            self.fncache[filename] = name
        return name

    def defaultFile(self) -> str:
        """See pdb."""
        return self.files.with_lines(super().defaultFile())


def shortened(text: str) -> str:
    """A text without the rest of lines that are very long, as those of a program that was made by one."""
    if len(text) <= LINE_LENGTH:
        return text
    return "\n".join(line if len(line) <= LINE_LENGTH else line[:LINE_LENGTH] + "..." for line in text.split("\n"))


def documented(commands: type) -> type:
    """Have a class's commands say of themselves what pdb's say."""
    for name, command in vars(commands).items():
        if name.startswith("do_") and command.__doc__ is None:
            command.__doc__ = getattr(getattr(pdb.Pdb, name, None), "__doc__", None)
    return commands
