"""What would be right, after an error: the name, the command or the breakpoint that was probably meant."""

import bdb
import contextlib
import keyword
import re
import sys
import traceback

from .channel import Pattern
from .guide import ELSEWHERE, SYNONYMS, TOOLS, command_near, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Optional

    from .vocabulary import Vocabulary

_VALUES = "p EXPRESSION prints a value, whatis EXPRESSION its type, source NAME its source"
_SEVERAL = "several commands are written one a line, or with ;; between them"
_LINES = "lines are given by number, as until 12, l 12, l 5, 12 or l FILE:12"

MOST_NAMED = 5
"""Breakpoints, names or places that an answer lists."""

_ABOUT_NUMBER = Pattern(
    r"Breakpoint (number|\d)|Non-numeric breakpoint|There (is no|are no) breakpoint|cannot set commands"
)


_PRINTS = Pattern(r":\s*pp?\s+[\w'\"(\[{]")


class Hints:
    """Makes hints of error messages.

    Attributes:
        typed: the statement that is being executed; empty: none
    """

    def __init__(self, vocabulary: "Vocabulary", path: "Callable[[str], str]") -> None:
        """Know what could have been meant.

        Args:
            vocabulary: the words that there are
            path: makes of a file what the host calls it
        """
        self.typed = ""
        self._vocabulary = vocabulary
        self._path = path

    def of(self, message: str, at_entry: bool) -> "Optional[str]":
        """What to say after an error message; None: nothing.

        Args:
            message: of pdb, or the last line of the traceback of the exception that is being handled
            at_entry: whether nothing of the program has run yet
        """
        if _ABOUT_NUMBER.match(message):
            return self._which_breakpoints(message)
        if message.startswith("Error in argument: "):
            return _LINES
        if message.startswith("No help for"):
            word = message.partition("'")[2].partition("'")[0].strip("()")
            if self._vocabulary.is_name(word):
                return _VALUES
            near = command_near(word, self._vocabulary.commands())
            return "did you mean {}?".format(near) if near else "help lists the commands"
        error = sys.exc_info()[1]
        if error is None or not message.startswith(type(error).__name__):
            return None
        if traceback.format_exception_only(type(error), error)[-1].strip() != message.strip():
            return None
        if isinstance(error, NameError):
            return self._for_name(str(error), at_entry)
        if isinstance(error, AttributeError):
            return _for_attribute(error)
        return self._for_syntax() if isinstance(error, SyntaxError) else None

    def _which_breakpoints(self, said: str) -> "Optional[str]":
        found = [one for one in bdb.Breakpoint.bpbynumber if one]
        if not found:
            return None if said.startswith("There are no breakpoints") else "there are no breakpoints"
        shown = ["{} at {}:{}".format(one.number, self._path(one.file), one.line) for one in found[:MOST_NAMED]]
        more = len(found) - MOST_NAMED
        return "breakpoints are {}{}".format(", ".join(shown), " and {} more".format(more) if more > 0 else "")

    def _for_name(self, message: str, at_entry: bool) -> "Optional[str]":
        match = re.search(r"'([^']+)'", message)
        names = self._vocabulary.names()
        if match is None or not names:
            return None
        name = match.group(1)
        if self._first_word() == name:
            known = self._for_word(name)
            if known:
                return known
        near = nearest(name, [*names, *self._vocabulary.builtins()]) if name not in names else []
        if near:
            return "did you mean {}?".format(" or ".join(near))
        if at_entry:
            return "nothing has run yet: c goes on to a breakpoint, n to the next line"
        return None

    def _for_word(self, word: str) -> "Optional[str]":
        """What to say of a first word that is no command and no variable."""
        if word in ELSEWHERE:
            return ELSEWHERE[word]
        if word in TOOLS:
            return "{} is a tool of its own, where there is one; this is the debugger".format(word)
        near = nearest(word, self._vocabulary.names(), 1)
        command = command_near(word, [*self._vocabulary.commands(), *SYNONYMS])
        if command in SYNONYMS:
            command = "the command " + SYNONYMS[command]
        elif command:
            command = "the command " + command
        found = [*near, command] if command else near
        return "did you mean {}?".format(" or ".join(found)) if found else None

    def _for_syntax(self) -> "Optional[str]":
        word = self._first_word()
        if ";" in self.typed and ";;" not in self.typed:
            return _SEVERAL
        if _PRINTS.search(self.typed):
            return "within a statement only Python does: print(...) in place of p"
        if self.typed.rstrip().endswith("?"):
            return _VALUES
        if not word or keyword.iskeyword(word) or self._vocabulary.is_command(word) or "\n" in self.typed:
            return None
        if self._vocabulary.is_name(word) and (word not in ELSEWHERE or not self._vocabulary.is_builtin(word)):
            return None
        return self._for_word(word) or "this is neither a command of pdb nor Python; help lists the commands"

    def _first_word(self) -> str:
        """The name that the statement begins with; empty: it begins with none."""
        match = re.match(r"\s*([^\W\d]\w*)", self.typed)
        return match.group(1) if match is not None else ""


def _for_attribute(error: "AttributeError") -> "Optional[str]":
    """Attributes that are near, where Python tells of what object (from 3.10 on)."""
    name, value = getattr(error, "name", None), getattr(error, "obj", None)
    if not isinstance(name, str) or value is None:
        return None
    names = {key for kind in type(value).__mro__ for key in vars(kind)}
    with contextlib.suppress(AttributeError):  # without running the program's own lookup
        names.update(key for key in object.__getattribute__(value, "__dict__") if isinstance(key, str))
    private = [one for one in names if name[:2] == "__" and one[:1] == "_" and one.endswith(name) and one != name]
    near = sorted(private)[:MOST_NAMED] or nearest(name, names)
    return "did you mean {}?".format(" or ".join(near)) if near else None
