"""Random pdb commands, and a model of which breakpoints there are after them."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hostile_programs import CODE_LINES, HERE, OTHER_LINES, Hostile

from debug_gym_core.debugging.breakpoints import Breakpoint

CONDITIONS = ("turn % 2", "n == 3", "value > 100", "True", "0", "nosuch > 1", "kept is None", "1 / 0")

RESUMES = ("c", "c", "c", "n", "n", "s", "s", "r", "unt", "c")

WRONG = (
    "b nosuch.py:1",
    "cl 77",
    "condition",
    "frobnicate()",
    "p",
    "ignore x",
    "p )(",
    "disable 88",
    "!for",
    "b 1 2 3",
)

LOOKS = (
    *(
        "w",
        "l",
        "ll",
        "a",
        "u",
        "d",
        "u 2",
        "b",
        "whatis turn",
        "p turn",
        "pp list(range(40))",
        "l 1,9",
        "display turn",
    ),
    *("undisplay turn", "help c", "source walk", "p n", "args", "p walk(2)", "p helper", "!kept_here = 1", "alias"),
)


@dataclass(frozen=True)
class Outcome:
    """What became of one command.

    Attributes:
        command: its lines
        output: what pdb printed
        failed: whether pdb refused it
        certain: whether it was neither interrupted nor cut short by the program's end, and pdb could do its work
    """

    command: str
    output: str
    failed: bool
    certain: bool


def commands(source: random.Random, hostile: Hostile) -> list[str]:
    """The commands of one call, as a text each."""
    return [_command(source, hostile) for _ in range(source.choice((1, 1, 2, 3, 5)))]


def _command(source: random.Random, hostile: Hostile) -> str:
    kind = source.choices(
        ("probe", "resume", "set", "change", "look", "own", "wrong", "jump", "end"),
        (30, 32, 8, 8, 14, 6, 1.5, 1, 0.8),
    )[0]
    number = source.randint(1, 9)
    if kind == "probe":
        left, right = source.randint(0, 10**6), source.randint(0, 10**6)
        return source.choice((f"p {left} + {right}", f"pp {left} + {right}", f"!{left} + {right}"))
    if kind == "resume":
        return source.choice(RESUMES)
    if kind == "set":
        place = f"app.py:{source.choice(CODE_LINES if source.random() < 0.9 else OTHER_LINES)}"
        place = source.choice((place, place, place, "walk", "helper", "6"))
        condition = source.choice(("", "", f", {source.choice(CONDITIONS)}"))
        return f"{source.choice(('b', 'break', 'tbreak'))} {place}{condition}"
    if kind == "change":
        return source.choice(
            (
                f"cl {number}",
                f"cl app.py:{source.choice(CODE_LINES)}",
                f"disable {number}",
                f"enable {number}",
                f"ignore {number} {source.randint(0, 3)}",
                f"condition {number} {source.choice(CONDITIONS)}",
                f"condition {number}",
                f"commands {number}\nsilent\np 40 + 2\nend",
                f"commands {number}\np turn\nc",
                f"commands {number}\nend",
                *(["cl"] if source.random() < 0.2 else []),
            )
        )
    if kind == "look":
        return source.choice(LOOKS)
    if kind == "own":
        return f"p {source.choice(['here', *hostile.probes])}"
    if kind == "wrong":
        return source.choice(WRONG)
    if kind == "jump":
        return f"j {source.choice(CODE_LINES)}"
    return source.choice(("restart", "restart", "q", "exit", "run one 'two three'"))


@dataclass
class Model:
    """Which breakpoints there are, as far as the commands say so.

    Attributes:
        breakpoints: by number
        problems: what did not go as it must
        following: whether the program has not jumped since it started
    """

    hostile: Hostile
    breakpoints: dict[int, Breakpoint] = field(default_factory=dict)
    next_number: int = 1
    problems: list[str] = field(default_factory=list)
    following: bool = True

    def see(self, outcomes: Sequence[Outcome], stop: Mapping[str, Any] | None, found: Sequence[Breakpoint]) -> None:
        """Compare a call's outcomes, its last stop and the breakpoints after it with what must be."""
        self._uncertain: set[int] = set()
        self._may_set = self._may_clear = False
        outputs = "".join(outcome.output for outcome in outcomes)
        for outcome in outcomes:
            self._follow(outcome, {one.number: one for one in found})
        if stop is not None and self.following and len(outcomes) > 1:
            self._check_here(outcomes, stop)
        self._compare(outputs, {one.number: one for one in found})

    def _expect(self, condition: object, problem: str) -> None:
        if not condition:
            self.problems.append(problem)

    def _follow(self, outcome: Outcome, found: Mapping[int, Breakpoint]) -> None:
        first, _, rest = outcome.command.partition("\n")
        word, _, argument = first.partition(" ")
        probe = re.fullmatch(r"(?:p |pp |!)(\d+) \+ (\d+)", first)
        if probe and outcome.certain:
            value = str(int(probe[1]) + int(probe[2])) + "\n"
            self._expect(outcome.output == value and not outcome.failed, f"{first!r} printed {outcome.output[-500:]!r}")
        elif word in ("b", "break", "tbreak") and argument:
            self._set(word, argument, outcome, found)
        elif word in ("cl", "disable", "enable", "ignore", "condition", "commands"):
            self._change(word, argument, rest, outcome)
        elif word == "j" and not outcome.failed:
            self.following = False

    def _set(self, word: str, argument: str, outcome: Outcome, found: Mapping[int, Breakpoint]) -> None:
        place, _, condition = argument.partition(", ")
        line = int(place[7:]) if place.startswith("app.py:") else None
        if not outcome.certain:
            self._may_set = True
            return
        if line is not None or place in ("nosuch.py:1", "1 2 3"):
            self._expect(outcome.failed == (line not in CODE_LINES), f"{outcome.command!r} said {outcome.output!r}")
        if outcome.failed:
            return
        number, self.next_number = self.next_number, self.next_number + 1
        self._expect(f"Breakpoint {number} at" in outcome.output, f"{outcome.command!r} said {outcome.output!r}")
        made = found.get(number)
        if line is None:  # where it is depends on where the program is
            if made is None:
                self._uncertain.add(number)
                return
            file, line, function = made.file, made.line, made.function
        else:
            file, function = "app.py", None
        self.breakpoints[number] = Breakpoint(
            number, file, line, condition or None, temporary=word == "tbreak", function=function
        )

    def _change(self, word: str, argument: str, rest: str, outcome: Outcome) -> None:
        named = argument.split()
        if word == "cl" and not outcome.certain:
            self._may_clear = True
            return
        if word == "cl" and not named:
            self.breakpoints.clear()
            return
        if word == "cl" and argument.startswith("app.py:"):
            line = int(argument[7:])
            gone = [one.number for one in self.breakpoints.values() if (one.file, one.line) == ("app.py", line)]
            self._expect(outcome.failed == (not gone), f"{outcome.command!r} said {outcome.output!r}")
            for number in gone:
                del self.breakpoints[number]
            return
        if not named or not named[0].isdigit():
            self._expect(outcome.failed, f"{outcome.command!r} said {outcome.output!r}")
            return
        number = int(named[0])
        one = self.breakpoints.get(number)
        if not outcome.certain:
            self._uncertain.add(number)
        elif one is None:
            self._expect(outcome.failed, f"{outcome.command!r} said {outcome.output!r}")
        elif outcome.failed:
            self.problems.append(f"{outcome.command!r} said {outcome.output!r}")
        elif word == "cl":
            del self.breakpoints[number]
        else:
            self.breakpoints[number] = self._changed(one, word, named[1:], rest)

    @staticmethod
    def _changed(one: Breakpoint, word: str, values: Sequence[str], rest: str) -> Breakpoint:
        if word in ("disable", "enable"):
            return replace(one, enabled=word == "enable")
        if word == "ignore":
            return replace(one, ignore=int(values[0]))
        if word == "condition":
            return replace(one, condition=" ".join(values) or None)
        return replace(one, commands=tuple(line for line in rest.split("\n") if line != "end"))

    def _check_here(self, outcomes: Sequence[Outcome], stop: Mapping[str, Any]) -> None:
        """`p here` right after a stop in `walk` has the value of the line before."""
        *_, before, last = outcomes
        if before.command not in RESUMES or last.command != "p here" or not last.certain:
            return
        if stop.get("function") == "walk" and stop["reason"] in ("breakpoint", "step") and stop["file"] == "app.py":
            value = HERE.get(stop["line"])
            if value is not None:
                self._expect(last.output == f"{value}\n", f"p here at line {stop['line']} printed {last.output!r}")

    def _compare(self, outputs: str, found: Mapping[int, Breakpoint]) -> None:
        cut = "characters left out" in outputs
        for number, one in list(self.breakpoints.items()):
            now = found.get(number)
            if now is None:
                deleted = one.temporary and f"Deleted breakpoint {number} at" in outputs
                self._expect(
                    deleted or cut or self._may_clear or number in self._uncertain, f"breakpoint {one} is gone"
                )
                del self.breakpoints[number]
                continue
            self._expect(0 <= now.ignore <= one.ignore or number in self._uncertain, f"{one} is ignored {now.ignore}")
            same = now == replace(one, ignore=now.ignore)
            self._expect(same or number in self._uncertain, f"breakpoint {one!r} is {now!r}")
            self.breakpoints[number] = now
        for number in set(found) - set(self.breakpoints):
            self._expect(self._may_set or number in self._uncertain, f"breakpoint {found[number]} came from nowhere")
            self.breakpoints[number] = found[number]
        self.next_number = max([self.next_number, *(number + 1 for number in found)])

    def check_listing(self, listing: str) -> None:
        """Compare what `b` prints with the breakpoints that there must be."""
        rows = re.findall(r"^(\d+) +breakpoint +(keep|del) +(yes|no) +at (\S+):(\d+)$", listing, re.MULTILINE)
        told = {
            int(row[0]): (row[1] == "del", row[2] == "yes", row[3].replace("/testbed/", ""), int(row[4]))
            for row in rows
        }
        expected = {one.number: (one.temporary, one.enabled, one.file, one.line) for one in self.breakpoints.values()}
        self._expect(told == expected, f"the list is {told}, not {expected}")
        conditions = re.findall(r"stop only if (.*)", listing)
        wanted = [one.condition for one in self.breakpoints.values() if one.condition]
        self._expect(conditions == wanted, f"the conditions are {conditions}, not {wanted}")
