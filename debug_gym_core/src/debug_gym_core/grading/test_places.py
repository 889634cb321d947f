"""Finds the pristine files that hold tests, by the tests' ids."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Container, Iterable, Sequence


class TestPlaces:
    """The files of one repository, by what ids of tests begin with."""

    def __init__(self, members: Iterable[str], roots: Sequence[str], text: Callable[[str], str]) -> None:
        """Know where to look.

        Args:
            members: paths of all files
            roots: directories that modules are imported from
            text: reads a file
        """
        self._members: Container[str] = members if isinstance(members, Container) else frozenset(members)
        self._roots = roots
        self._text = text
        self._defined: dict[str, frozenset[str]] = {}
        self._named: dict[str, list[str]] = {}
        for path in sorted(members):
            if path.endswith(".py"):
                self._named.setdefault(posixpath.basename(path), []).append(path)

    def find(self, test: str) -> tuple[str, ...]:
        """The files that may hold a test: one where its id says which, more where only its end is known.

        Args:
            test: its id
        """
        path = test.partition("::")[0]
        if path in self._members:
            return (path,)
        if path != test:
            return self._at_a_root([path]) or self._elsewhere(path, test) or tuple(self._ending(path))
        parts = test.split(".")  # unittest: package.module.Class.test
        modules = [f"{posixpath.join(*parts[:count])}.py" for count in range(len(parts), 0, -1)]
        found = self._at_a_root(modules)
        return found or next((places for module in modules if (places := self._elsewhere(module, test))), ())

    def _at_a_root(self, modules: Sequence[str]) -> tuple[str, ...]:
        """The first of some files, relative to a directory that modules are imported from."""
        paths = (posixpath.join(root, module) for module in modules for root in self._roots)
        return next(((path,) for path in paths if path in self._members), ())

    def _elsewhere(self, path: str, test: str) -> tuple[str, ...]:
        """Files below any directory, as pytest's rootdir of a project within one, or unittest's `-s`, may be.

        They have to define what is called as the test or, else, as its class, which may get its tests from elsewhere:
        that a file has the name of a module alone says little.
        """
        for name in reversed(re.split(r"::|\.", test.partition("[")[0])[-2:]):
            if found := tuple(one for one in self._ending(path) if name in self._definitions(one)):
                return found
        return ()

    def _ending(self, path: str) -> Iterable[str]:
        """Files of a path below some directory."""
        return (one for one in self._named.get(posixpath.basename(path), ()) if one.endswith(f"/{path}"))

    def _definitions(self, path: str) -> frozenset[str]:
        if path not in self._defined:
            self._defined[path] = frozenset(re.findall(r"\b(?:def|class) (\w+)", self._text(path)))
        return self._defined[path]
