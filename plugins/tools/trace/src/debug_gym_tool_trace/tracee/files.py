"""The repository's files: how they are called, and which are its own code."""

import os
import sys
import types

from debug_gym_core.debugging.inside.process import OURS

from .source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Dict, Iterable, Optional

_realpath = os.path.realpath
_INSTALLED = ("/site-packages/", "/dist-packages/")


class Files:
    """Files by the names that code objects have.

    Attributes:
        root: of the repository
    """

    def __init__(self, root: str, ignored: "Iterable[str]") -> None:
        """Know the files below `root`.

        Args:
            root: a directory
            ignored: files of which nothing may be shown, relative to it
        """
        self.root = _realpath(root)
        self._inside = self.root.rstrip("/") + "/"
        self._ignored = frozenset(ignored)
        self._cwd = os.getcwd()
        self._names: "Dict[str, str]" = {}
        self._own: "Dict[str, bool]" = {}
        self._classes: "Dict[int, Any]" = {}
        self._sources: "Dict[str, Source]" = {}
        self._written: "Dict[int, Any]" = {}

    def real(self, filename: str) -> str:
        """The one name of a file."""
        found = self._names.get(filename)
        if found is None:
            found = filename if filename[:1] == "<" else _realpath(os.path.join(self._cwd, filename))
            self._names[filename] = found
        return found

    def path(self, filename: str) -> str:
        """A file as the host shows it: relative to the repository when it lies inside."""
        name = self.real(filename)
        return name[len(self._inside) :] if name.startswith(self._inside) else name

    @property
    def hides(self) -> bool:
        """Whether there are files of which nothing may be shown."""
        return bool(self._ignored)

    def is_ignored(self, filename: str) -> bool:
        """Whether nothing of a file may be shown."""
        return self.path(filename) in self._ignored

    def is_own(self, filename: str) -> bool:
        """Whether a file is the repository's own code, and may be shown."""
        found = self._own.get(filename)
        if found is None:
            name = self.real(filename)
            found = filename != OURS and name.startswith(self._inside) and not self.is_ignored(filename)
            if any(one in name for one in _INSTALLED) or name.startswith(os.path.join(sys.prefix, "lib") + "/"):
                found = False
            self._own[filename] = found
        return found

    def is_own_class(self, kind: type) -> bool:
        """Whether a class is defined in the repository's own code."""
        known = self._classes.get(id(kind))
        if known is None:
            file = _file_of(kind)
            known = self._classes[id(kind)] = (kind, file is not None and self.is_own(file))
        found: bool = known[1]
        return found

    def source(self, filename: str) -> "Source":
        """What is in a file."""
        name = self.real(filename)
        if name not in self._sources:
            self._sources[name] = Source(name)
        return self._sources[name]

    def is_written(self, code: "CodeType") -> bool:
        """Whether a code object of one of the repository's files is of what is written there; see Source."""
        known = self._written.get(id(code))
        if known is None:
            known = self._written[id(code)] = (code, self.source(code.co_filename).is_written(code))
        found: bool = known[1]
        return found

    def function(self, code: "CodeType") -> str:
        """The qualified name of a function of the repository."""
        return self.source(code.co_filename).called(code.co_name, code.co_firstlineno)

    def place(self, frame: "Optional[FrameType]") -> "Optional[Dict[str, Any]]":
        """Where a frame is: `file`, `line`, `function`."""
        if frame is None:
            return None
        code = frame.f_code
        return {"file": self.path(code.co_filename), "line": frame.f_lineno, "function": self.function(code)}


def _file_of(kind: type) -> "Optional[str]":
    """The file that defines a class."""
    name = vars(kind).get("__module__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    found = vars(module).get("__file__") if isinstance(module, types.ModuleType) else None
    return found if isinstance(found, str) else None
