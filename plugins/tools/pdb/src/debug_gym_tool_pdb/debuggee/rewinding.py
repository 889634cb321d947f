"""Commands that go back to where the program was stopped before."""

import contextlib
import re
import sys

from debug_gym_core.debugging.inside.process import LOST_STATUS, _exit, _getpid

from .channel import Channel
from .copies import Lost
from .debugger import Debugger
from .outside import event_loops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

    from .copies import Copies
    from .stop import Stop

    Json = Dict[str, Any]

_MARKS = {"call": "--Call--", "return": "--Return--"}
"""What pdb prints before the place, by the reason of a stop."""

_COUNT = re.compile(r"0*[1-9][0-9]{0,8}\Z")


class Rewinding(Debugger):
    """A debugger that keeps a copy of the program at each stop; see `copies`."""

    rewinds = True

    def __init__(self, channel: "Channel", root: str, copies: "Copies") -> None:
        """See Debugger; `copies`: begun already."""
        super().__init__(channel, root)
        self._copies = copies
        self._number = 0
        self._places: "Dict[int, str]" = {}
        self._why_not = ""

    def keep(self, stop: "Stop") -> None:
        """Have a copy of the program wait where it is stopped; it goes on from here when it is asked to."""
        if self.channel.process or self._nested:  # a child of the program's: the copy would be one of nobody
            return
        self._number += 1
        loops = event_loops()
        _flush()
        try:
            asked, why_not = self._copies.keep(self._number)
        except Lost as error:  # it is only in part what it was
            out = "*** stop {} could not be gone back to: {}\n".format(self._number, error)
            self.channel.send({"t": "stranded", "out": out})
            _exit(LOST_STATUS)
        if asked is not None:
            self._went_back(asked, loops)
        stop.details["number"] = self._number
        if why_not and why_not != self._why_not:
            stop.details["unkept"] = why_not
        self._why_not = why_not

    def _went_back(self, asked: "Json", loops: "List[Any]") -> None:
        """Be the process that talks to the host, in the place of the one that asked."""
        self._pid = _getpid()
        self._turn.take_over()
        _be_the_process(loops)
        self.remembered.take_over(asked["breakpoints"])
        self.finder.watch()
        self.aliases = dict(asked["aliases"])
        self._failed, self._used = False, 0
        self.output.take()
        origin = "" if asked["number"] == self._number else ", from stop {}".format(asked["number"])
        self.message("Back at stop {}{}; what was done to files since stays.".format(self._number, origin))
        if self._stop is not None and self._stop.reason in _MARKS:
            self.message(_MARKS[self._stop.reason])
        self.print_stack_entry(self.stack[self.curindex])

    def _report(self, stop: "Stop") -> "Json":
        report = super()._report(stop)
        number = report.get("number")
        if number is not None:
            self._places[number] = _described(report)
        return report

    def do_back(self, arg: str) -> "Any":
        """back [count]

        Go back to the last stop before this one that was kept, or by
        count stops: the program is there what it was. What it has done
        to files, or printed, since stays as it is.
        """  # noqa: D403, D415 (what `help back` prints)
        kept = [one for one in self._kept() if one < self._number]
        count = arg.strip(" ()") or "1"
        if not _COUNT.match(count):
            return self.error("back takes how many stops to go back, as in back 2")
        if not kept:
            return self.error("there is no stop before this one to go back to" + self._why())
        if int(count) > len(kept):
            return self.error("only {} can be gone back to before this stop; rewind lists them".format(len(kept)))
        return self._go(kept[-int(count)])

    def do_rewind(self, arg: str) -> "Any":
        """rewind [number]

        Go back to the stop of that number, also to the one where the
        program is, before what was done there. Without a number, list
        the stops that were kept.
        """  # noqa: D403, D415 (what `help rewind` prints)
        kept = self._kept()
        number = arg.strip(" ()")
        if not number:
            for one in kept:
                self.message("{} {:>3}  {}".format(">" if one == self._number else " ", one, self._places.get(one, "")))
            if not kept:
                self.message("There is no stop to go back to" + self._why())
            return None
        if not _COUNT.match(number):
            return self.error("rewind takes the number of a stop, as in rewind 2; alone it lists them")
        if int(number) in kept:
            return self._go(int(number))
        if int(number) == self._number:
            return self.error("this stop cannot be gone back to" + self._why())
        missing = "stop {} is not kept; rewind lists those that are"
        return self.error((missing if int(number) < self._number else "there is no stop {}").format(number))

    def _kept(self) -> "List[int]":
        """The stops that can be gone back to from here."""
        return [] if self.channel.process else self._copies.there()

    def _why(self) -> str:
        """Why there is no stop, to be appended; empty: that is not known."""
        why = "this is a child process" if self.channel.process else self._why_not
        return ": " + why if why else ""

    def _go(self, number: int) -> None:
        """Let the copy of a stop go on instead of this process."""
        message = {"number": self._number, "breakpoints": self.remembered.dump(), "aliases": self.aliases}
        self._copies.go(number, message)
        self.error("stop {} cannot be gone back to any more: its copy has ended".format(number))


def _described(report: "Json") -> str:
    """A stop in a line."""
    if report["reason"] == "entry":
        return "before the program's first line"
    reason = "breakpoint {}".format(report["breakpoint"]) if "breakpoint" in report else report["reason"]
    return "{} at {}:{} in {}".format(reason, report["file"], report["line"], report["function"])


def _flush() -> None:
    """Print what the program has not printed yet, so that no copy does it again."""
    for stream in (sys.__stdout__, sys.__stderr__, sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # it is closed, or something of the program's own
            stream.flush()  # type: ignore[union-attr]


def _be_the_process(loops: "List[Any]") -> None:
    """Tell Python what it remembers by the number of the process, or of its thread."""
    if loops and loops[0].is_running():
        sys.modules["asyncio.events"]._set_running_loop(loops[0])
    threading = sys.modules.get("threading")
    thread = threading.main_thread() if threading is not None else None
    if hasattr(thread, "_set_native_id"):
        thread._set_native_id()  # type: ignore[union-attr]
    util = sys.modules.get("multiprocessing.util")
    for one in list(getattr(util, "_finalizer_registry", {}).values()):
        one._pid = _getpid()
