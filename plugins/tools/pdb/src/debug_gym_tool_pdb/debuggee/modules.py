"""Installed modules and their functions, found where an import would find them, without importing any."""

import ast
import importlib.machinery
import os
import re
import sys
import types
from _imp import is_frozen

from .channel import _ATTRIBUTES, Pattern
from .places import Definition, Source, definitions
from .statements import own_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Tuple

MOST_FOLLOWED = 50
"""Names that are followed, from one module to another."""
FROZEN = "<frozen "
"""How the name of a code's file begins when it was compiled with the interpreter."""

_FROZEN_MODULE = Pattern(FROZEN + r"(\w+(?:\.\w+)*)>\Z")
_LIBRARY = os.path.dirname(os.__file__)
_IN_C = tuple(importlib.machinery.EXTENSION_SUFFIXES)


class NoPythonCode(Exception):
    """No breakpoint stops in what was named; says why."""


def find_module(name: str) -> "Optional[Tuple[str, str]]":
    """Where a module is, by its dotted name.

    Returns:
        its name for itself, which differs where it is loaded under another one too, as `os.path` is; and its file,
        which may be one in C, or empty, as of a directory and of what is part of the interpreter; None: an import would
        not find it
    """
    places = [one for one in sys.path if type(one) is str]
    for one in (name, _own_name(name)):
        file = "" if one in sys.builtin_module_names else _file_in(places, one)
        if file is not None:
            return one, file
    return None


def loaded() -> "Iterator[Tuple[str, Dict[str, Any]]]":
    """What the modules that are loaded say of their files, with their global names; no code of the program's is run."""
    for module in list(sys.modules.values()):
        if issubclass(type(module), types.ModuleType):  # anything can be put there
            attributes = _ATTRIBUTES.__get__(module)
            name = attributes.get("__file__") if type(attributes) is dict else None
            if type(name) is str:
                yield name, attributes


def _own_name(name: str) -> str:
    module = sys.modules.get(name)
    attributes = _ATTRIBUTES.__get__(module) if issubclass(type(module), types.ModuleType) else None
    own = attributes.get("__name__") if type(attributes) is dict else None
    return own if type(own) is str else name


def file_of_frozen(filename: str) -> str:
    """The file that has the source of frozen code, which has the name of its module; empty: it is not known.

    Such is importlib, and from Python 3.11 on what every program needs: `abc`, `codecs`, `io`, `os`, `posixpath`, ...
    """
    match = _FROZEN_MODULE.match(filename)
    return (_file_in([_LIBRARY], match.group(1)) if match else None) or ""


def is_file_of_frozen(file: str) -> bool:
    """Whether a file has the source of frozen code: an import of its module does not read it."""
    name = re.sub(r"(/__init__)?\.py\Z", "", os.path.relpath(file, os.path.realpath(_LIBRARY)))
    return is_frozen(name.replace("/", "."))


def _file_in(directories: "List[str]", name: str) -> "Optional[str]":
    file: "Optional[str]" = None
    for part in name.split("."):
        file, directories = _in_directories(part, directories)
        if file is None:
            break
    return file


def _in_directories(name: str, directories: "List[str]") -> "Tuple[Optional[str], List[str]]":
    """The file of a module in the first directory that has it, and the directories of its submodules."""
    spread = []  # over several directories, none of which has an __init__.py
    for directory in directories:
        base = os.path.join(directory, name)
        files = [(os.path.join(base, "__init__.py"), [base])]
        files += [(base + suffix, []) for suffix in (*_IN_C, ".py")]
        for file, inside in files:
            if os.path.isfile(file):
                return file, inside
        if os.path.isdir(base):
            spread.append(base)
    return ("" if spread else None), spread


