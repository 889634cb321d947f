"""What can stand at the cursor: tools, arguments, paths of the workspace, breakpoints, pdb commands.

Nothing here raises or waits long: the sandbox may be busy or gone, and a person types on.
"""

from __future__ import annotations

import logging
import queue
import re
import shlex
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from debug_gym_core import DebugGymError
from debug_gym_llm_human.usage import (
    Argument,
    ToolClass,
    argument_help,
    arguments,
    block_argument,
    is_raw,
    summary,
    usage,
)

if TYPE_CHECKING:
    from debug_gym_core import RepoEnv

T = TypeVar("T")

log = logging.getLogger("debug_gym")

PATIENCE = 1.0
"""Seconds that the sandbox has to answer."""

COMMANDS = {
    "help": "what can be typed; help TOOL or TOOL? says more",
    "patch": "what was changed so far",
    "quit": "end the episode and have it graded; so does Ctrl-D",
}
"""What the prompt understands itself; costs no step. A tool of the same name goes first."""

OTHER_WORDS = {"?": "help", "exit": "quit"}

EDITING = frozenset(("rewrite", "edit"))
"""Tools that change the file they name, so that read-only ones are no use."""

LISTING = frozenset(("listdir",))
"""Tools whose path is a directory."""

PDB_COMMANDS = {
    "args": "arguments of the current function",
    "b": "set a breakpoint: b file:line[, condition], b function; alone: list them",
    "c": "continue to the next breakpoint",
    "cl": "clear breakpoints: cl number, cl file:line",
    "commands": "what to do at a breakpoint: commands number, commands, end",
    "condition": "stop only if: condition number expression",
    "d": "one frame down, towards where it stopped",
    "disable": "switch a breakpoint off",
    "display": "show an expression at each stop where it changed",
    "enable": "switch a breakpoint on",
    "h": "pdb's own help: h command",
    "ignore": "pass a breakpoint so many times: ignore number count",
    "j": "jump to a line of this function",
    "l": "source around the line; l first, last",
    "ll": "source of the whole function",
    "n": "next line, over calls; n count: so many",
    "p": "print an expression",
    "pp": "print it nicely",
    "q": "end the session",
    "r": "run until this function returns",
    "restart": "start the program again, breakpoints kept",
    "retval": "what the function returned last",
    "s": "next line, into calls; s count: so many",
    "source": "source of a function or class",
    "tbreak": "breakpoint that goes away with its first stop",
    "threads": "where each thread, and each process of the program, is",
    "u": "one frame up, towards the caller",
    "undisplay": "stop showing an expression",
    "until": "run to a later line: until line",
    "w": "where: the stack",
    "whatis": "type of an expression",
}
PLACES = frozenset(("b", "break", "tbreak"))
NUMBERS = frozenset(("cl", "clear", "disable", "enable", "condition", "ignore", "commands"))


@dataclass(frozen=True)
class Candidate:
    """Something that can stand at the cursor.

    Attributes:
        text: what takes the place of the word
        start: where the word starts, counted back from the cursor (0 or negative)
        shown: what the menu shows
        help: what it is, in a few words
    """

    text: str
    start: int
    shown: str = ""
    help: str = ""


@dataclass(frozen=True)
class Place:
    """What is typed where the cursor is.

    Attributes:
        tool: whose call it is
        argument: which argument the word is; None: nobody can tell
        free: arguments that are not given yet
        word: the word before the cursor, without quotes (and without `key=`)
        start: where it starts, counted back from the cursor
        named: whether it follows `key=`
    """

    tool: ToolClass
    argument: Argument | None
    free: tuple[Argument, ...]
    word: str
    start: int
    named: bool = False


