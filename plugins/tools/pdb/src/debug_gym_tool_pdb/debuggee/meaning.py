"""What a line means that somebody types who knows another debugger, or forgets that `n = 3` begins with a command."""

import re

from .channel import Pattern
from .guide import INFO, STEPS, SYNONYMS, long_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from .vocabulary import Vocabulary

TAKES_PYTHON = frozenset(
    (
        "alias",
        "commands",
        "condition",
        "debug",
        "display",
        "interact",
        "p",
        "pp",
        "print",
        "source",
        "undisplay",
        "whatis",
    )
)
"""Commands whose argument is Python, or text, in which `#` and brackets mean something."""

LIKE_A_CALL = frozenset(("p", "pp", "print", "display", "undisplay", "source", "whatis", "help", "h", "exit", "quit"))
"""Commands that do with brackets around their argument what they do without."""

TAKES_NOTHING = frozenset(("args", "continue", "longlist", "next", "quit", "return", "step", "retval"))
SHADOWED = frozenset(("breakpoint", "eval", "locals", "print", "type", "vars"))
"""Words that are built-in functions, but are taken for commands."""

_ASSIGNMENT = Pattern(r"\s*(?:=(?!=)|(?:[-+*/%&|^@]|//|\*\*|<<|>>)=|,|:\s*\w+\s*=)")
_OPERATOR = Pattern(r"\s*(?:[=!]=|<|>|[+*/%&|^@]|(?:-\s)|(?:in|is|and|or|if|not in)\s)")
_COMMENT = Pattern(r"(?:^|\s)#[^'\"]*\Z")


class Meaning:
    """Makes of a line what pdb understands."""

    def __init__(self, vocabulary: "Vocabulary") -> None:
        """Tell commands from Python by the words that there are."""
        self._vocabulary = vocabulary

    def of(self, line: str) -> "Optional[str]":
        """The line as pdb understands it; None: the local variables are asked for, for which pdb has no command."""
        match = re.match(r"[^\W\d]\w*", line)
        if match is None:
            return "" if line.startswith("#") else line
        word, rest = match.group(), line[match.end() :]
        if not self._vocabulary.is_command(word):
            return self._foreign(word, rest)
        if word not in TAKES_PYTHON:
            rest = _COMMENT.sub("", rest)
            line = word + rest
        if word == "step" and rest.strip() in STEPS:
            return STEPS[rest.strip()]
        if self._is_python(word, rest):
            return "!" + line
        if rest[:1] == "(":  # from 3.13 on, pdb takes it for a call
            return word if re.match(r"\(\s*\)\Z", rest) else word + " " + rest
        return line

    def _is_python(self, word: str, rest: str) -> bool:
        """Whether a line that begins with a command's name is a statement, as `n = 3` and `args.name` are."""
        if re.match(r"\s*\(\s*\)\Z", rest):  # n()
            return False
        if rest[:1] == "(":
            return word not in LIKE_A_CALL
        if re.match(r"\.[^\W\d]", rest) or rest[:1] == "[" or _ASSIGNMENT.match(rest):
            return True
        takes_nothing = long_name(word) in TAKES_NOTHING
        return takes_nothing and bool(_OPERATOR.match(rest)) and self._vocabulary.is_name(word)

    def _foreign(self, word: str, rest: str) -> "Optional[str]":
        """A line that begins with no command of pdb: one of another debugger as pdb has it, else the line itself."""
        line = word + rest
        if word == "info" and rest.strip() in INFO and not self._vocabulary.is_name(word):
            word, rest = INFO[rest.strip()], ""
        elif word == "set" and re.match(r"\s+(?:var\s+)?\w+\s*=", rest):
            return "!" + re.sub(r"\A\s+(?:var\s+)?", "", rest)
        else:
            known = self._vocabulary.is_name(word) and word not in SHADOWED
            if word not in SYNONYMS or known or not re.match(r"\s+[\w'\"{(\[*~-]|\Z", rest):
                return line
            if rest.strip() and compiles(line):
                return line
            if word in ("eval", "print", "type") and not rest:
                return line
            word = SYNONYMS[word]
        if word == "locals":
            return None
        return word + rest if word != "!" else "!" + rest.strip()


def compiles(text: str, mode: str = "single") -> bool:
    """Whether a text is Python: a statement, or what else the mode of `compile` says."""
    try:
        compile(text.strip(), "<typed>", mode, dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return False
    return True
