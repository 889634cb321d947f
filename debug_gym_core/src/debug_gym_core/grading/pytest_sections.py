"""pytest's sections in files that configure other things too: `tox.ini`, `setup.cfg`, `pyproject.toml`."""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from debug_gym_core.workspace.snapshot import FileState

INI_SECTIONS = {"tox.ini": ("pytest", "tool:pytest"), "setup.cfg": ("tool:pytest", "pytest")}
INI_FILES = ("pytest.ini", ".pytest.ini", *INI_SECTIONS)
TOML_FILES = ("pytest.toml", ".pytest.toml")
SHARED_FILES = frozenset({"pyproject.toml", *INI_SECTIONS})
"""Files of which only sections are pytest's."""

BOM = "\ufeff"
"""What iniconfig, and so pytest, passes over at the beginning of a file, once. Of several none may come first later."""

_ODD = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Characters at which some versions of iniconfig part lines and others do not."""

LARGEST = 1 << 17
"""Characters of a pyproject.toml that are read."""

DEEPEST = 1000
"""Dots in one of its lines: tomllib's time grows with the square of those of a key, which ends with its line."""


def shared_name(path: str) -> str | None:
    """The name of a file of which only sections are pytest's; None of any other.

    Args:
        path: of the file
    """
    name = posixpath.basename(path)
    return name if name in SHARED_FILES else None


def has_section(name: str, text: str) -> bool:
    """Whether a file configures pytest.

    Args:
        name: one of `SHARED_FILES`
        text: its content
    """
    if name == "pyproject.toml":
        data = read_toml(text)
        return data is None or _pytest_table(data) is not None
    return any(section in INI_SECTIONS[name] for section, _ in _ini_blocks(text))


def restore(name: str, new: str, old: str) -> str | None:
    """The new text of a file with the old one's pytest sections.

    Args:
        name: one of `SHARED_FILES`
        new: the changed content
        old: the pristine content, empty when there was no file

    Returns:
        the text, `new` itself when the sections are equal; None when only the whole old file would do
    """
    return _restore_toml(new, old) if name == "pyproject.toml" else _restore_ini(new, old, INI_SECTIONS[name])


def _ini_blocks(text: str) -> list[tuple[str, str]]:
    """The sections of an ini file as pytest's iniconfig divides it: name and text, the first without a name."""
    blocks: list[tuple[str, list[str]]] = [("", [])]
    for line in text.lstrip(BOM).splitlines(keepends=True):
        header = line.partition("#")[0].partition(";")[0].rstrip()
        if line.startswith("[") and header.endswith("]"):
            blocks.append((header[1:-1].strip(), []))
        blocks[-1][1].append(line)
    return [(name, "".join(lines)) for name, lines in blocks]


def _restore_ini(new: str, old: str, sections: Sequence[str]) -> str | None:
    """The new text with the old text's blocks of some sections; None when only the whole old file would do."""
    if _ODD.findall(new) != _ODD.findall(old):
        return None
    wanted = [text for name, text in _ini_blocks(old) if name in sections]
    if [text.strip() for name, text in _ini_blocks(new) if name in sections] == [text.strip() for text in wanted]:
        return new
    rest = "".join(text for name, text in _ini_blocks(new) if name not in sections)
    return _joined(rest, wanted)


def _joined(rest: str, blocks: Sequence[str]) -> str:
    """A text with blocks after it."""
    end = "" if not rest or rest.endswith("\n") else "\n"
    return rest + end + "".join(blocks)


def read_toml(text: str) -> dict[str, Any] | None:
    """A file's content; None where it cannot be read, or would take long.

    Args:
        text: of the file
    """
    if len(text) > LARGEST or any(line.count(".") > DEEPEST for line in text.split("\n")):
        return None
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # the parser's own error is one; a number can be too long for Python
        return None


def _pytest_table(data: Mapping[str, Any]) -> object:
    tool = data.get("tool")
    return tool.get("pytest") if isinstance(tool, dict) else None


