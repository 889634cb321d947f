"""What is kept of a call: its steps in order, loops folded, and the calls that it made."""

from collections import deque

from .channel import _exc_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Deque, Dict, List, Optional, Tuple

    from .scope import Scope
    from .source import Source, Unit

    Json = Dict[str, Any]
    Pairs = List[Tuple[str, str]]

MOST_PASSES = 5
"""Passes of a loop that are kept, at its beginning and at its end."""

MOST_CALLS = 6
"""Calls that are kept of one step."""

MOST_YIELDS = 5
MOST_CHANGES = 16
MOST_RAISED = 3


class Step:
    """A statement that was carried out once.

    Attributes:
        changed: variables that it changed, and to what; an empty text: it is gone
        calls: what it called of the repository's own functions
        raised: exceptions that were raised in it
        yielded: what it yielded
        awaited: how often it waited
    """

    def __init__(self, unit: "Unit", source: "Source", offset: int) -> None:
        """Begin it.

        Args:
            unit: the statement
            source: its file
            offset: where it begins in the function's byte code
        """
        self.unit = unit
        self.offset = offset
        self._source = source
        self.changed: "Pairs" = []
        self.calls: "List[Call]" = []
        self.more_calls = 0
        self.raised: "List[Dict[str, Any]]" = []
        self.yielded: "List[str]" = []
        self.yields = 0
        self.awaited = 0

    def makes(self, call: "Call") -> None:
        """It calls a function."""
        self.calls.append(call)
        call.made_in = self

    def raises(self, error: "Dict[str, str]") -> None:
        """An exception is raised in it, after the calls that it has made so far; one that goes on is told once."""
        if all(one["type"] != error["type"] or one["message"] != error["message"] for one in self.raised):
            self.raised.append(dict(error, after=len(self.calls) + self.more_calls))
            del self.raised[:-MOST_RAISED]

    def is_silent(self) -> bool:
        """Whether nothing came of it."""
        return not (self.changed or self.calls or self.raised or self.yields)

    def as_json(self) -> "Json":
        """See Call."""
        found: "Json" = {
            "line": self.unit.line,
            "text": self._source.text(self.unit),
            "indent": self._source.indent(self.unit),
        }
        if self.changed:
            found["changed"] = self.changed[:MOST_CHANGES]
            found["more_changed"] = max(0, len(self.changed) - MOST_CHANGES)
        if self.calls:
            found["calls"] = [one.as_json() for one in self.calls]
            found["more_calls"] = self.more_calls
        if self.raised:
            found["raised"] = self.raised
        if self.yields:
            found["yielded"] = self.yielded
            found["yields"] = self.yields
        if self.awaited:
            found["awaited"] = self.awaited
        return found


class Block:
    """Steps and loops in their order: of a function, or of one pass of a loop."""

    def __init__(self) -> None:
        """Begin empty."""
        self.items: "List[Any]" = []
        self.inner = -1  # where its first step begins that is not the loop's own first line

    def as_json(self) -> "List[Json]":
        """See Call."""
        return [one.as_json() for one in self.items]


class Loop:
    """A loop that was run: its first and last passes.

    Attributes:
        line: where it begins
        block: the pass that it is in
        count: passes so far, this one with them
    """

    def __init__(self, line: int, entered: int) -> None:
        """Begin with the first pass; `entered`: where in the byte code."""
        self.line = line
        self.entered = entered
        self.block = Block()
        self.count = 1
        self._first: "List[Block]" = [self.block]
        self._last: "Deque[Block]" = deque(maxlen=MOST_PASSES + 1)  # one may be no pass, see `close`

    def again(self) -> None:
        """Begin another pass."""
        self.block = Block()
        self.count += 1
        (self._first if len(self._first) < MOST_PASSES else self._last).append(self.block)

    def close(self) -> None:
        """End it; a look at whether there is another pass was none."""
        items = self.block.items
        if len(items) == 1 and type(items[0]) is Step and items[0].unit.line == self.line and items[0].is_silent():
            (self._last or self._first).pop()
            self.count -= 1

    def as_json(self) -> "Json":
        """See Call."""
        return {
            "loop": self.line,
            "passes": self.count,
            "first": [one.as_json() for one in self._first],
            "last": [one.as_json() for one in list(self._last)[-MOST_PASSES:]],
        }


