"""Where it begins."""

import contextlib
import difflib
import faulthandler
import signal
import sys
import threading
import traceback

from debug_gym_core.debugging.inside.process import INTERRUPT_SIGNAL, OURS, STACK_SIGNAL, _signal, high_copy
from debug_gym_core.debugging.inside.programs import BadTarget, Program, make_program

from .channel import Channel
from .files import Files
from .monitoring import Monitoring
from .pytests import TracedPytest
from .settrace import SetTrace
from .source import Definition
from .watching import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Dict, List, Optional

    Json = Dict[str, Any]

MODULE = "<module>"
MOST_NAMED = 30
_pause = signal.pause


class Unknown(Exception):
    """The file has no such function."""


def find_definitions(files: "Files", file: str, wanted: str) -> "List[Definition]":
    """What a file has under a name.

    Args:
        files: the repository's
        file: its real name
        wanted: a qualified name or the end of one, or the number of a line, which means the innermost function there

    Raises:
        Unknown: there is none, or several; says which there are
    """
    source = files.source(file)
    path = files.path(file)
    if wanted == MODULE:
        return [Definition(MODULE, MODULE, 1, 0, 1, len(source.lines), "module")]
    if source.problem:
        raise Unknown("{} is not Python that this interpreter understands: {}".format(path, source.problem))
    known = source.definitions
    if wanted.isdigit():
        line = int(wanted)
        around = [one for one in known if one.first <= line <= one.end and one.kind != "lambda"]
        if not around:
            raise Unknown("line {} of {} is in no function; {}".format(line, path, _named(known, wanted)))
        return [max(around, key=lambda one: one.first)]
    wanted = wanted.replace(".<locals>", "")
    found = [one for one in known if one.name == wanted]
    if not found:
        found = [one for one in known if one.name.endswith("." + wanted)]
        names = sorted({one.name for one in found})
        if len(names) > 1:
            raise Unknown("{} has several: {}; say which".format(path, ", ".join(names[:MOST_NAMED])))
    if not found:
        raise Unknown("{} has no function {}; {}".format(path, wanted, _named(known, wanted)))
    return found


def _named(definitions: "List[Definition]", wanted: str) -> str:
    """Which functions there are, the nearest first."""
    names = list(dict.fromkeys(one.name for one in definitions if one.kind != "lambda"))
    if not names:
        return "it has none at all"
    last = wanted.rpartition(".")[2].lower()
    ratio = {name: difflib.SequenceMatcher(None, last, name.rpartition(".")[2].lower()).ratio() for name in names[:500]}
    names = sorted(ratio, key=lambda name: -ratio[name]) + names[500:]
    more = "" if len(names) <= MOST_NAMED else " and {} more".format(len(names) - MOST_NAMED)
    return "it has {}{}".format(", ".join(names[:MOST_NAMED]), more)


def find_program(config: "Json", watch: "Watch", channel: "Channel", files: "Files", name: str) -> "Program":
    """What the configuration asks to run; `name`: the function's that is followed, as its file has it."""
    if config["kind"] == "module" and config["target"] == "pytest":
        test = files.real(files.root + "/" + config["file"]), name.replace(".", "::"), config.get("case", "")
        return TracedPytest(config["args"], watch, channel, files, test)
    return make_program(config["kind"], config["target"], config["args"])


def run(program: "Program") -> "Json":
    """Run a program to its end, its threads with it; returns `status`, and `exception` where one ended it."""
    found: "Json" = {"status": 0}
    try:
        found["status"] = program.run()
    except SystemExit as error:
        found["status"] = _status(error)
    except BadTarget as error:
        found.update(status=1, refused=str(error))
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == OURS:
            trace = trace.tb_next
        sys.stdout.flush()
        traceback.print_exception(type(error), error, trace)
        found.update(status=1, exception=traceback.format_exception_only(type(error), error)[-1].strip()[:400])
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    return found


def _status(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    sys.stderr.write("{}\n".format(error.code))
    return 1


def main(descriptor: int) -> int:
    """Run what the host asks for and follow one call; returns the exit status."""
    channel = Channel(descriptor)
    config = channel.receive()
    files = Files(config["root"], config["ignored"])
    watch = Watch(channel, files, config["call"], config["depth"])
    try:
        file = files.real(files.root + "/" + config["file"])
        definitions = find_definitions(files, file, config["function"])
        watch.want(file, definitions)
        program = find_program(config, watch, channel, files, definitions[0].name)
    except (Unknown, BadTarget) as error:
        channel.send({"t": "refused", "what": type(error).__name__, "why": str(error)})
        return 2
    monitoring = Monitoring(watch, files)
    wanted = config.get("backend")
    watch.backend = monitoring if wanted != "settrace" and monitoring.available() else SetTrace(watch)

    def tell(signum: int, frame: "Optional[FrameType]") -> None:
        channel.from_handler(lambda: tell_last(frame))

    def tell_last(frame: "Optional[FrameType]") -> None:
        """The program is ended now: what it waited for in C code may have been broken off by the signal."""
        watch.tell_now(frame)
        while True:
            _pause()

    _signal(INTERRUPT_SIGNAL, tell)
    with contextlib.suppress(OSError, AttributeError, ValueError):
        faulthandler.register(STACK_SIGNAL, high_copy(2), all_threads=True)
    one = definitions[0]
    about = {"function": one.name, "line": one.line, "kind": one.kind, "definitions": len(definitions)}
    signals = {"interrupt": int(INTERRUPT_SIGNAL), "stack": int(STACK_SIGNAL)}
    channel.send({"t": "begun", "signals": signals, "root": files.root, "about": about})
    watch.backend.start()
    ended = run(program)
    watch.program_ended()
    counts = program.counts if isinstance(program, TracedPytest) else None
    watch.tell(end=ended, tests=counts)
    return int(ended["status"])