def _restore_toml(new: str, old: str) -> str | None:
    """The new pyproject.toml with the old one's `tool.pytest`; None when only the whole old file would do."""
    before, after = read_toml(old), read_toml(new)
    if before is None or after is None:
        return None
    wanted = _pytest_table(before)
    if _equal(_pytest_table(after), wanted):
        return new

    def divide(text: str) -> tuple[str, list[str]]:
        rest: list[str] = []
        tables: list[str] = []
        part = rest
        for line in text.splitlines(keepends=True):
            if line.lstrip().startswith("["):
                key = line.strip().lstrip("[").replace(" ", "").replace('"', "").replace("'", "")
                part = tables if key.startswith(("tool.pytest.", "tool.pytest]")) else rest
            part.append(line)
        return "".join(rest), tables

    result = _joined(divide(new)[0], ["".join(divide(old)[1])])
    made = read_toml(result)
    if made is None or not isinstance(made.get("tool", {}), dict) or not isinstance(after.get("tool", {}), dict):
        return None
    same = _equal(_pytest_table(made), wanted) and _equal(_without_pytest(made), _without_pytest(after))
    return result if same else None


def _equal(one: object, other: object) -> bool:
    """Whether two parts of files are known to be equal: tables may lie deep in each other."""
    try:
        return one == other
    except RecursionError:
        return False


def _without_pytest(data: Mapping[str, Any]) -> dict[str, Any]:
    """A parsed pyproject.toml without `tool.pytest`, and without `tool` when nothing else is in it."""
    tool = {key: value for key, value in data.get("tool", {}).items() if key != "pytest"}
    return {**{key: value for key, value in data.items() if key != "tool"}, **({"tool": tool} if tool else {})}


def options(pyproject: str, files: Mapping[str, str]) -> dict[str, list[str]]:
    """Words of some options in a repository's pytest configuration, from all places together.

    Args:
        pyproject: content of its pyproject.toml
        files: content of its ini files and pytest.toml by name

    Returns:
        the words of `python_files`, `pythonpath` and `addopts`
    """
    found: dict[str, list[str]] = {"python_files": [], "pythonpath": [], "addopts": []}
    tables = [(read_toml(files.get(name, "")) or {}).get("pytest") for name in TOML_FILES]
    tables.append(_pytest_table(read_toml(pyproject) or {}))
    for table in tables:
        inner = table.get("ini_options") if isinstance(table, dict) else None
        options = {**table, **(inner if isinstance(inner, dict) else {})} if isinstance(table, dict) else {}
        for name, words in found.items():
            value = options.get(name, "")
            words += map(str, value) if isinstance(value, list) else str(value).split()
    for file, text in files.items():
        sections = INI_SECTIONS.get(file, ("pytest",)) if file not in TOML_FILES else ()
        for section, block in _ini_blocks(text):
            current = ""
            for line in block.splitlines()[1:] if section in sections else ():
                key, equals, value = line.partition("=")
                if equals and not line[:1].isspace():
                    current, line = key.strip(), value
                if current in found:
                    found[current] += line.partition("#")[0].split()
    return found


SAME = object()
"""Stands for a pristine file."""


def with_pristine(name: str, state: FileState | None, old: str) -> tuple[object, str]:
    """A changed file with pytest's sections as they were.

    Args:
        name: of the file
        state: its new state, None when it is deleted
        old: its pristine text

    Returns:
        the state to write, None to delete the file, `SAME` to leave the pristine one; and what was restored
    """
    if state is None:
        return (SAME, "it configures pytest") if has_section(name, old) else (None, "")
    restored = None
    if state.kind == "file":
        new = state.data.decode("utf-8", "surrogateescape")
        restored = restore(name, new, old)
        if restored == new:
            return state, ""
    if restored is None:
        return SAME, "it configures pytest"
    return replace(state, data=restored.encode("utf-8", "surrogateescape")), "pytest's sections in it are restored"
