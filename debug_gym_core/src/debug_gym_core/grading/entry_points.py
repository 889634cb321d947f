"""The plugins of pytest that a repository's own distributions name by entry points: pytest loads them first of all."""

from __future__ import annotations

import ast
import configparser
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from debug_gym_core.errors import ActionError
from debug_gym_core.grading.pytest_plugins import files_of
from debug_gym_core.grading.pytest_sections import read_toml
from debug_gym_core.sandbox.python_code import parse
from debug_gym_core.workspace.patch import touched
from debug_gym_core.workspace.snapshot import Member

GROUP = "pytest11"

OWN_PLUGIN = "pytest loads it by an entry point: its change counts only where that is what is to be fixed"
"""Why a change of such a plugin is not taken over; an agent is told so of each, whether or not this one's is."""


def entry_plugins(
    search: Iterable[str], members: Mapping[str, Member], text: Callable[[str], str], gold_patch: bytes | None
) -> tuple[frozenset[str], frozenset[str]]:
    """The plugins that distributions in a repository name, but for those that may be what is to be fixed.

    These are of a distribution with `pytest` in its name or in that of a plugin's module, or of one whose name
    no file tells; or the right fix changes them.

    Args:
        search: directories that modules are imported from
        members: the repository
        text: reads a file of it
        gold_patch: a right fix; None: unknown

    Returns:
        as `pytest_plugins.files_of`
    """
    modules, roots = _named(members, text)
    places = {posixpath.join(root, one).rstrip("/") for root in roots for one in ("", "src", "lib")}
    names, files = files_of(modules, places.union(search if roots else ()), members, text)
    return (frozenset(), frozenset()) if files.intersection(_changed(gold_patch) if files else ()) else (names, files)


def _changed(patch: bytes | None) -> list[str]:
    try:
        return touched(patch) if patch else []
    except ActionError:  # as what it would change is not known, nothing is taken out
        return []


def _named(paths: Iterable[str], text: Callable[[str], str]) -> tuple[frozenset[str], frozenset[str]]:
    """The modules that are named as plugins, and the directories of the distributions that do so."""
    texts: dict[str, list[tuple[str, str]]] = {}
    names: dict[str, set[str]] = {}
    for path in paths:
        directory, name = posixpath.split(path)
        if name not in _READERS:
            continue
        if name == "entry_points.txt":
            directory, metadata = posixpath.split(directory)
            names.setdefault(directory, set()).add(metadata)
        texts.setdefault(directory, []).append((name, text(path)))
    modules: dict[str, set[str]] = {}
    for directory, there in texts.items():
        if not any(GROUP in one for _, one in there):
            continue  # of thousands that could be parsed hardly one names a plugin
        for name, one in there:
            named, values = _READERS[name](one)
            names.setdefault(directory, set()).add(named)
            found = {value.partition("=")[2].partition(":")[0].partition("[")[0].strip() for value in values}
            modules.setdefault(directory, set()).update(found - {""})
    counted = {one: found for one, found in modules.items() if found and not _may_be_for_pytest(names[one], found)}
    return frozenset().union(*counted.values()), frozenset(counted)


def _may_be_for_pytest(names: Iterable[str], modules: Iterable[str]) -> bool:
    """Whether a distribution is one for pytest, or may be as none of its files tells its name.

    Args:
        names: what its files call it, empty where one does not
        modules: its plugins
    """
    known = {one.lower() for one in names if one}
    tops = {one.partition(".")[0].lower() for one in modules}
    return not known or any("pytest" in one for one in known | tops)


def _of_pyproject(text: str) -> tuple[str, Iterator[str]]:
    data = read_toml(text) or {}
    project, poetry = _table(data, "project"), _table(data, "tool", "poetry")
    flit = _table(data, "tool", "flit")
    named = _table(flit, "metadata")
    groups = (
        _table(project, "entry-points", GROUP),
        _table(poetry, "plugins", GROUP),
        _table(flit, "entrypoints", GROUP),
    )
    values = (f"{name}={value}" for group in groups for name, value in group.items())
    names = (project.get("name"), poetry.get("name"), named.get("dist-name"), named.get("module"))
    return str(next(filter(None, names), "")), values


def _of_setup_cfg(text: str) -> tuple[str, Iterator[str]]:
    data = _sections(text, ("=", ":"))
    values = data.get("options.entry_points", {}).get(GROUP, "")
    return data.get("metadata", {}).get("name", ""), iter(values.splitlines())


def _of_entry_points(text: str) -> tuple[str, Iterator[str]]:
    return "", (f"{name}={value}" for name, value in _sections(text).get(GROUP, {}).items())


def _of_setup(text: str) -> tuple[str, Iterator[str]]:
    try:
        nodes = list(ast.walk(parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        nodes = []
    calls = sorted((one for one in nodes if isinstance(one, ast.Call)), key=_is_setup, reverse=True)
    keywords = [word for one in calls for word in one.keywords]  # of others where it is `setup(**dict(name=...))`
    names = (one.value.value for one in keywords if one.arg == "name" and isinstance(one.value, ast.Constant))
    return str(next(names, "")), _written(nodes)


def _is_setup(call: ast.Call) -> bool:
    """Whether what is called is `setup`, or that of a module."""
    called = call.func
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) == "setup"


_READERS: Mapping[str, Callable[[str], tuple[str, Iterator[str]]]] = {
    "pyproject.toml": _of_pyproject,
    "setup.cfg": _of_setup_cfg,
    "setup.py": _of_setup,
    "entry_points.txt": _of_entry_points,
}


def _written(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The entry points that are written in a `setup.py`."""
    for node in nodes:
        if isinstance(node, (ast.Dict, ast.keyword)):
            strings = (one.value for group in _groups(node) for one in ast.walk(group) if isinstance(one, ast.Constant))
            yield from (line for one in strings if isinstance(one, str) for line in one.splitlines())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and f"[{GROUP}]" in node.value:
            yield from _of_entry_points(node.value)[1]


def _groups(node: ast.Dict | ast.keyword) -> Iterator[ast.expr]:
    """What the group has in a dictionary, or is given as in `dict(pytest11=...)`."""
    if isinstance(node, ast.keyword):
        yield from [node.value] if node.arg == GROUP else []
        return
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == GROUP:
            yield value


def _sections(text: str, delimiters: Sequence[str] = ("=",)) -> Mapping[str, Mapping[str, str]]:
    """What stands in an ini file; nothing where it cannot be read."""
    parser = configparser.RawConfigParser(strict=False, delimiters=delimiters)
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    return {name: dict(parser[name]) for name in parser.sections()}


def _table(data: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """A table in tables, empty where there is none."""
    for name in names:
        inner = data.get(name)
        data = inner if isinstance(inner, dict) else {}
    return data
