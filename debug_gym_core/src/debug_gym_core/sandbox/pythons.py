"""The Pythons of the host: which one is meant for a repository, and which there are."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from debug_gym_core.errors import RequirementError, UsageError
from debug_gym_core.places import expanded
from debug_gym_core.sandbox import plain_files, read_environment
from debug_gym_core.sandbox.interpreter import Interpreter, probe
from debug_gym_core.sandbox.probing import OLDEST, PROBE_TIMEOUT

_NUMBER = re.compile(r"\d+(\.\d+){0,2}")
_RELEASE = re.compile(r"(\.\d+)+")
_NAMED = re.compile(r"python(\d+\.\d+)")
_VERSION = re.compile(r"((cpython|pypy|graalpy|python)[-@]?)?\d[\w.+-]*")
"""What uv is asked for; it takes any other word for a program on the PATH, and starts that one to look at it."""


def find(repository: Path, explicit: str | None = None) -> Interpreter:
    """Find the Python for a repository.

    Looked for in this order: what was asked for; the repository's virtual environment (`.venv`, `venv`);
    `$VIRTUAL_ENV`; the version that the repository's `.python-version` pins, among pyenv's and uv's; the one that
    runs this program.

    None of the repository's own programs runs here: an environment in it is known by its files, and only the Python
    that it was made with is asked. A program of the repository that is no such environment is run when, and only
    when, `explicit` names it.

    Args:
        repository: directory of the repository
        explicit: `env.python`: a path, a directory of a virtual environment, a command, or a version such as `3.11`

    Returns:
        the interpreter

    Raises:
        UsageError: what was asked for does not exist or is no Python
        RequirementError: what was found is too old or does not start, is not to be run here, or the pinned version is
            not installed
    """
    if explicit is not None:
        named = _explicit(explicit)
        try:
            return _ask(named, repository)
        except RequirementError:
            return probe(named)
    for name in (".venv", "venv"):
        if (repository / name / "pyvenv.cfg").is_file():
            return _ask(_of_environment(repository / name), repository)
    active = os.environ.get("VIRTUAL_ENV")
    if active and os.path.lexists(_of_environment(Path(active))):
        return _ask(_of_environment(Path(active)), repository)
    pins = _pins(repository / ".python-version")
    for pin in pins:
        pinned = _installed(pin)
        if pinned is not None:
            return probe(pinned)
    if pins:
        raise RequirementError(
            f"the repository's .python-version asks for Python {pins[0]}, which is not installed; get it with: "
            f"uv python install {pins[0]} (or pyenv install {pins[0]}), or name another with env.python"
        )
    if not sys.executable:
        raise RequirementError("no Python was found; name one with env.python")
    return probe(sys.executable)


def _ask(python: Path, repository: Path) -> Interpreter:
    """Find out about an interpreter, by its files alone where it is one of the repository's."""
    directory = read_environment.environment_of(python, repository)
    if directory is None:
        return probe(python)
    below = probe(read_environment.base(directory, python, repository))
    return read_environment.read(directory, python, below)


def passed_over(repository: Path) -> list[str]:
    """Virtual environments of a repository that `find` takes no notice of, as they are broken; a line about each.

    Args:
        repository: directory of the repository
    """
    said = []
    for name in (".venv", "venv"):
        directory = repository / name
        python = _of_environment(directory)
        if (directory / "pyvenv.cfg").is_file():
            break
        for link in (directory, python):
            if link.is_symlink() and not link.exists():
                place = link.relative_to(repository.absolute())
                said.append(f"{place} of the repository is a link to {link.readlink()}, which is not there")
            elif link == python and os.path.lexists(python):
                said.append(f"{name} of the repository is no virtual environment: it has no pyvenv.cfg")
    return said


def is_word(value: str) -> bool:
    """Whether `env.python` is a version, or a command on the PATH: as in a shell, no file of the same name is meant."""
    return os.sep not in value and bool(_NUMBER.fullmatch(value) or shutil.which(value))


def _explicit(value: str) -> Path:
    """The path that `env.python` means."""
    path = expanded(Path(value))
    if not is_word(value) and (os.sep in value or path.is_dir()):
        return _of_environment(path.absolute()) if path.is_dir() else path.absolute()
    if _NUMBER.fullmatch(value):
        found = _installed(value)
        if found is None:
            raise UsageError(f"env.python: Python {value} is not installed; get it with: uv python install {value}")
        return found
    command = shutil.which(value)
    if command is None:
        raise UsageError(f"env.python: there is no command {value!r}")
    number = _NAMED.fullmatch(value)
    if number is not None and Path(command).parent.name == "shims":  # of pyenv, which only starts the global version
        return _installed(number[1]) or Path(command).absolute()
    return Path(command).absolute()


def _of_environment(directory: Path) -> Path:
    """The interpreter of a virtual environment, or of any prefix."""
    for name in ("python", "python3"):
        if os.path.lexists(directory / "bin" / name):
            return (directory / "bin" / name).absolute()
    return (directory / "bin" / "python").absolute()


def _pins(file: Path) -> list[str]:
    """The versions that a `.python-version` names."""
    try:
        text = (plain_files.read(file) or b"").decode("utf-8")
    except UnicodeDecodeError:
        return []
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if re.fullmatch(r"\w[\w.+@-]*", line) and line != "system"]


def _installed(pin: str) -> Path | None:
    """A Python of a version among pyenv's and uv's; installs nothing."""
    for root in filter(None, (os.environ.get("PYENV_ROOT"), str(Path.home() / ".pyenv"))):
        versions = Path(root) / "versions"
        if (versions / pin / "bin").is_dir():
            return _of_environment(versions / pin)
        # Not what comes before a release, nor somebody's virtual environment of that name.
        released = (path for path in versions.glob(f"{pin}.*") if _RELEASE.fullmatch(path.name, len(pin)))
        matching = sorted(released, key=_number)
        if matching:
            return _of_environment(matching[-1])
    uv = shutil.which("uv") if _VERSION.fullmatch(pin) else None
    if uv is None:
        return None
    environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    environment.pop("VIRTUAL_ENV", None)
    command = [uv, "python", "find", "--no-project", "--system", "--offline", pin]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, cwd="/", timeout=PROBE_TIMEOUT
        )
        found = done.stdout.decode("utf-8", "replace").strip()
        if done.returncode == 0 and found:
            return Path(found)
    return None


def installed() -> list[str]:
    """The versions among pyenv's that can run the guest; `env.python` may name them; oldest first."""
    roots = filter(None, (os.environ.get("PYENV_ROOT"), str(Path.home() / ".pyenv")))
    found = {path.name: path for root in roots for path in (Path(root) / "versions").glob("*") if _has_python(path)}
    return sorted((name for name in found if _number(found[name]) >= OLDEST), key=lambda name: _number(found[name]))


def _has_python(prefix: Path) -> bool:
    return os.path.lexists(prefix / "bin" / "python")


def _number(path: Path) -> tuple[int, ...]:
    """A directory's name as a version, for sorting."""
    return tuple(int(part) for part in re.findall(r"\d+", path.name))