class Call:
    """A call of a function.

    Attributes:
        level: how many followed calls it is within; 0: the one that was asked for
        detailed: whether its steps are followed, or only how it ends
        frame: its frame, while it is there
        scope: its variables
        step: the step that it is in
        made_in: the step that made it
        outer: identity of the exception that was handled around it when it began or went on; 0: none was
        handled: the exception that it handles at its line, as far as it was looked for
        handled_id: its identity
        heard_at: where in its byte code an exception was heard of, if no line was begun since; -1: one was
        line_at: where in its byte code its line begins; -1: it is not known
        line: its number
        steps: how many steps were followed
        unfollowed: lines after them
        at_end: what these changed
    """

    def __init__(self, about: "Json", frame: "FrameType", scope: "Scope", level: int, detailed: bool) -> None:
        """Begin it.

        Args:
            about: what is known of it at its beginning
            frame: its frame
            scope: its variables
            level: how many followed calls it is within
            detailed: whether its steps are followed
        """
        self.about = about
        self.frame: "Optional[FrameType]" = frame
        self.scope = scope
        self.level = level
        self.detailed = detailed
        self.step: "Optional[Step]" = None
        self.made_in: "Optional[Step]" = None
        self.outer = id(_exc_info()[1]) if _exc_info()[1] is not None else 0
        self.handled: "Optional[Dict[str, str]]" = None
        self.handled_id = 0
        self.heard_at = self.line_at = -1
        self.line = 0
        self._error: "Optional[Dict[str, str]]" = None
        self._quiet: "Optional[Dict[str, str]]" = None
        self._is_fresh = self._is_quiet = False
        self.ended: "Optional[Json]" = None
        self.steps = 0
        self.unfollowed = 0
        self.at_end: "Pairs" = []
        self._yielded: "List[str]" = []
        self.yields = 0
        self._root = Block()
        self._loops: "List[Loop]" = []
        self._withs: "Dict[int, int]" = {}

    # ---- how it may be left

    def begins_line(self, offset: int, line: int, handles: bool) -> None:
        """It begins a line; `handles`: to handle what was heard of, at once."""
        self.heard_at, self.line_at, self.line = -1, offset, line
        if handles and self._is_fresh:
            self.handled, self.handled_id = self._error, 0
        self._is_fresh = self._is_quiet = False

    def goes_on(self, handled: "Optional[BaseException]") -> None:
        """It goes on that was suspended, while an exception may be handled in it, or around it."""
        self.ended = None
        self.heard_at = -1
        if handled is None or id(handled) != self.handled_id:
            self.outer = id(handled) if handled is not None else 0

    def hears(self, error: "Dict[str, str]", quiet: bool) -> None:
        """An exception is raised in it; `quiet`: which only ends what it runs, as far as can be told."""
        if quiet:
            self._quiet, self._is_quiet = error, True
        else:
            self._error, self._is_fresh = error, True

    @property
    def pending(self) -> bool:
        """Whether an exception is on its way through it."""
        return self._is_fresh or self.handled is not None

    @property
    def left_by(self) -> "Optional[Dict[str, str]]":
        """The exception that leaves it: one that was raised in its line, else the one that it handles there."""
        if self._is_fresh:
            return self._error
        if self.handled is not None:
            return self.handled
        return self._quiet if self._is_quiet or self._error is None else self._error

    # ---- what it does

    def is_step(self, unit: "Unit", offset: int) -> bool:
        """Whether a line begins a step: not the rest of a statement, nor the end of a `with`."""
        if unit.kind in ("try", "text") or (unit.kind == "def" and unit.line == self.about.get("definition")):
            return False
        last = self.step
        if last is not None and last.unit is unit and offset > last.offset:
            return False
        if unit.kind == "with":
            entered = self._withs.setdefault(unit.line, offset)
            return offset <= entered
        return True

    def begin(self, unit: "Unit", source: "Source", offset: int) -> None:
        """Begin a step."""
        self.steps += 1
        block = self._place(unit, offset)
        if block.inner < 0 and not (unit.loops and unit.line == unit.loops[-1]):
            block.inner = offset
        self.step = Step(unit, source, offset)
        block.items.append(self.step)

    def _place(self, unit: "Unit", offset: int) -> "Block":
        """The pass, or the function, that a step belongs to."""
        common = 0
        while common < min(len(self._loops), len(unit.loops)) and self._loops[common].line == unit.loops[common]:
            common += 1
        is_header = bool(unit.loops) and unit.line == unit.loops[-1]
        for depth in range(common):  # a loop without a test has no first line to come back to
            inner = self._loops[depth].block.inner
            if 0 <= offset <= inner and not (is_header and (unit.kind == "while" or depth == len(unit.loops) - 1)):
                self._leave(depth + 1)
                self._loops[depth].again()
                common = depth + 1
                break
        self._leave(common)
        if is_header and common == len(unit.loops):
            loop = self._loops[-1]
            if unit.kind == "for" and offset <= loop.entered:  # it is run anew
                self._leave(common - 1)
            elif loop.block.items:
                loop.again()
        while len(self._loops) < len(unit.loops):
            loop = Loop(unit.loops[len(self._loops)], offset)
            block = self._block()
            block.items.append(loop)
            if block.inner < 0:
                block.inner = offset
            self._loops.append(loop)
        return self._block()

    def _block(self) -> "Block":
        return self._loops[-1].block if self._loops else self._root

    def _leave(self, depth: int) -> None:
        while len(self._loops) > depth:
            self._loops.pop().close()

    def yields_value(self, text: str) -> None:
        """It yields a value."""
        self.yields += 1
        if len(self._yielded) < MOST_YIELDS:
            self._yielded.append(text)
        if self.step is not None:
            self.step.yields += 1
            if len(self.step.yielded) < MOST_YIELDS:
                self.step.yielded.append(text)

    @property
    def state(self) -> str:
        """How it ended, or whether it runs or waits."""
        return "running" if self.ended is None else str(self.ended["how"])

    def end(self, ended: "Json", within: "Optional[Step]" = None) -> None:
        """End it; `within`: the step that runs it then, which for a generator may be another than has made it."""
        self._leave(0)
        if within is not None and within is not self.made_in:
            ended["within"] = within.unit.line
        self.ended = ended
        self.frame = None

    def as_json(self) -> "Json":
        """What the host is told.

        `function`, `file`, `line`, `kind`, `arguments`; `end`: `how` (`returned`, `raised`, and while it lasts
        `running` or `suspended`) and `value` or `exception`; `yielded` and `yields`. Where it was followed: `used`, and
        `items`, which are steps (`line`, `text`, `indent`, `changed`, `calls`, `raised`, ...) and loops (`loop`: its
        line, `passes`, and of these `first` and `last`).
        """
        found = {key: value for key, value in self.about.items() if key != "definition"}
        found["arguments"] = self.scope.arguments
        found["end"] = self.ended or {"how": "running"}
        if self.yields:
            found["yielded"] = self._yielded
            found["yields"] = self.yields
        if self.detailed:
            found["used"] = self.scope.used
            found["items"] = self._root.as_json()
            found["steps"] = self.steps
            found["unfollowed"] = self.unfollowed
            found["at_end"] = self.at_end[:MOST_CHANGES]
        return found