class Completion:
    """Finds what can stand at the cursor in a live environment."""

    def __init__(self, env: RepoEnv) -> None:
        """Complete for one environment.

        Args:
            env: its tools, files and breakpoints are offered
        """
        self._env = env
        self._busy: threading.Thread | None = None

    @property
    def tools(self) -> dict[str, ToolClass]:
        """The tools that there are now, by name."""
        return {name: type(tool) for name, tool in self._env.tools.items()}

    def candidates(self, text: str) -> list[Candidate]:
        """What can stand at the end of a text.

        Args:
            text: what was typed before the cursor
        """
        text = text.lstrip()
        if "\n" in text:
            return self._in_block(text)
        first, space, rest = text.partition(" ")
        if not space:
            return self._first_word(first)
        tool = self.tools.get(first)
        if tool is None:
            return self._topics(rest) if OTHER_WORDS.get(first, first) == "help" else []
        if is_raw(tool):
            return self._command(tool, rest)
        place = locate(tool, rest)
        return [] if place is None else [*self._values(place), *_names(place)]

    def present_lines(self, head: str) -> str | None:
        """The lines that a call of a tool like rewrite would replace, to start from; None when there are none.

        Args:
            head: the call's first line, up to `<<<`
        """
        from debug_gym_core.tools import action

        try:
            call = action.parse(f"{head}\n>>>", self.tools)
            tool = self.tools[call.name]
            given = tool.check(call.arguments)
        except DebugGymError:
            return None
        if not isinstance(given.get("start"), int) or not isinstance(given.get("path"), str):
            return None
        start, end = given["start"], given.get("end") or given["start"]
        if not 1 <= start <= end < start + 1000:
            return None
        path, count = given["path"], end - start + 1
        found = self._ask(lambda: self._env.workspace.read_lines(path, start, count, 100_000)[1].data)
        if found is None:
            return None
        text = found.decode("utf-8", "backslashreplace")
        return text if text.replace("\n", "").replace("\t", "").isprintable() else None

    # The parts of a line

    def _first_word(self, typed: str) -> list[Candidate]:
        offered = {name: summary(tool) for name, tool in self.tools.items()}
        offered.update((name, text) for name, text in COMMANDS.items() if name not in self.tools)
        return [Candidate(name, -len(typed), name, text) for name, text in offered.items() if name.startswith(typed)]

    def _topics(self, typed: str) -> list[Candidate]:
        return [
            Candidate(name, -len(typed), name, summary(tool))
            for name, tool in self.tools.items()
            if name.startswith(typed)
        ]

    def _in_block(self, text: str) -> list[Candidate]:
        """The last line of a block; only commands of the debugger and the shell can be completed there."""
        head, *_, line = text.split("\n")
        tool = self.tools.get(head.split(" ")[0])
        return self._command(tool, line) if tool is not None and is_raw(tool) and head.rstrip().endswith("<<<") else []

    def _command(self, tool: ToolClass, typed: str) -> list[Candidate]:
        if tool.name == "pdb":
            return self._pdb(typed.lstrip())
        words = split(typed)
        return [] if words is None else self._paths(words[1], words[2], quote=True)

    def _pdb(self, typed: str) -> list[Candidate]:
        command, space, rest = typed.partition(" ")
        if not space:
            return [_candidate(name, typed, text) for name, text in PDB_COMMANDS.items() if name.startswith(typed)]
        rest = rest.lstrip()
        if command in PLACES:
            file, colon, line = rest.partition(":")
            if colon:
                return [
                    Candidate(str(one.line), -len(line), f"{one.file}:{one.line}", f"breakpoint {one.number} is there")
                    for one in self._env.breakpoints
                    if one.file == file and str(one.line).startswith(line)
                ]
            found = self._paths(rest, -len(rest), quote=False)
            return [
                one if one.text.endswith("/") else Candidate(f"{one.text}:", one.start, f"{one.shown}:", one.help)
                for one in found
                if one.text.endswith(("/", ".py"))
            ]
        if command in NUMBERS and " " not in rest:
            offered = [(str(one.number), str(one)) for one in self._env.breakpoints]
            if command in ("cl", "clear"):
                offered += [(f"{one.file}:{one.line}", f"breakpoint {one.number}") for one in self._env.breakpoints]
            return [_candidate(text, rest, help_) for text, help_ in offered if text.startswith(rest)]
        if command in ("h", "help"):
            return [_candidate(name, rest, text) for name, text in PDB_COMMANDS.items() if name.startswith(rest)]
        return []

    def _values(self, place: Place) -> list[Candidate]:
        one = place.argument
        if one is None:
            return []
        if one.choices:
            words = [word for word in one.choices if word.startswith(place.word)]
            return [Candidate(shlex.quote(word), place.start, word, argument_help(one)) for word in words]
        return self._paths(place.word, place.start, quote=True, tool=place.tool.name) if one.is_path else []

    def _paths(self, typed: str, start: int, *, quote: bool, tool: str = "") -> list[Candidate]:
        """Files and directories whose path begins with what was typed; one level at a time."""
        directory, slash, beginning = typed.rpartition("/")
        listing = self._ask(lambda: self._env.workspace.list(f"{directory}/" if slash else ".", 1))
        found = []
        for entry in listing or ():
            name = entry.path.rpartition("/")[2]
            is_directory = entry.kind == "directory"
            if not name.startswith(beginning) or (name.startswith(".") and not beginning.startswith(".")):
                continue
            if name == "__pycache__" or not name.isprintable() or (tool in LISTING and not is_directory):
                continue
            if entry.readonly and tool in EDITING:
                continue
            path = f"{directory}{slash}{name}" + ("/" if is_directory else "")
            shown = name + ("/" if is_directory else "")
            found.append(
                Candidate(shlex.quote(path) if quote else path, start, shown, "read-only" if entry.readonly else "")
            )
        return found

    def _ask(self, question: Callable[[], T]) -> T | None:
        """Ask the sandbox; None when it refuses, is gone, or has not answered in time."""
        if self._env.failure is not None or (self._busy is not None and self._busy.is_alive()):
            return None
        answers: queue.SimpleQueue[T | None] = queue.SimpleQueue()

        def ask() -> None:
            try:
                answers.put(question())
            except Exception as error:  # whatever it is, it must not be written over the prompt
                log.debug("completion failed", exc_info=error)
                answers.put(None)

        self._busy = threading.Thread(target=ask, name="completion", daemon=True)
        self._busy.start()
        try:
            return answers.get(timeout=PATIENCE)
        except queue.Empty:
            return None


