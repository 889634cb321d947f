"""The Python that runs the task's code: found on the host, probed once."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from debug_gym_core.sandbox.probing import ask

PREFIX_PARTS = ("bin", "lib", "lib64", "include", "pyvenv.cfg")
"""What of a prefix is Python's, where other things live there as well."""

_STANDARD = tuple(Path(path) for path in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"))
_STORES = tuple(Path(path) for path in ("/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew"))


@dataclass(frozen=True)
class Interpreter:
    """A Python installation of the host.

    Attributes:
        executable: absolute path as it must be called (a virtual environment's link is not resolved)
        prefix: `sys.prefix`
        base_prefix: `sys.base_prefix`
        version: major, minor, micro
        magic: `importlib.util.MAGIC_NUMBER`, hexadecimal
        packages: versions of the installed distributions by normalised name
        editable: directories and files that its import system adds for editable installs
        passes: paths other than the prefixes that it is reached through, as `pyvenv.cfg` and symbolic links name them
        libraries: directories of shared libraries that it loads from elsewhere than its prefixes and the system
        site: directories that its distributions are installed in
        programs: directories of programs of its packages, beside the executable's own
    """

    executable: Path
    prefix: Path
    base_prefix: Path
    version: tuple[int, int, int]
    magic: str
    packages: dict[str, str]
    editable: tuple[Path, ...] = ()
    passes: tuple[Path, ...] = ()
    libraries: tuple[Path, ...] = ()
    site: tuple[Path, ...] = ()
    programs: tuple[Path, ...] = ()

    @property
    def path(self) -> str:
        """What `PATH` begins with: its own directory, and those of its packages' programs."""
        return os.pathsep.join(dict.fromkeys(map(str, (self.executable.parent, *self.programs))))

    @property
    def exposed(self) -> tuple[Path, ...]:
        """Directories, files and symbolic links of the host that must be visible for the interpreter to run.

        No path lies below a directory among them; what `/usr` and the links into it (`/bin`, `/lib`...) give is left
        out. A symbolic link among them stands for itself: make the same link there, what it points to is there too.
        `editable` is not among them.
        """
        links: set[Path] = set()
        places: set[Path] = set()
        for path in (self.prefix, self.base_prefix, *self.libraries):
            through, real = trace(path)
            links.update(through)
            places.update(_parts(real))
        for path in (self.executable, *self.passes):
            through, real = trace(path)
            links.update(through)
            if real.is_file():
                places.add(real)
        places = {place for place in places if not _within(place, _STANDARD)}
        top = {place for place in places if not _within(place, places - {place})}
        return tuple(sorted(top | {link for link in links if not _within(link, (*_STANDARD, *top))}))


def trace(path: Path, known: dict[str, str | None] | None = None) -> tuple[tuple[Path, ...], Path]:
    """Follow a path through its symbolic links.

    Args:
        path: absolute; need not exist
        known: where links lead, None of what is none, as it was seen before: for paths that are followed together

    Returns:
        the links that it passes through, each at a place that is free of links, and the place that it leads to

    Raises:
        OSError: the links form a circle
    """
    known = {} if known is None else known
    links: list[str] = []
    here = ""  # as text, since dozens of paths are followed for each sandbox
    ahead = list(reversed(path.parts[1:]))
    while ahead:
        part = ahead.pop()
        if part == "..":
            here = here.rpartition("/")[0]
            continue
        step = f"{here}/{part}"
        if step not in known:
            known[step] = _target(step)
        target = known[step]
        if target is None:
            here = step
            continue
        links.append(step)
        if len(links) > 40:
            raise OSError(f"{path}: too many symbolic links")
        if target.startswith("/"):
            here = ""
        ahead.extend(part for part in reversed(target.split("/")) if part not in ("", "."))
    return tuple(map(Path, dict.fromkeys(links))), Path(here or "/")


def _target(path: str) -> str | None:
    """Where a symbolic link leads to; None: it is none, or is not there."""
    try:
        return os.readlink(path)  # noqa: PTH115 (text)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
            raise
    except ValueError:  # a name with a NUL
        pass
    return None


def _within(path: Path, places: Iterable[Path]) -> bool:
    """Whether a path is, or lies below, one of some places."""
    return any(path.is_relative_to(place) for place in places)


def _parts(prefix: Path) -> list[Path]:
    """What a prefix needs to be shown of: itself, or its Python parts when other things live there as well."""
    for store in _STORES:
        if prefix.is_relative_to(store):
            return [store]
    home = Path.home()
    if prefix == Path(prefix.anchor):
        return []
    if home.is_relative_to(prefix) or prefix in (home / ".local", Path("/opt"), Path("/var"), Path("/srv")):
        return [prefix / part for part in PREFIX_PARTS if (prefix / part).exists()]
    return [prefix]


_probed: dict[Path, tuple[object, Interpreter]] = {}
_probing = threading.Lock()


def probe(executable: str | os.PathLike[str]) -> Interpreter:
    """Ask a Python what it is; runs it once a process and version of the file and its installed packages.

    It runs without the host's environment, without the user's own site-packages and without the current directory, as
    it will run in a sandbox.

    Args:
        executable: path of the interpreter

    Returns:
        what it said

    Raises:
        UsageError: there is no such file, or it is no Python
        RequirementError: it is older than 3.6, or does not start
    """
    path = Path(executable).absolute()
    if ".." in path.parts:  # in a sandbox the directories that it goes through may not be there
        path = path.parent.resolve() / path.name
    with _probing:
        known = _probed.get(path)
        if known is not None and known[0] == _state(path, known[1].site):
            return known[1]
        interpreter = _interpreter(path, ask(path))
        _probed[path] = (_state(path, interpreter.site), interpreter)
        return interpreter


def _state(path: Path, site: Sequence[Path]) -> object:
    """What changes when an interpreter, or what is installed for it, changes."""
    times = []
    for place in (path, *site):
        try:
            times.append(place.stat().st_mtime_ns)
        except OSError:
            times.append(-1)
    return times


def _interpreter(path: Path, facts: Mapping[str, Any]) -> Interpreter:
    """Make an `Interpreter` of the probe's answer."""

    def paths(key: str) -> list[Path]:
        value = facts[key]
        return [Path(entry) for entry in (value if isinstance(value, list) else [value]) if entry]

    executable = path if _is_program(path) else paths("executable")[0]
    prefix, base_prefix = paths("prefix")[0], paths("base_prefix")[0]
    major, minor, micro = facts["version"]
    real = [trace(place)[1] for place in (prefix, base_prefix)]
    libraries = [place for place in paths("libraries") if not _within(trace(place)[1], (*_STANDARD, *real))]
    return Interpreter(
        executable=executable,
        prefix=prefix,
        base_prefix=base_prefix,
        version=(major, minor, micro),
        magic=facts["magic"],
        packages={canonicalize_name(name): number for name, number in sorted(facts["packages"].items())},
        editable=tuple(paths("editable")),
        passes=tuple(dict.fromkeys(paths("home") + paths("base_executable"))),
        libraries=tuple(dict.fromkeys(libraries + paths("exec_prefixes"))),
        site=tuple(dict.fromkeys(paths("site"))),
    )


def _is_program(path: Path) -> bool:
    """Whether a file is a program itself; else it is a script, such as a shim, that starts one."""
    with path.open("rb") as file:
        return file.read(2) != b"#!"
