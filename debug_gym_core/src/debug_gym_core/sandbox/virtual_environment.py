"""A virtual environment over an interpreter of the host, for what setup commands install.

It sees the packages of the interpreter that it was made for, also when that is a virtual environment itself. What is in
it was written by commands that may be hostile: the host never runs a program from it, and follows no link in it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from debug_gym_core.errors import RequirementError
from debug_gym_core.sandbox.interpreter import Interpreter
from debug_gym_core.sandbox.read_environment import distributions

PARENT = "_debug_gym_parent.pth"
"""The file that adds the packages of the interpreter below."""


def create(directory: Path, parent: Interpreter) -> Interpreter:
    """Make an environment.

    Args:
        directory: where; not there yet, at the path that it will have in sandboxes too
        parent: the interpreter that it is of, whose packages it sees

    Returns:
        its interpreter, to be shown in sandboxes in place of the parent

    Raises:
        OSError: it cannot be written
    """
    _site(directory, parent).mkdir(parents=True)
    (directory / "bin").mkdir()
    _write_own(directory, parent)
    _take_over(directory)
    return of(directory, parent)


def of(directory: Path, parent: Interpreter) -> Interpreter:
    """The interpreter of an environment, as it was when it was made; see `create`."""
    return Interpreter(
        executable=directory / "bin" / "python",
        prefix=directory,
        base_prefix=parent.base_prefix,
        version=parent.version,
        magic=parent.magic,
        packages=parent.packages,
        editable=parent.editable,
        passes=(*parent.passes, parent.executable),
        libraries=(*parent.libraries, parent.prefix),
        site=(_site(directory, parent), *parent.site),
        programs=(parent.executable.parent, *parent.programs),
    )


def finish(directory: Path, parent: Interpreter) -> None:
    """Take over an environment that commands were let into: nothing may run in it any more.

    What makes it that interpreter's environment is written anew, whatever they did to it; everything becomes this
    user's, readable by all, writable by nobody else.

    Args:
        directory: as for `create`
        parent: likewise

    Raises:
        RequirementError: the commands replaced a directory of it
        OSError: it cannot be written
    """
    for place in (directory, directory / "bin", *_above(_site(directory, parent), directory)):
        if not stat.S_ISDIR(_mode(place)):
            name = place.relative_to(directory)
            raise RequirementError(f"terminal.setup: the commands replaced the environment's directory {name}")
    _take_over(directory)
    _write_own(directory, parent)


def with_packages(interpreter: Interpreter) -> Interpreter:
    """An interpreter with the distributions that are installed now in its own environment.

    Args:
        interpreter: as `create` gave it
    """
    return dataclasses.replace(interpreter, packages={**interpreter.packages, **distributions(interpreter.site[0])})


def variables(interpreter: Interpreter) -> dict[str, str]:
    """Environment variables of commands that install something into an environment."""
    return {"VIRTUAL_ENV": str(interpreter.prefix)}


def size(directory: Path) -> int:
    """Bytes of the files in a directory."""
    return sum(entry.stat(follow_symlinks=False).st_size for entry in _entries(directory))


def _site(directory: Path, parent: Interpreter) -> Path:
    return directory / "lib" / f"python{parent.version[0]}.{parent.version[1]}" / "site-packages"


def _above(place: Path, top: Path) -> list[Path]:
    """A path and the directories above it, outermost first, without `top`."""
    return [place, *(one for one in place.parents if one.is_relative_to(top) and one != top)][::-1]


def _write_own(directory: Path, parent: Interpreter) -> None:
    """Write what makes a directory an environment of an interpreter, in place of whatever is there."""
    program, home = _base(parent)
    programs = directory / "bin"
    major, minor, _ = parent.version
    _link(programs / "python", str(program))
    for name in ("python3", f"python{major}.{minor}"):
        _link(programs / name, "python")
    _link(directory / "lib64", "lib")
    for name in ("pip", "pip3"):
        if not os.path.lexists(programs / name):  # the commands may have installed one
            _write(programs / name, f'#!/bin/sh\nexec "{programs}/python" -m pip "$@"\n', 0o755)
    version = ".".join(map(str, parent.version))
    _write(
        directory / "pyvenv.cfg", f"home = {home}\ninclude-system-site-packages = false\nversion = {version}\n", 0o644
    )
    adding = "".join(f"import site; site.addsitedir({str(place)!r})\n" for place in parent.site)
    _write(_site(directory, parent) / PARENT, adding, 0o644)


def _base(parent: Interpreter) -> tuple[Path, Path]:
    """The program that an environment's `python` leads to, and the directory that its `pyvenv.cfg` names."""
    program = parent.executable
    while program.is_symlink() and program.is_relative_to(parent.prefix) and parent.prefix != parent.base_prefix:
        program = Path(os.path.normpath(program.parent / program.readlink()))
    if parent.prefix == parent.base_prefix:
        return program, program.parent
    with contextlib.suppress(OSError):
        for line in (parent.prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("=")
            if key.strip().lower() == "home":
                return program, Path(value.strip())
    return program, program.parent


def _link(path: Path, target: str) -> None:
    _clear(path)
    path.symlink_to(target)


def _write(path: Path, text: str, mode: int) -> None:
    _clear(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        os.fchmod(descriptor, mode)


def _clear(path: Path) -> None:
    if stat.S_ISDIR(_mode(path)):
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _take_over(directory: Path) -> None:
    """Make everything this user's, without set-user-ID bits; what is neither file, directory nor link goes."""
    me, group = os.geteuid(), os.getegid()
    os.chown(directory, me, group)
    directory.chmod(0o755)
    for entry in _entries(directory):
        about = entry.stat(follow_symlinks=False)
        if (about.st_uid, about.st_gid) != (me, group):
            os.chown(entry.path, me, group, follow_symlinks=False)
        if stat.S_ISDIR(about.st_mode):
            os.chmod(entry.path, 0o755)  # noqa: PTH101 (an entry)
        elif stat.S_ISREG(about.st_mode):
            os.chmod(entry.path, 0o755 if about.st_mode & 0o111 else 0o644)  # noqa: PTH101
        elif not stat.S_ISLNK(about.st_mode):
            os.unlink(entry.path)  # noqa: PTH108


def _entries(directory: Path | str) -> Iterator[os.DirEntry[str]]:
    """Everything below a directory, each directory before what is in it; links are not followed."""
    waiting = [os.fspath(directory)]
    while waiting:  # without recursion: directories may be as deep as whoever made them liked
        with os.scandir(waiting.pop()) as found:
            entries = list(found)
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0
