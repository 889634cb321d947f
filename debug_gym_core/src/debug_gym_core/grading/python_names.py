"""What files and directories are to Python, and to what it loads by itself, by their names alone."""

from __future__ import annotations

import posixpath

MODULE_SUFFIXES = (".py", ".pyc", ".pyo", ".so", ".pyd", ".pyw")
STARTUP_NAMES = frozenset({"sitecustomize", "usercustomize"})
STARTUP_SUFFIXES = (".pth", ".egg-link")
COMPILED_SUFFIXES = (".pyc", ".pyo")
METADATA_SUFFIXES = (".egg-info", ".dist-info", ".egg")
"""Of names in lower case, as `importlib.metadata` compares them."""


def module_name(name: str) -> str | None:
    """The module that a file or directory of a name is, None when it is none (`a.cpython-311-x86_64.so` is `a`).

    Args:
        name: without the directories that it is in
    """
    stem, dot, _ = name.partition(".")
    return stem if not dot or name.endswith(MODULE_SUFFIXES) else None


def runs_itself(path: str) -> str | None:
    """Why a file takes part in each start of Python, or in how it imports; None: it does not.

    Args:
        path: relative to the root
    """
    parts = path.split("/")
    name = parts[-1]
    if module_name(name) in STARTUP_NAMES or STARTUP_NAMES & set(parts[:-1]) or name.endswith(STARTUP_SUFFIXES):
        return "Python runs it by itself"
    if name.endswith(COMPILED_SUFFIXES) or "__pycache__" in parts:
        return "it is compiled"
    if any(part.lower().endswith(METADATA_SUFFIXES) for part in parts):
        return "it describes an installed distribution"
    return None


def loaded_of(link: str, end: str) -> set[str]:
    """What is loaded by itself of a directory that a link of such a name leads to: the rest is the directory's own.

    Args:
        link: its path
        end: the directory's
    """
    name = posixpath.basename(link)
    if name in STARTUP_NAMES or name == "conftest":
        return {posixpath.join(end, "__init__.py")}
    return {posixpath.join(end, "entry_points.txt")} if name.lower().endswith(METADATA_SUFFIXES) else set()
