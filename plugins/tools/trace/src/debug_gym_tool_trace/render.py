"""The life of a call as text: each statement in its turn, and beside it what it changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from debug_gym_tool_trace.seen import MOST_UNFOLLOWED, Call, Loop, Step

LIMIT = 9_000
"""Characters of one call, which are some 3,000 tokens."""

PASSES = (5, 3, 2, 1)
"""Passes of loops that are shown, at their beginning and at their end: as many as there is room for."""

WIDTH = 48
"""Columns of a statement before what it changed, at most."""

LINE = 400
"""Characters of one line of the text."""

DEEPEST = 24
"""Columns that a statement is indented by, at most."""

LONG = 30
"""Characters of an argument that is not repeated when it is handed on."""

ARGUMENTS = 200
"""Characters of the arguments of a call that is told in one line."""


@dataclass(frozen=True)
class Text:
    """A call as text.

    Attributes:
        text: the lines
        passes: how many passes of a loop are shown at its beginning and its end
        cut: whether passes, or lines in the middle, are left out
    """

    text: str
    passes: int
    cut: bool


def render(call: Call, limit: int = LIMIT) -> Text:
    """Lay out a call.

    Args:
        call: as it was seen
        limit: characters that it may have; loops are shown by fewer passes, and then its middle left out
    """
    for passes in PASSES:
        layout = _Layout(call, passes)
        lines = list(layout.lines())
        if sum(map(len, lines)) + len(lines) <= limit:
            return Text("\n".join(lines), passes, layout.cut)
    return Text("\n".join(_without_middle(lines, limit)), passes, True)


def _without_middle(lines: Sequence[str], limit: int) -> list[str]:
    """The first and last lines of too many; more of the first."""
    head, tail = [], []
    room = limit * 2 // 3
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        head.append(line)
    room = limit // 3
    for line in reversed(lines[len(head) :]):
        room -= len(line) + 1
        if room < 0:
            break
        tail.append(line)
    left = len(lines) - len(head) - len(tail)
    return [*head, f"... {left} more lines of this trace ...", *reversed(tail)]


def pruned(call: Call, passes: int) -> Call:
    """A call with so many passes of each loop at its beginning and its end, in the calls that it made too."""
    items = None if call.items is None else [_pruned(item, passes) for item in call.items]
    return call.model_copy(update={"items": items})


def _pruned(item: Step | Loop, passes: int) -> Step | Loop:
    if isinstance(item, Step):
        return item.model_copy(update={"calls": [pruned(one, passes) for one in item.calls]}) if item.calls else item
    first, last = _ends(item, passes)
    return item.model_copy(
        update={
            "first": [[_pruned(one, passes) for one in block] for block in first],
            "last": [[_pruned(one, passes) for one in block] for block in last],
        }
    )


def _ends(loop: Loop, passes: int) -> tuple[list[list[Step | Loop]], list[list[Step | Loop]]]:
    """The first and last passes of a loop, those between left out only when there are several of them."""
    known = loop.first + loop.last
    if len(known) == loop.passes and loop.passes <= 2 * passes + 1:
        return known, []
    last = loop.last or loop.first[passes:]
    return loop.first[:passes], last[-passes:]


@dataclass
class _Layout:
    """One way to lay out a call.

    Attributes:
        call: the call
        passes: passes of each loop at its beginning and its end
        cut: whether some are left out
    """

    call: Call
    passes: int
    cut: bool = False

    def lines(self) -> Iterator[str]:
        """All lines after the heading, first those of the arguments."""
        yield from self._variables(self.call)
        yield from self._life(self.call, "")
        yield _end(self.call)

    @staticmethod
    def _variables(call: Call, margin: str = "  ") -> Iterator[str]:
        for name, value in call.arguments:
            yield _bounded(f"{margin}{name} = {value}")
        if call.used:
            yield _bounded(f"{margin}uses " + ", ".join(f"{name} = {value}" for name, value in call.used), 2 * LINE)

    def _life(self, call: Call, margin: str) -> Iterator[str]:
        steps = list(_steps(call.items or []))
        number = max((len(str(step.line)) for step in steps), default=1)
        least = min((step.indent for step in steps), default=0)
        widths = [min(step.indent - least, DEEPEST) + len(step.text) for step in steps if step.changed or step.yields]
        column = min(max(widths, default=0), WIDTH)
        for item in call.items or []:
            yield from self._item(item, margin, number, least, column, call)
        if call.unfollowed:
            self.cut = True
            count = str(call.unfollowed) if call.unfollowed <= MOST_UNFOLLOWED else f"more than {MOST_UNFOLLOWED}"
            yield f"{margin}... {count} more lines were carried out, too many to be followed ..."
            if call.at_end:
                yield _bounded(f"{margin}after them {_changes(call.at_end)}")

    def _item(self, item: Step | Loop, margin: str, number: int, least: int, column: int, call: Call) -> Iterator[str]:
        if isinstance(item, Step):
            yield from self._step(item, margin, number, least, column, call)
            return
        first, last = _ends(item, self.passes)
        left = item.passes - len(first) - len(last)
        for block in first:
            for one in block:
                yield from self._item(one, margin, number, least, column, call)
        if left > 0:
            self.cut = True
            yield f"{margin}{'':>{number}}  ... {left} more passes of the loop at line {item.loop} ..."
        for block in last:
            for one in block:
                yield from self._item(one, margin, number, least, column, call)

    def _step(self, step: Step, margin: str, number: int, least: int, column: int, call: Call) -> Iterator[str]:
        text = " " * min(max(step.indent - least, 0), DEEPEST) + step.text
        beside = [_changes(step.changed)] if step.changed else []
        if step.more_changed:
            beside.append(f"{step.more_changed} more")
        if step.yields:
            beside.append("yields " + _values(step.yielded, step.yields))
        if step.awaited:
            beside.append("waits" if step.awaited == 1 else f"waits {step.awaited} times")
        line = f"{margin}{step.line:>{number}}  {text}"
        if beside:
            line = f"{margin}{step.line:>{number}}  {text:<{column}}  | {', '.join(beside)}"
        yield _bounded(line)
        inner = f"{margin}{'':>{number}}      "
        raised = list(step.raised)
        for number, one in enumerate(step.calls):
            while raised and raised[0].after <= number:
                yield _bounded(f"{inner}! {raised.pop(0)}")
            yield from self._called(one, inner, call)
        if step.more_calls:
            yield f"{inner}> ... {step.more_calls} more calls"
        for error in raised:
            yield _bounded(f"{inner}! {error}")

    def _called(self, call: Call, margin: str, by: Call) -> Iterator[str]:
        shown = _heading(call, by)
        end = _how(call)
        if not call.items:
            yield _bounded(f"{margin}> {shown} {end}")
            return
        yield _bounded(f"{margin}> {shown}, {call.file}:{call.line}:")
        if call.used:
            yield from self._variables(call.model_copy(update={"arguments": []}), f"{margin}    ")
        yield from self._life(call, f"{margin}  ")
        yield _bounded(f"{margin}> {call.function} {end}")


def _changes(changed: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name} = {value}" if value else f"{name} is gone" for name, value in changed)


def _steps(items: Sequence[Step | Loop]) -> Iterator[Step]:
    for item in items:
        if isinstance(item, Step):
            yield item
        else:
            for block in item.first + item.last:
                yield from _steps(block)


def _heading(call: Call, by: Call) -> str:
    """A call as it is written, a method's without its object.

    Args:
        call: the call
        by: the call that made it; what is long and an argument of both is not repeated
    """
    if call.kind == "module":
        return f"(the module {call.file})"
    arguments = call.arguments
    if "." in call.function and arguments and arguments[0][0] in ("self", "cls"):
        arguments = arguments[1:]
    known = [one for one in by.arguments if len(one[1]) > LONG]
    text = ", ".join(f"{one[0]}={'(the same)' if one in known else one[1]}" for one in arguments)
    if len(text) > ARGUMENTS:
        text = f"{text[:ARGUMENTS]}..."
    return f"{call.function}({text})" if call.kind != "class" else f"(the class {call.function})"


def _how(call: Call) -> str:
    """How a call ended that is told in one line."""
    yields = f"yields {_values(call.yielded, call.yields)}" if call.yields else ""
    end = call.end
    if end.how == "returned":
        said = "" if yields and end.value == "None" else f"-> {end.value}"
    elif end.how == "raised":
        said = f"raises {end.exception}" if end.exception else "raises an exception"
    else:
        said = {"suspended": "waits"}.get(end.how, "is not over")
        said = "" if yields and end.how == "suspended" else said
    if said and end.within is not None:
        said += f" in line {end.within}"
    return ", ".join(part for part in (yields, said) if part)


def _values(values: Sequence[str], count: int) -> str:
    more = "" if count <= len(values) else f", ... ({count} in all)"
    return ", ".join(values) + more


def _end(call: Call) -> str:
    """The last line: how the call ended."""
    end = call.end
    where = f" (line {end.line})" if end.line is not None else ""
    yielded = f" after {call.yields} yield{'s' if call.yields != 1 else ''}" if call.yields else ""
    if end.how == "returned":
        return _bounded(f"returned {end.value}{yielded}{where}")
    if end.how == "raised":
        return _bounded(f"raised {end.exception or 'an exception'}{yielded}{where}")
    if end.how == "suspended":
        return f"it waits{yielded}{where}: it was not resumed to its end"
    if end.how == "unseen":
        return "its end was not seen: near the recursion limit, or where the program traces itself, nothing is told"
    return "it was not over"


def _bounded(text: str, limit: int = LINE) -> str:
    text = text.replace("\n", " ")
    return text if len(text) <= limit else f"{text[: limit * 2 // 3]}...{text[-limit // 3 :]}"
