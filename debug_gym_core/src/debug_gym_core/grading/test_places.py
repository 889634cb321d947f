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
        self._named: dict[str, list[str]] = {}
        for path in sorted(members):
            if path.endswith(".py"):
                self._named.setdefault(posixpath.basename(path), []).append(path)

    def find(self, test: str) -> str | None:
        """The file that holds a test; None when there is none.

        Args:
            test: its id
        """
        path = test.partition("::")[0]
        if path in self._members:
            return path
        if path != test:
            return self._elsewhere(path, test)
        parts = test.split(".")  # unittest: package.module.Class.test
        modules = [f"{posixpath.join(*parts[:count])}.py" for count in range(len(parts), 0, -1)]
        for module in modules:
            for root in self._roots:
                if (name := posixpath.join(root, module)) in self._members:
                    return name
        return next((found for module in modules if (found := self._elsewhere(module, test))), None)

    def _elsewhere(self, path: str, test: str) -> str | None:
        """A file below any directory, as pytest's rootdir of a project within one, or unittest's `-s`, may be.

        It has to define what is called as the test: that a file has the name of a module alone says little.
        """
        function = re.split(r"::|\.", test.partition("[")[0])[-1]
        for one in self._named.get(posixpath.basename(path), ()):
            if one.endswith(f"/{path}") and re.search(rf"\bdef {re.escape(function)}\b", self._text(one)):
                return one
        return None
