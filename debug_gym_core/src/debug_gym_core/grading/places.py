"""Finds the pristine files that hold tests, by the tests' ids."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Sequence


class Places:
    """The files of one repository, by what ids of tests begin with."""

    def __init__(self, members: Collection[str], text: Callable[[str], str], is_linked: Callable[[str], bool]) -> None:
        """Know where to look.

        Args:
            members: paths of all files
            text: reads a file
            is_linked: whether a path that is none of these leads to a file with tests, through a link to a directory
        """
        self._members = members
        self._text = text
        self._is_linked = is_linked
        self._words: dict[str, frozenset[str]] = {}
        self._named: dict[str, list[str]] = {}
        for path in sorted(members):
            for end in {posixpath.basename(path), _end(path)}:
                self._named.setdefault(end, []).append(path)

    def find(self, test: str) -> tuple[str, ...]:
        """The files that may hold a test: one where its id says which, more where it may be of several.

        That a file has the path of an id says little where the project that is tested lies below the root: the file at
        the root may be another. So one that does not name the test, or its class, is taken along with those that do.

        Args:
            test: its id
        """
        modules = list(_modules(test))
        for module, names in modules:
            places = self._ending(module)
            named = {one: len(names.intersection(self._words_of(one))) for one in places}
            most = max(named.values(), default=0)
            if most:
                naming = [one for one in places if named[one] == most]
                return (module,) if module in naming else (*(one for one in places if one == module), *naming)
        # Tests may be made by code that names none.
        found = next((places for module, _ in modules if (places := self._ending(module))), [])
        return next(((module,) for module, _ in modules if module in found), tuple(found))

    def _ending(self, module: str) -> Sequence[str]:
        """Files that have a path from some directory, as a project below the root has that is pytest's rootdir."""
        named = [*self._named.get(_end(module), ())]
        if module not in self._members and self._is_linked(module):
            named.append(module)
        return sorted((one for one in named if f"/{one}".endswith(f"/{module}")), key=lambda one: one.count("/"))

    def _words_of(self, path: str) -> frozenset[str]:
        if path not in self._words:
            self._words[path] = frozenset(re.findall(r"\w+", self._text(path)))
        return self._words[path]


def _end(path: str) -> str:
    """The name of a file; of a package's own with the package's: all packages have one, hardly any the other."""
    directory, name = posixpath.split(path)
    return posixpath.join(posixpath.basename(directory), name) if name == "__init__.py" else name


def _modules(test: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Paths that a test's module may have, the likeliest first, each with the names of the test and of its class."""
    path, separator, within = test.partition("::")
    if separator:
        whole = within == posixpath.basename(path)  # a text is one doctest
        yield path, frozenset(() if whole else re.split(r"::|\.", within.partition("[")[0])[-2:])
        return
    parts = path.split(".")  # unittest: package.module.Class.test
    for count in range(len(parts), 0, -1):
        names, place = frozenset(parts[count:][-2:]), posixpath.join(*parts[:count])
        yield f"{place}.py", names
        yield f"{place}/__init__.py", names
