"""What a person sees of an episode: observations, the status line, the patch; as styled lines, plain without colour."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from debug_gym_core import Observation
from debug_gym_core.tools.observation import bound

if TYPE_CHECKING:
    from debug_gym_core import RepoEnv

Fragments = list[tuple[str, str]]
"""Pieces of text, each with the name of its style; a line ends with a newline character."""

STYLES = {
    "source": "ansicyan bold",
    "error": "ansired",
    "added": "ansigreen",
    "removed": "ansired",
    "current": "ansiyellow bold",
    "mark": "ansired bold",
    "good": "ansigreen",
    "bad": "ansired bold",
    "strong": "bold",
    "faint": "ansibrightblack",
}
"""The styles by name, as prompt_toolkit writes them."""

EXAMPLES, EXAMPLE = ("Example:", "Examples:"), "example: "
"""The heading of a help's last lines, and what begins a line of its own: they are there to be typed."""

_DIFFS = frozenset(("rewrite", "edit"))
_OUTCOMES = {"PASSED": "good", "XFAIL": "good", "FAILED": "bad", "ERROR": "bad", "XPASS": "bad", "SKIPPED": "faint"}


def printable(text: str) -> str:
    """A line with everything that could steer the terminal shown as an escape."""
    return "".join(one if one.isprintable() or one == "\t" else repr(one)[1:-1] for one in text)


def observation(spoken: Sequence[Observation], width: int) -> Fragments:
    """The words of the tools in one step.

    Args:
        spoken: in the order in which they were said
        width: columns of the terminal; text of ours is wrapped to it, code and output never
    """
    result: Fragments = []
    for number, one in enumerate(spoken):
        if number:
            result.append(("", "\n"))
        if number or one.source != "env":
            result += [("source", f"[{printable(one.source)}]"), ("", "\n")]
        lines = bound(one.text).split("\n")
        if one.source == "env":
            lines = [part for line in lines for part in wrapped(line, width)]
        elif one.error:  # what is below its first line may be code
            lines[:1] = wrapped(lines[0], width)
        for line in lines:
            result += _line(one, line.removesuffix("\r"))
    return result


def _line(one: Observation, line: str) -> Fragments:
    text = printable(line)
    style = ""
    if one.error:
        style = "error"
    elif one.source in _DIFFS:
        style = _diff_style(line)
    elif one.source == "pdb" and line.startswith("->"):
        style = "current"
    elif one.source == "pdb" and line.startswith(("stopped:", "exception:")):
        style = "strong"
    elif one.source == "pdb" and line.startswith(("stack:", "program printed")):
        style = "faint"
    elif one.source == "view" and re.match(r"B +\d", line):
        return [("mark", "B"), ("", f"{text[1:]}\n")]
    elif one.source == "eval":
        word, space, rest = text.lstrip().partition(" ")
        if word in _OUTCOMES:
            indent = text[: len(text) - len(text.lstrip())]
            return [("", indent), (_OUTCOMES[word], word), ("", f"{space}{rest}\n")]
    return [(style, text), ("", "\n")]


def _diff_style(line: str) -> str:
    if line.startswith(("+++ ", "--- ")):
        return "strong"
    return {"+": "added", "-": "removed", "@": "source"}.get(line[:1], "")


def patch(data: bytes, limit: int = 400) -> Fragments:
    """A patch, coloured.

    Args:
        data: as git writes it
        limit: lines that are shown
    """
    lines = data.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n")
    result: Fragments = []
    for line in lines[:limit]:
        result += [(_diff_style(line), printable(line.removesuffix("\r"))), ("", "\n")]
    if len(lines) > limit:
        result.append(("faint", f"({len(lines) - limit} more lines)\n"))
    return result


def wrapped(line: str, width: int) -> list[str]:
    """A line of our own words in the width of the terminal; what is wrapped stays in its column."""
    if len(line) <= width:
        return [line]
    before = re.match(r" *(?:- |\S+(?: \S+)* {2,})?", line)
    hang = len(before.group()) if before else 0
    indent = " " * (hang if hang <= width // 2 else 4)
    return textwrap.wrap(line, max(width, 20), subsequent_indent=indent, break_long_words=False) or [line]


def prose(text: str, width: int) -> list[str]:
    """Lines of our own words in the width of the terminal; examples stay as they are typed."""
    result: list[str] = []
    typed = False
    for line in text.split("\n"):
        typed = typed or line in EXAMPLES
        result += [line] if typed or line.startswith(EXAMPLE) else wrapped(line, width)
    return result


def stopped_at(spoken: Iterable[Observation], before: str) -> str:
    """Where a debugger session is stopped; empty when there is none.

    Args:
        spoken: the words of the last step
        before: where it was before
    """
    for one in spoken:
        if one.source != "pdb":
            continue
        stop = one.data.get("stop")
        if one.data.get("ended"):
            before = ""
        elif isinstance(stop, Mapping):
            before = f"at {stop['file']}:{stop['line']}" if "file" in stop else "before the first line"
            before += f" in {stop['function']}" if "function" in stop else ""
    return before


def status(env: RepoEnv, stop: str, width: int) -> Fragments:
    """The line before the prompt: steps, score, breakpoints, where the debugger is; shortened to the width.

    Args:
        env: the environment
        stop: where the debugger is stopped
        width: columns of the terminal
    """
    limit = f"/{env.max_steps}" if env.max_steps else ""
    score = f"score {env.score if env.measured else '?'}/{env.max_score}"
    parts = [f"step {env.steps}{limit}", score]
    passed = ["all tests pass"] if env.resolved else []
    ends = ["all tests pass, submit ends"] if env.resolved and "submit" in env.tools else passed
    places = [f"{one.file}:{one.line}" for one in env.breakpoints]
    number = ["1 breakpoint" if len(places) == 1 else f"{len(places)} breakpoints"] if places else []
    listed = [f"breakpoints {' '.join(places)}"] if places else []
    stopped = [f"stopped {stop}"] if stop else []
    place = [f"stopped {stop.partition(' in ')[0]}"] if stop else []
    choices: tuple[list[str], ...]
    choices = ([*listed, *stopped], [*number, *stopped], [*number, *place], place, ["stopped"] if stop else [], [])
    lines = [printable(" | ".join([*parts, *ends, *choice])) for choice in choices]
    lines += [printable(" | ".join([*parts, *passed])), printable(" | ".join(parts))]
    line = next((line for line in lines if len(line) <= width), lines[-1][:width])
    return [("good" if env.resolved else "faint", line), ("", "\n")]


def as_text(fragments: Iterable[tuple[str, Any]]) -> str:
    """The text without its styles."""
    return "".join(text for _, text in fragments)
