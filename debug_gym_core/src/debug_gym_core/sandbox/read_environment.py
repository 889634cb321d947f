"""The virtual environment that lies in a task's repository, told by reading its files: none of its programs runs here.

Whoever made the repository made its `.venv` too, with `bin/python` and what the import system loads at each start. The
Python below it, which is not the repository's, can be asked; what the environment adds stands in its files.
"""

from __future__ import annotations

import ast
import dataclasses
import os
import re
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import canonicalize_name

from debug_gym_core.errors import RequirementError
from debug_gym_core.sandbox import plain_files
from debug_gym_core.sandbox.interpreter import Interpreter, trace

CONFIG = "pyvenv.cfg"


def environment_of(python: Path, repository: Path) -> Path | None:
    """The virtual environment of a Python when it lies in a repository, else None.

    Args:
        python: `bin/python` of it, absolute
        repository: directory of the repository
    """
    directory = python.parent.parent
    if not is_environment(directory):
        return None
    within = _checkouts(repository)
    return (
        directory if any(_lies_in(place, within) for place in (directory, Path(os.path.realpath(directory)))) else None
    )


def is_environment(directory: Path) -> bool:
    """Whether a directory is a virtual environment."""
    return (directory / CONFIG).is_file()


def base(directory: Path, python: Path, repository: Path) -> Path:
    """The Python that an environment was made with, outside of the repository and whatever checkout that is part of.

    Args:
        directory: the environment
        python: its interpreter: a link to the one that is looked for, or a copy of it
        repository: directory of the repository

    Raises:
        RequirementError: it leads nowhere, to what is not called like a Python, or into the repository
    """
    within = _checkouts(repository)
    try:
        links, real = trace(python)
    except OSError as error:
        raise RequirementError(f"the interpreter {python} does not start: {error}") from error
    if not real.exists():
        target = f"is a link to {python.readlink()}, which is not there" if python.is_symlink() else "is not there"
        raise RequirementError(f"the interpreter {python} {target}")
    if any(_leads_along(link, within) for link in links):  # to what lies beside the repository, and came with it
        raise _not_to_be_run(python)
    found = [one for one in (*links, real) if not _lies_in(one, within)]
    if _lies_in(real, within):
        home, version = _config(directory)
        names = [f"python{version}"] if version else []
        found = [home / name for name in (*names, "python3", "python")] if home is not None else []
    for one in found:
        there = Path(os.path.realpath(one))
        called = all(re.fullmatch(r"(python|pypy)[\d.]*[a-z]{0,2}", path.name) for path in (one, there))
        if called and there.is_file() and not _lies_in(there, within):
            return one
    raise _not_to_be_run(python)


def _not_to_be_run(python: Path) -> RequirementError:
    return RequirementError(
        f"the interpreter {python} is a program of the repository itself, which is not run outside of a sandbox; "
        "where you trust it, name it with env.python"
    )


def _leads_along(link: Path, within: tuple[Path, ...]) -> bool:
    """Whether a link of a repository leads out of it without knowing the machine: by `..`, or by way of a process.

    Tools write the whole path of the Python that an environment is made with.
    """
    if link.is_relative_to("/proc"):
        return True
    target = link.readlink()
    if target.is_absolute() or not _lies_in(link, within):
        return False
    return not _lies_in(Path(os.path.normpath(link.parent / target)), within)


