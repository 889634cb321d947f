"""What can stand at the cursor: tools, arguments, paths of the workspace, breakpoints, pdb commands.

Nothing here raises or waits long: the sandbox may be busy or gone, and a person types on.
"""

from __future__ import annotations

import logging
import queue
import shlex
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from debug_gym_core import DebugGymError
from debug_gym_core.tools import blocks
from debug_gym_core.workspace.lines import decode
from debug_gym_llm_human.cursor import Place, locate, split
from debug_gym_llm_human.usage import ToolClass, argument_help, is_raw, summary
from debug_gym_llm_human.words import COMMANDS, NUMBERS, OTHER_WORDS, PDB_COMMANDS, PLACES

if TYPE_CHECKING:
    from debug_gym_core import RepoEnv

T = TypeVar("T")

log = logging.getLogger("debug_gym")

PATIENCE = 1.0
"""Seconds that the sandbox has to answer."""

EDITING = frozenset(("rewrite", "edit"))
"""Tools that change the file they name, so that read-only ones are no use."""

LISTING = frozenset(("listdir",))
"""Tools whose path is a directory."""


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
            call = action.parse(f"{head}\n{blocks.END}", self.tools)
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
        found = self._ask(lambda: self._env.workspace.read_lines(path, start, count, 100_000)[1])
        if found is None:
            return None
        text = decode(found.data, found.encoding)
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
        return self._command(tool, line) if tool is not None and is_raw(tool) and blocks.begins(head) else []

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
