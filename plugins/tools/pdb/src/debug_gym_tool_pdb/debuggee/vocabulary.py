"""What a word is where the program is stopped: a command, a variable, a built-in function."""

import sys

from .frames import local_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pdb
    from typing import Any, Dict, List, Set

_BUILTINS = sys.modules["builtins"]


class Vocabulary:
    """The words of commands, and of the program's names in the current frame."""

    def __init__(self, debugger: "pdb.Pdb") -> None:
        """Know the words of a debugger and of what it debugs."""
        self._debugger = debugger

    def commands(self) -> "List[str]":
        """The debugger's commands, short names too."""
        return [name[3:] for name in dir(type(self._debugger)) if name.startswith("do_")]

    def is_command(self, word: str) -> bool:
        """Whether a word is a command."""
        return hasattr(self._debugger, "do_" + word)

    def names(self) -> "List[str]":
        """Local and global names; none without a frame."""
        frame = self._debugger.curframe
        names = [*local_names(self._debugger), *frame.f_globals] if frame is not None else []
        return [name for name in names if type(name) is str]

    def builtins(self) -> "List[str]":
        """Names that are known everywhere."""
        return list(vars(_BUILTINS))

    def is_name(self, word: str) -> bool:
        """Whether a word is a local, global or built-in name."""
        frame = self._debugger.curframe
        if frame is not None and (word in local_names(self._debugger) or word in frame.f_globals):
            return True
        return self.is_builtin(word)

    def is_builtin(self, word: str) -> bool:
        """Whether a word is a name that is known everywhere."""
        return word in vars(_BUILTINS)


class Aliases(dict):  # type: ignore[type-arg]
    """Aliases, each of which is there once."""

    def __init__(self, aliases: "Dict[str, str]") -> None:
        """Take them over."""
        super().__init__(aliases)
        self._used: "Set[str]" = set()

    def __contains__(self, name: "Any") -> bool:
        """Whether there is one that was not looked for before."""
        there = name not in self._used and super().__contains__(name)
        self._used.add(name)
        return there