def locate(tool: ToolClass, typed: str) -> Place | None:
    """Find out which argument of a tool is being typed.

    Args:
        tool: whose call it is
        typed: what stands between the tool's name and the cursor

    Returns:
        the place; None behind `<<<`
    """
    words = split(typed)
    if words is None or "<<<" in words[0] or words[1] == "<<<":
        return None
    complete, word, start = words
    by_name = {one.name: one for one in arguments(tool)}
    free = list(by_name.values())
    for given in complete:
        key, equals, _ = given.partition("=")
        if equals and key in by_name:
            free = [one for one in free if one.name != key]
        elif re.fullmatch(r"\d+:\d+", given) and [one.name for one in free[:2]] == ["start", "end"]:
            free = free[2:]
        else:
            free = free[1:]
    key, equals, value = word.partition("=")
    raw = typed[len(typed) + start :]
    if equals and key in by_name and raw.startswith(f"{key}="):
        return Place(tool, by_name[key], tuple(free), value, start + len(key) + 1, named=True)
    block = block_argument(tool)
    positional = [one for one in free if one.name != block]
    return Place(tool, positional[0] if positional else None, tuple(free), word, start)


def split(text: str) -> tuple[list[str], str, int] | None:
    """Split words as a shell does; the last one may be unfinished, its quotes open.

    Returns:
        the words that are complete, the one at the end, and where that starts, counted back from the end; None when
        the last character is a backslash
    """
    for closing in ("", "'", '"'):
        # The character stands for the cursor, so that an empty word at the end is one too.
        lexer = shlex.shlex(f"{text}\0{closing}", posix=True, punctuation_chars=False)
        lexer.whitespace_split, lexer.commenters = True, ""
        try:
            words = list(lexer)
        except ValueError:
            continue
        if not words or not words[-1].endswith("\0") or text.endswith("\\"):
            return None
        return words[:-1], words[-1][:-1], -_length_of_last(text)
    return None


def _length_of_last(text: str) -> int:
    """Characters of the last word as it was typed, quotes and all."""
    quote = ""
    start = position = 0
    while position < len(text):
        character = text[position]
        if quote:
            if character == "\\" and quote == '"':
                position += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character == "\\":
            position += 1
        elif character.isspace():
            start = position + 1
        position += 1
    return len(text) - start


def _names(place: Place) -> Iterable[Candidate]:
    """Names of arguments that can be given, as `key=`."""
    if place.named:
        return
    for one in place.free:
        if one.name.startswith(place.word):
            yield Candidate(f"{one.name}=", place.start, f"{one.name}=", argument_help(one))


def _candidate(text: str, typed: str, help_: str) -> Candidate:
    return Candidate(text, -len(typed), text, help_)


def common_beginning(candidates: Sequence[Candidate]) -> str:
    """What all candidates for one word begin with; empty when they are for different places."""
    if len({one.start for one in candidates}) != 1:
        return ""
    low, high = min(one.text for one in candidates), max(one.text for one in candidates)
    length = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return low[:length]


def hint(text: str, tools: Mapping[str, ToolClass]) -> str:
    """A line of help for what is being typed.

    Args:
        text: what stands before the cursor
        tools: of the environment
    """
    text = text.lstrip()
    first, space, rest = text.partition(" ")
    head, newline, _ = text.partition("\n")
    if newline and head.rstrip().endswith("<<<"):
        return "a line >>> ends the text; Enter there sends it, so does Alt-Enter"
    if first in COMMANDS and first not in tools:
        return f"{first}: {COMMANDS[first]}"
    tool = tools.get(first)
    if tool is None:
        return "Tab completes, help explains, Ctrl-D ends" if not text else ""
    if not space:
        return f"{usage(tool)}: {summary(tool)}"
    if tool.name == "pdb":
        command = rest.split(" ")[0]
        return f"{command}: {PDB_COMMANDS[command]}" if command in PDB_COMMANDS else "Tab shows the debugger's commands"
    if rest.rstrip().endswith("<<<"):
        return "Enter starts the text, Tab takes the lines as they are; >>> ends it"
    place = None if is_raw(tool) else locate(tool, rest)
    if place is None or place.argument is None:
        return usage(tool)
    return f"{place.argument.name}: {argument_help(place.argument)} | {usage(tool)}"
