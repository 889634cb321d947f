"""Commands that go back to where the program was stopped before."""

import contextlib
import sys

from debug_gym_core.debugging.inside.process import _getpid

from .channel import Channel
from .debugger import Debugger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

    from .copies import Copies
    from .stop import Stop

    Json = Dict[str, Any]


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
        """Have a copy of the program wait at a stop that begins; the copy goes on from here when it is asked to."""
        if self.channel.process:  # a child of the program's: the copy would be one of nobody
            return
        self._number += 1
        why_not = self._copies.why_not()
        asked = None
        loop = _running_loop()
        if not why_not:
            try:
                _flush()
                asked = self._copies.keep(self._number)
            except OSError as error:
                why_not = str(error)
        if asked is not None:
            self._went_back(asked, loop)
        stop.details["number"] = self._number
        if why_not and why_not != self._why_not:
            stop.details["unkept"] = why_not
        self._why_not = why_not

    def _went_back(self, asked: "Json", loop: "Any") -> None:
        """Be the process that talks to the host, in the place of the one that asked."""
        self._pid = _getpid()
        self._turn.take_over()
        _be_the_process(loop)
        self.remembered.take_over(asked["breakpoints"])
        self.finder.watch()
        origin = "" if asked["number"] == self._number else ", from stop {}".format(asked["number"])
        self.message("Back at stop {}{}; what was written or printed since stays.".format(self._number, origin))

    def _report(self, stop: "Stop") -> "Json":
        report = super()._report(stop)
        number = report.get("number")
        if number is not None:
            self._places[number] = _described(report)
        return report

    def do_back(self, arg: str) -> "Any":
        """back [count]

        Go back to the stop before this one, or count stops: variables
        and breakpoints' counts are what they were there. What the program
        has written or printed since stays as it is.
        """  # noqa: D403, D415 (what `help back` prints)
        kept = [one for one in self._kept() if one < self._number]
        count = arg.strip() or "1"
        if not count.isdigit() or not int(count):
            return self.error("back takes how many stops to go back, as in back 2")
        if int(count) > len(kept):
            return self.error(self._no_stop("stops to go back to: {}".format(len(kept))))
        return self._go(kept[-int(count)])

    def do_rewind(self, arg: str) -> "Any":
        """rewind [number]

        Go back to the stop of that number, also to the one where the
        program is, before what was done there. Without a number, list
        the stops.
        """  # noqa: D403, D415 (what `help rewind` prints)
        kept = self._kept()
        if not arg.strip():
            for one in kept:
                self.message("{} {:>3}  {}".format(">" if one == self._number else " ", one, self._places.get(one, "")))
            if not kept:
                self.message(self._no_stop("There is no stop to go back to"))
            return None
        if not arg.strip().isdigit() or int(arg) not in kept:
            return self.error(self._no_stop("there is no stop {} to go back to".format(arg.strip())))
        return self._go(int(arg))

    def _kept(self) -> "List[int]":
        """The stops that can be gone back to from here."""
        return [] if self.channel.process else self._copies.there()

    def _no_stop(self, what: str) -> str:
        why = "this is a child process" if self.channel.process else self._why_not
        return "{}: {}".format(what, why) if why else "{}; rewind lists them".format(what)

    def _go(self, number: int) -> None:
        """Let the copy of a stop go on instead of this process."""
        self._copies.go(number, {"number": self._number, "breakpoints": self.remembered.dump()})
        self.error("stop {} cannot be gone back to any more: its copy has ended".format(number))


def _described(report: "Json") -> str:
    """A stop in a line."""
    if report["reason"] == "entry":
        return "before the program's first line"
    reason = "breakpoint {}".format(report["breakpoint"]) if "breakpoint" in report else report["reason"]
    return "{} at {}:{} in {}".format(reason, report["file"], report["line"], report["function"])


def _flush() -> None:
    """Print what the program has not printed yet, so that no copy does it again."""
    for stream in (sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):  # it is closed
            stream.flush()  # type: ignore[union-attr]


def _running_loop() -> "Any":
    """The loop of events that runs the program, if any does."""
    events = sys.modules.get("asyncio.events")
    try:
        return None if events is None else events._get_running_loop()
    except Exception:  # it is something of the program's own
        return None


def _be_the_process(loop: "Any") -> None:
    """Tell Python what it remembers by the number of the process."""
    if loop is not None:
        sys.modules["asyncio.events"]._set_running_loop(loop)
    threading = sys.modules.get("threading")
    thread = threading.main_thread() if threading is not None else None
    if hasattr(thread, "_set_native_id"):
        thread._set_native_id()  # type: ignore[union-attr]