def read(directory: Path, python: Path, below: Interpreter) -> Interpreter:
    """What an environment is, by its files.

    Args:
        directory: the environment
        python: its interpreter
        below: the Python that it was made with

    Returns:
        what the interpreter would say of itself
    """
    home, _ = _config(directory)
    site = tuple(_site(directory, below))
    packages: dict[str, str] = {}
    editable: set[Path] = set()
    for place in site:
        packages = {**distributions(place), **packages}
        editable.update(_editable(place))
    if _setting(directory, "include-system-site-packages").lower() == "true":
        packages = {**below.packages, **packages}
        site += below.site
        editable.update(below.editable)
    return dataclasses.replace(
        below,
        executable=python,
        prefix=directory,
        base_prefix=below.base_prefix,
        packages=dict(sorted(packages.items())),
        editable=tuple(sorted(path for path in editable if _is_there(path) and path not in {*site, directory})),
        # The home that is written there may be any file at all, such as a key; a Python's is a directory.
        passes=tuple(dict.fromkeys((*([home] if home and home.is_dir() else ()), below.executable, *below.passes))),
        libraries=tuple(dict.fromkeys((*below.libraries, *{below.prefix} - {below.base_prefix}))),
        site=site,
    )


def _is_there(path: Path) -> bool:
    """Whether there is something that this user can see; a repository may have written any path at all."""
    return os.path.exists(path)  # noqa: PTH110 (which raises nothing)


def _checkouts(repository: Path) -> tuple[Path, ...]:
    """A repository and the checkouts that it is part of, under the names that they have."""
    found = []
    home = Path.home()
    for start in dict.fromkeys((repository.absolute(), Path(os.path.realpath(repository)))):
        found.append(start)
        above = [place for place in start.parents if not home.is_relative_to(place)]
        found += [place for place in above if os.path.lexists(place / ".git")]
    return tuple(dict.fromkeys(found))


def _lies_in(path: Path, places: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(place) for place in places)


def _config(directory: Path) -> tuple[Path | None, str]:
    """The directory of the Python that an environment was made with, and its version (major, minor)."""
    home = _setting(directory, "home")
    version = re.match(r"\d+\.\d+", _setting(directory, "version") or _setting(directory, "version_info"))
    return (Path(home) if home.startswith("/") and "\0" not in home else None), version[0] if version else ""


def _setting(directory: Path, wanted: str) -> str:
    for line in _text(directory / CONFIG).splitlines():
        key, _, value = line.partition("=")
        if key.strip().lower() == wanted:
            return value.strip()
    return ""


def _site(directory: Path, below: Interpreter) -> Iterator[Path]:
    """Where distributions are installed in an environment."""
    for name in ("lib", "lib64"):
        place = directory / name / f"python{below.version[0]}.{below.version[1]}" / "site-packages"
        if place.is_dir() and not (name == "lib64" and (directory / name).is_symlink()):
            yield place


def distributions(site: Path) -> dict[str, str]:
    """Versions of the distributions in a directory, by normalised name; of one that is there twice, the first.

    Args:
        site: such as site-packages
    """
    found: dict[str, str] = {}
    for name in sorted(os.listdir(site)):  # noqa: PTH208 (names alone)
        stem, suffix = os.path.splitext(name)  # noqa: PTH122
        if suffix in (".dist-info", ".egg-info", ".egg-link"):
            project, _, version = stem.rpartition("-") if suffix == ".dist-info" else stem.partition("-")
            if project:
                found.setdefault(canonicalize_name(project), version.partition("-")[0])
    return found


def _editable(site: Path) -> Iterator[Path]:
    """What path files add to the import system: directories by name, and what a module that they import speaks of."""
    for file in sorted(site.glob("*.pth")):
        for line in map(str.strip, _text(file).splitlines()):
            if "\0" in line:
                continue
            loaded = re.match(r"import\s+(\w+)", line)
            if loaded:
                yield from _named(_text(site / f"{loaded[1]}.py"))
            elif line and not line.startswith(("#", "import ", "import\t")):
                yield Path(os.path.normpath(site / line))


def _named(source: str) -> Iterator[Path]:
    """The absolute paths among the strings of a module."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            value = node.value
            if value.startswith("/") and "\0" not in value and os.path.exists(value):  # noqa: PTH110 (never raises)
                yield Path(os.path.normpath(value))


def _text(path: Path) -> str:
    """The beginning of a file; nothing where it is none."""
    return (plain_files.read(path) or b"").decode("utf-8", "replace")
