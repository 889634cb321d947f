"""The modules of a repository that are named as pytest's plugins."""

from __future__ import annotations

import ast
import posixpath
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from debug_gym_core.grading.links import leads_to, way
from debug_gym_core.sandbox.python_code import parse
from debug_gym_core.tasks.entrypoint import Entrypoint, Kind
from debug_gym_core.workspace.snapshot import Member


def named_by(entrypoint: Entrypoint, addopts: Sequence[str]) -> list[str]:
    """The plugins that a command and pytest's configuration name.

    Args:
        entrypoint: the command
        addopts: the words of the configuration's option of this name
    """
    words = shlex.split(entrypoint.text) if entrypoint.kind is Kind.COMMAND else entrypoint.args
    words = [*words, *addopts, *entrypoint.env.get("PYTEST_ADDOPTS", "").split()]
    return [*optional_plugins(words), *filter(None, entrypoint.env.get("PYTEST_PLUGINS", "").split(","))]


def files_of(
    modules: Iterable[str], search: Iterable[str], members: Mapping[str, Member], text: Callable[[str], str]
) -> tuple[frozenset[str], frozenset[str]]:
    """The files of some plugins, and of those that they name in turn.

    Args:
        modules: the plugins' names
        search: directories that modules are imported from
        members: the repository
        text: reads a file of it

    Returns:
        the names of all plugins, and the paths of those that are in the repository, with the links that lead there
    """
    found = [*modules]
    roots = [*search]
    files: set[str] = set()
    for module in found:  # which grows
        for root in roots:
            prefix = posixpath.join(root, *module.split("."))
            for path in (f"{prefix}.py", f"{prefix}/__init__.py"):
                places = {path, *way(members, path)}
                if leads_to(members, path) in members and not places <= files:
                    files |= places
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