class _Module:
    """What a module defines, by qualified names."""

    def __init__(self, name: str, file: str) -> None:
        """Read a module's file; see `Source`."""
        self.name = name
        self.file = file
        self.source = Source(file)
        self.nodes = dict(self.source.functions())

    def from_elsewhere(self, name: str) -> "Iterator[str]":
        """What a name may stand for that the module imports, in full: what it imports by its name first."""
        stars = []
        for node in own_nodes(self.source.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if (alias.asname or alias.name.partition(".")[0]) == name:
                        yield alias.name if alias.asname else name
            elif isinstance(node, ast.ImportFrom):
                package = self.name.split(".") if node.level else []
                is_package = os.path.basename(self.file) == "__init__.py"
                above = package[: len(package) - node.level + is_package]
                origin = ".".join(above + ([node.module] if node.module else []))
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        yield "{}.{}".format(origin, alias.name)
                    elif alias.name == "*":
                        stars.append("{}.{}".format(origin, name))
        for star in reversed(stars):  # the last one counts
            yield star

    def bases(self, name: str) -> "List[str]":
        """The classes that a class is made from, as they are called in the module."""
        return [one for one in map(_dotted, getattr(self.nodes[name], "bases", ())) if one]


class Installed:
    """Functions of modules, by dotted names.

    Attributes:
        missing: the file of the first module that was looked into, and what was looked for there; None: there is none
    """

    def __init__(self) -> None:
        """Know none yet."""
        self.missing: "Optional[Tuple[str, str]]" = None
        self._modules: "Dict[str, _Module]" = {}
        self._known: "Dict[str, Optional[Tuple[_Module, str]]]" = {}

    def find(self, name: str) -> "Optional[Definition]":
        """Where a function or class is defined, also when its module has it from another one, or its class inherits it.

        Args:
            name: after that of its module

        Raises:
            NoPythonCode: it is written in C
        """
        owner, _, method = name.rpartition(".")
        return _described(self._defined(name) or self._inherited(self._defined(owner), method))

    def find_from(self, module: str, file: str, name: str) -> "Optional[Definition]":
        """The same for a name as it stands in the text of a module.

        Args:
            module: its name
            file: its file
            name: of a function or class there

        Raises:
            NoPythonCode: see `find`
        """
        owner, _, method = name.rpartition(".")
        found = self._in_module(name, module, file)
        if found is None and owner:
            found = self._inherited(self._in_module(owner, module, file), method)
        return _described(found)

    def _inherited(self, owner: "Optional[Tuple[_Module, str]]", method: str) -> "Optional[Tuple[_Module, str]]":
        """The method that a class has from another one."""
        found = ((module, "{}.{}".format(kind, method)) for module, kind in self._ancestors(owner))
        return next(((module, name) for module, name in found if name in module.nodes), None)

    def _defined(self, name: str) -> "Optional[Tuple[_Module, str]]":
        """The module that defines something, and its name there."""
        if name not in self._known and len(self._known) < MOST_FOLLOWED:
            self._known[name] = None  # modules may have it from each other
            self._known[name] = self._look_for(name)
        return self._known.get(name)

    def _look_for(self, name: str) -> "Optional[Tuple[_Module, str]]":
        parts = name.split(".")
        for count in range(len(parts) - 1, 0, -1):
            found, inside = find_module(".".join(parts[:count])), ".".join(parts[count:])
            if found is None or (not found[1] and found[0] not in sys.builtin_module_names):
                continue
            if not found[1] or found[1].endswith(_IN_C):
                raise NoPythonCode("{} is written in C: no breakpoint stops in {}".format(found[0], inside))
            self.missing = self.missing or (found[1], inside)
            return self._in_module(inside, *found)
        return None

    def _in_module(self, name: str, module: str, file: str) -> "Optional[Tuple[_Module, str]]":
        try:
            there = self._modules.get(module) or self._modules.setdefault(module, _Module(module, file))
        except (OSError, SyntaxError, ValueError, RecursionError):
            return None
        if name in there.nodes:
            return there, name
        head, dot, rest = name.partition(".")
        for one in there.from_elsewhere(head):
            found = self._defined(one + dot + rest)
            if found is not None:
                return found
        return None

    def _ancestors(
        self, found: "Optional[Tuple[_Module, str]]", below: "Tuple[Tuple[_Module, str], ...]" = ()
    ) -> "List[Tuple[_Module, str]]":
        """The classes from which a class inherits, in the order in which they are asked, but for rare cases."""
        if found is None or found in below:
            return []
        module, name = found
        classes: "List[Tuple[_Module, str]]" = []
        for base in module.bases(name):
            defined = self._in_module(base, module.name, module.file)
            if defined is not None:
                classes += [defined, *self._ancestors(defined, (*below, found))]
        return [one for place, one in enumerate(classes) if one not in classes[place + 1 :]]


def _described(found: "Optional[Tuple[_Module, str]]") -> "Optional[Definition]":
    if found is None:
        return None
    module, name = found
    return definitions(module.source, name, module.nodes[name], module.file)[-1]


def _dotted(node: "Any") -> str:
    """The dotted name that an expression is; empty: it is none."""
    if isinstance(node, ast.Name):
        return node.id
    inner = _dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return "{}.{}".format(inner, node.attr) if inner else ""
