"""The repository's files: how they are called, and which are meant.

On the host a file is called by its path in the repository.
"""

import contextlib
import inspect
import linecache
import os
import re
import sys

from .guide import nearest
from .modules import find_module
from .places import python_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, FrozenSet, Iterator, List, Optional

MOST_FILES_SEARCHED = 20000
MOST_NEAR = 3


class Files:
    """Files by their names.

    Attributes:
        root: of the repository
        ignored: the files that are ignored in the task, by their paths in the repository
    """

    def __init__(self, root: str, canonic: "Callable[[str], str]") -> None:
        """Know the files below `root`.

        Args:
            root: a directory, without links
            canonic: makes one file name of all that a file has
        """
        self.root = root
        self.ignored: "FrozenSet[str]" = frozenset()
        self._inside = root.rstrip("/") + "/"
        self._canonic = canonic
        self._cwd = os.getcwd()

    def path(self, filename: str) -> str:
        """A file as the host shows it: relative to the repository when it lies inside."""
        name = self._canonic(filename)
        return name[len(self._inside) :] if name.startswith(self._inside) else name

    def with_lines(self, filename: str) -> str:
        """The file that has the source of code: of code that is frozen, its own name leads to none."""
        return self._canonic(filename) if filename[:1] == "<" and filename[-1:] == ">" else filename

    @contextlib.contextmanager
    def lines_of(self, value: "Any") -> "Iterator[None]":
        """Have the lines of code that is frozen found under its own name meanwhile, as `inspect` looks for them."""
        try:
            name = inspect.getfile(inspect.unwrap(value))
        except Exception:  # `__getattr__` of the program's may be asked
            name = ""
        file = self.with_lines(name)
        if file == name:
            yield
            return
        before = linecache.cache.get(name)
        linecache.cache[name] = (0, None, linecache.getlines(file), file)
        try:
            yield
        finally:
            linecache.cache.pop(name, None)
            if before is not None:
                linecache.cache[name] = before

    def is_own(self, filename: str) -> bool:
        """Whether a file is the repository's own code."""
        name = self._canonic(filename)
        if not name.startswith(self._inside):
            return False
        return "/site-packages/" not in name and not name.startswith(os.path.join(sys.prefix, "lib") + "/")

    def is_ignored(self, filename: str) -> bool:
        """Whether a file is ignored in the task."""
        return self.path(filename) in self.ignored

    def is_code(self, real: str) -> bool:
        """Whether a file lies in the repository, or where modules are imported from.

        Args:
            real: its name, without links
        """
        places = [self.root, sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)]
        places += [os.path.realpath(os.path.join(self._cwd, one)) for one in sys.path if isinstance(one, str)]
        return any(real.startswith(os.path.realpath(place).rstrip("/") + "/") for place in places)

    def find(self, name: str) -> "Optional[str]":
        """The file of the repository that a path means, as the host or the sandbox has it, or the name of a module."""
        for public in ("/testbed/", self.root + "/"):
            if name.startswith(public) and os.path.isfile(os.path.join(self.root, name[len(public) :])):
                return os.path.join(self.root, name[len(public) :])
        for one in _paths(name):
            if os.path.isfile(os.path.join(self.root, one)):
                return os.path.join(self.root, one)
        return None

    def called(self, name: str) -> "List[str]":
        """The files of the repository that have a name, in whatever directory; a few of them when there are many.

        Args:
            name: the end of a path, or of the dotted name of a module
        """
        if name[:1] == "/":
            return []
        ends = [os.path.split(one) for one in _paths(name) if one.endswith(".py")]
        found: "List[str]" = []
        seen = 0
        for directory, directories, files in os.walk(self.root):
            directories[:] = sorted(
                d for d in directories if d[:1] != "." and d not in ("site-packages", "__pycache__")
            )
            seen += len(files)
            for inside, base in ends:
                if base in files and ("/" + directory).endswith(("/" + inside) if inside else ""):
                    path = os.path.join(directory, base)
                    if self._canonic(path) not in map(self._canonic, found):  # through a link
                        found.append(path)
            if seen > MOST_FILES_SEARCHED or len(found) > 5:
                break
        return found

    def module(self, name: str) -> "Optional[str]":
        """The file of a module that the program could import, by its dotted name."""
        found = find_module(name)
        return found[1] or None if found is not None else None

    def missing(self, name: str) -> str:
        """What to say of a file that there is not: what else it may be called."""
        near = self._near(name)
        return "there is no file {}{}".format(name, "; did you mean {}?".format(" or ".join(near)) if near else "")

    def _near(self, name: str) -> "List[str]":
        paths = [one for one in python_files(self.root, MOST_FILES_SEARCHED) if one not in self.ignored]
        base = os.path.basename(name)
        bases = [base, *nearest(base, map(os.path.basename, paths))]
        bases += nearest(base + ".py", map(os.path.basename, paths))
        return [one for one in paths if os.path.basename(one) in bases][:MOST_NEAR]


def _paths(name: str) -> "List[str]":
    """Paths that may be meant by one, or by the dotted name of a module."""
    if name.endswith(".py"):
        return [name]
    paths = [name, name + ".py"]
    if re.match(r"\w+(\.\w+)+\Z", name):
        paths += [name.replace(".", "/") + ".py", name.replace(".", "/") + "/__init__.py"]
    return paths
