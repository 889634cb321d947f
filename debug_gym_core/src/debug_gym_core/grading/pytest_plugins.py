"""The modules of a repository that are named as pytest's plugins."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

from debug_gym_core.sandbox.python_code import parse


def files_of(
    modules: Iterable[str], search: Iterable[str], paths: AbstractSet[str], text: Callable[[str], str]
) -> tuple[frozenset[str], frozenset[str]]:
    """The files of some plugins, and of those that they name in turn.

    Args:
        modules: the plugins' names
        search: directories that modules are imported from
        paths: the repository's files
        text: reads one

    Returns:
        the names of all plugins, and the paths of those that are in the repository
    """
    found = [*modules]
    roots = [*search]
    files: set[str] = set()
    for module in found:  # which grows
        for root in roots:
            prefix = posixpath.join(root, *module.split("."))
            for path in sorted({f"{prefix}.py", f"{prefix}/__init__.py"} & paths - files):
                files.add(path)
                found += listed_plugins(text(path))
    return frozenset(found), frozenset(files)


def optional_plugins(words: Sequence[str]) -> list[str]:
    """The modules that a command line's `-p` names.

    Args:
        words: the command line
    """
    words = [word.strip("\"'") for word in words]
    named = [following if word == "-p" else word[2:] for word, following in pairwise([*words, ""]) if word[:2] == "-p"]
    return [one.strip() for one in named if one.strip() and not one.strip().startswith("no:")]


def listed_plugins(text: str) -> list[str]:
    """The modules in the `pytest_plugins` of a conftest.py or of a plugin.

    Args:
        text: the file's content
    """
    try:
        tree = parse(text)
    except (SyntaxError, ValueError):
        return []
    found: list[str] = []
    for node in tree.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(one, ast.Name) and one.id == "pytest_plugins" for one in targets):
            constants = (one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant))
            found += [one for one in constants if isinstance(one, str)]
    return found
