"""What programs will import: guessed from the workspace's files, which are read but not run, and pytest's plugins."""

import ast
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

FILES = 400
FILE_SIZE = 1 << 18
ENTRIES = 20000
"""Directory entries that are looked at in search of the workspace's files."""

SKIPPED_DIRECTORIES = frozenset(("node_modules", "site-packages", "__pycache__", "build", "dist"))


def pytest_modules() -> "list[str]":
    """What pytest itself imports when it starts."""
    return ["_pytest." + name for name in sys.modules["_pytest.config"].default_plugins]


def pytest_plugins() -> "list[str]":
    """The modules of installed plugins of pytest."""
    names = []  # type: list[str]
    try:
        from importlib.metadata import distributions
    except ImportError:
        return names
    for distribution in distributions():
        for entry in distribution.entry_points:
            if entry.group == "pytest11":
                names.append(entry.value.partition(":")[0].strip())
    return names


def imported_names(root: str) -> "list[str]":
    """What the workspace's Python files import when they are imported themselves, the most frequent first."""
    counts = {}  # type: dict[str, int]
    for path in python_files(root):
        try:
            with open(path, "rb") as file:
                tree = ast.parse(file.read(FILE_SIZE))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for name in set(names_in(tree.body)):
            counts[name] = counts.get(name, 0) + 1
    # A package before what is in it; else the more frequent first.
    return sorted(counts, key=lambda name: (name.count("."), -counts[name], name))


def python_files(root: str) -> "list[str]":
    """Python files of the workspace, tests first; of many some."""
    found = []  # type: list[str]
    seen = 0
    for directory, directories, files in os.walk(root):
        seen += len(directories) + len(files)
        if seen > ENTRIES:
            break
        directories[:] = sorted(
            name
            for name in directories
            if not name.startswith(".")
            and name not in SKIPPED_DIRECTORIES
            and not os.path.exists(os.path.join(directory, name, "pyvenv.cfg"))
        )
        found += [os.path.join(directory, name) for name in sorted(files) if name.endswith(".py")]
    found.sort(key=lambda path: not os.path.basename(path).startswith(("test_", "conftest")))
    return found[:FILES]


def names_in(body: "Iterable[Any]") -> "Iterator[str]":
    """The modules that statements of a module import when it is imported."""
    for node in body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            if node.module and not node.level:
                yield node.module
                for alias in node.names:
                    if alias.name.isidentifier() and alias.name.islower():  # it may be a module of a package
                        yield "{}.{}".format(node.module, alias.name)
        elif isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.dump(node.test):
                for name in names_in(node.body + node.orelse):
                    yield name
        elif isinstance(node, ast.Try):
            for name in names_in(node.body + node.orelse):
                yield name
