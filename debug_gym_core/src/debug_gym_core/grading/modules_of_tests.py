"""Which modules the functions and methods are written in that tests are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from debug_gym_core.sandbox.python_code import parse


def find_modules(sources: Mapping[str, bytes]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Find the functions and methods that are written in modules.

    Args:
        sources: texts of the modules, by their paths

    Returns:
        the modules of each function, by the ids that a test has which is that function; and of the modules that cannot
        be read, why, by their paths
    """
    modules: dict[str, list[str]] = {}
    unread: dict[str, str] = {}
    for path, text in sources.items():
        parts = path.removesuffix(".py").split("/")
        try:
            names = _functions(text)
        except (SyntaxError, ValueError, RecursionError) as error:  # which the sandbox's Python may well read
            unread[path] = str(error)
            continue
        for name in names:
            modules[f"{path}::{name.replace('.', '::')}"] = [path]
            # unittest names a module from where it began to look for tests, which may be below the root.
            for first in range(len(parts)):
                modules.setdefault(".".join((*parts[first:], name)), []).append(path)
    return modules, unread


class ModulesOfTests:
    """The modules that functions and methods are written in, by the ids that a test has of them."""

    def __init__(self, modules: Mapping[str, list[str]]) -> None:
        """Know them.

        Args:
            modules: by ids, as `find_modules` finds them
        """
        self._modules = modules
        self._longest = max(map(len, modules), default=0)

    def of(self, test: str) -> list[str]:
        """The modules that a test's function may be written in: none, one, or several of the same name.

        Args:
            test: its id
        """
        name = test.partition("[")[0]
        for end in re.finditer(r"::|\.|$", name[: self._longest + 2]):
            # Below a function is nothing: what is reported there has to be shown as well.
            if name[: end.start()] in self._modules:
                return self._modules[name[: end.start()]]
        return []


def _functions(text: bytes) -> frozenset[str]:
    """The qualified names of a module's functions and methods, of those too that a class has from another of it.

    Raises:
        SyntaxError, ValueError, RecursionError: the module cannot be read
    """
    found: set[str] = set()
    bases: dict[str, list[str]] = {}

    def look(body: Iterable[ast.stmt], prefix: str) -> None:
        for one in body:
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.add(prefix + one.name)
            elif isinstance(one, ast.ClassDef):
                name = prefix + one.name
                bases[name] = [ast.unparse(base) for base in one.bases]
                look(one.body, name + ".")
            else:
                for part in ("body", "orelse", "handlers", "finalbody"):
                    look(getattr(one, part, ()), prefix)

    look(parse(text).body, "")
    for name, others in bases.items():  # A class comes after those that it is made of.
        for other in others:
            found |= {f"{name}.{one.removeprefix(other + '.')}" for one in found if one.startswith(other + ".")}
    return frozenset(found)


def function_of(test: str) -> str:
    """The name of the function or method that a test is."""
    return re.split(r"::|\.", test.partition("[")[0])[-1]
