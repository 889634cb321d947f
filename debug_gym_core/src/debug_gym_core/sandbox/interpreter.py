"""The Python that runs the task's code: found on the host, probed once."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from debug_gym_core.errors import RequirementError, UsageError

OLDEST = (3, 6)
"""The oldest Python that can run the guest."""

PREFIX_PARTS = ("bin", "lib", "lib64", "include", "pyvenv.cfg")
"""What of a prefix is Python's, where other things live there as well."""

_PROBE_TIMEOUT = 30.0
_MARK = "debug-gym-interpreter:"
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


def trace(path: Path) -> tuple[tuple[Path, ...], Path]:
    """Follow a path through its symbolic links.

    Args:
        path: absolute; need not exist

    Returns:
        the links that it passes through, each at a place that is free of links, and the place that it leads to

    Raises:
        OSError: the links form a circle
    """
    links: list[Path] = []
    here = Path(path.anchor)
    ahead = list(reversed(path.parts[1:]))
    while ahead:
        part = ahead.pop()
        if part == "..":
            here = here.parent
            continue
        step = here / part
        if not step.is_symlink():
            here = step
            continue
        links.append(step)
        if len(links) > 40:
            raise OSError(f"{path}: too many symbolic links")
        target = step.readlink()
        if target.is_absolute():
            here = Path(target.anchor)
            ahead.extend(reversed(target.parts[1:]))
        else:
            ahead.extend(reversed(target.parts))
    return tuple(dict.fromkeys(links)), here


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


# Runs in the interpreter that is probed, which may be any version: no syntax that Python 2 does not know.
_PROBE = r"""
import sys
del sys.path[0]
if sys.version_info[:2] < (3, 6):
    print("@MARK@[{0}, {1}]".format(*sys.version_info))
    sys.exit(0)
import ast, glob, importlib.util, json, os

def shared():
    for name in ("ssl", "ctypes", "sqlite3", "lzma", "bz2", "zlib", "readline", "curses", "uuid", "decimal"):
        try:
            __import__(name)
        except ImportError:
            pass
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.rstrip("\n").partition("/")[2] for line in maps}
    except OSError:
        return []
    return sorted({"/" + os.path.dirname(path) for path in paths if ".so" in os.path.basename(path)})

def distributions(directories):
    found = {}
    for directory in directories:
        try:
            names = sorted(os.listdir(directory))
        except OSError:
            continue
        for name in names:
            stem, suffix = os.path.splitext(name)
            if suffix == ".dist-info":
                project, _, version = stem.rpartition("-")
            elif suffix in (".egg-info", ".egg-link"):
                project, _, version = stem.partition("-")
                version = version.split("-")[0]
            else:
                continue
            if project:
                found.setdefault(project, version)
    return found

def editable(directory):
    for pth in sorted(glob.glob(os.path.join(glob.escape(directory), "*.pth"))):
        try:
            with open(pth, encoding="utf-8", errors="replace") as lines:
                lines = [line.strip() for line in lines]
        except OSError:
            continue
        for line in lines:
            if line.startswith(("import ", "import\t")):
                finder = os.path.join(directory, line[7:].split(";")[0].strip() + ".py")
                try:
                    with open(finder, encoding="utf-8") as source:
                        tree = ast.parse(source.read())
                except (OSError, SyntaxError, ValueError):
                    continue
                for node in ast.walk(tree):
                    value = getattr(node, "value", getattr(node, "s", None))
                    if isinstance(value, str) and os.path.isabs(value) and os.path.exists(value):
                        yield os.path.normpath(value)
            elif line and not line.startswith("#"):
                yield os.path.normpath(os.path.join(directory, line))

site = [entry for entry in sys.path if os.path.basename(entry) in ("site-packages", "dist-packages")]
shared_libraries = shared()
added = sorted({path for directory in site for path in editable(directory)})
outside = [path for path in added if os.path.exists(path) and path not in site and path not in (sys.prefix, os.sep)]
home = None
try:
    with open(os.path.join(sys.prefix, "pyvenv.cfg"), encoding="utf-8") as config:
        for line in config:
            key, _, value = line.partition("=")
            if key.strip().lower() == "home":
                home = value.strip()
except OSError:
    pass
print("@MARK@" + json.dumps({
    "executable": sys.executable,
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "exec_prefixes": sorted({sys.exec_prefix, sys.base_exec_prefix} - {sys.prefix, sys.base_prefix}),
    "base_executable": getattr(sys, "_base_executable", None),
    "home": home,
    "version": list(sys.version_info[:3]),
    "magic": importlib.util.MAGIC_NUMBER.hex(),
    "packages": distributions(site),
    "editable": outside,
    "libraries": shared_libraries,
    "site": site,
}))
""".replace("@MARK@", _MARK)

_probed: dict[Path, tuple[object, Interpreter, tuple[Path, ...]]] = {}
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
        if known is not None and known[0] == _state(path, known[2]):
            return known[1]
        interpreter, site = _ask(path)
        _probed[path] = (_state(path, site), interpreter, site)
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


def _ask(path: Path) -> tuple[Interpreter, tuple[Path, ...]]:
    """Run the probe in an interpreter."""
    if not path.exists():
        if path.is_symlink():
            raise RequirementError(f"the interpreter {path} is a link to {path.readlink()}, which is not there")
        raise UsageError(f"there is no interpreter {path}")
    if path.is_dir() or not os.access(path, os.X_OK):
        raise UsageError(f"{path} is not an executable file")
    environment = {name: os.environ[name] for name in ("HOME", "PYENV_VERSION") if name in os.environ}
    environment.update(PATH=os.defpath, LC_ALL="C.UTF-8")
    try:
        done = subprocess.run(
            [path, "-E", "-s", "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            cwd="/",
            timeout=_PROBE_TIMEOUT,
        )
    except subprocess.TimeoutExpired as error:
        raise RequirementError(f"the interpreter {path} did not answer within {_PROBE_TIMEOUT:.0f} s") from error
    except OSError as error:
        raise RequirementError(f"the interpreter {path} does not start: {error.strerror or error}") from error
    answer = done.stdout.decode("utf-8", "replace").rpartition(_MARK)[2] if _MARK.encode() in done.stdout else ""
    if not answer:
        words = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        if done.returncode and words:
            raise RequirementError(f"the interpreter {path} does not start: {words[-1].strip()[:200]}")
        raise UsageError(f"{path} is no Python")
    try:
        facts = json.loads(answer)
    except ValueError as error:
        raise UsageError(f"{path} is no Python") from error
    if isinstance(facts, list):
        raise RequirementError(
            f"the interpreter {path} is Python {facts[0]}.{facts[1]}; at least {OLDEST[0]}.{OLDEST[1]} is needed"
        )
    return _interpreter(path, facts), tuple(Path(entry) for entry in facts["site"])


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


def find(repository: Path, explicit: str | None = None) -> Interpreter:
    """Find the Python for a repository.

    Looked for in this order: what was asked for; the repository's virtual environment (`.venv`, `venv`);
    `$VIRTUAL_ENV`; the version that the repository's `.python-version` pins, among pyenv's and uv's; the one that
    runs this program.

    Args:
        repository: directory of the repository
        explicit: `env.python`: a path, a directory of a virtual environment, a command, or a version such as `3.11`

    Returns:
        the interpreter, probed

    Raises:
        UsageError: what was asked for does not exist or is no Python
        RequirementError: what was found is too old or does not start, or the pinned version is not installed
    """
    if explicit is not None:
        return probe(_explicit(explicit))
    for name in (".venv", "venv"):
        if (repository / name / "pyvenv.cfg").is_file():
            return probe(_of_environment(repository / name))
    active = os.environ.get("VIRTUAL_ENV")
    if active and os.path.lexists(_of_environment(Path(active))):
        return probe(_of_environment(Path(active)))
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


def _explicit(value: str) -> Path:
    """The path that `env.python` means."""
    path = Path(value).expanduser()
    if path.is_dir():
        return _of_environment(path.absolute())
    if os.sep in value:
        return path.absolute()
    if re.fullmatch(r"\d+(\.\d+){0,2}", value):
        found = _installed(value)
        if found is None:
            raise UsageError(f"env.python: Python {value} is not installed; get it with: uv python install {value}")
        return found
    command = shutil.which(value)
    if command is None:
        raise UsageError(f"env.python: there is no command {value!r}")
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
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if re.fullmatch(r"[\w.+@-]+", line) and line != "system"]


def _installed(pin: str) -> Path | None:
    """A Python of a version among pyenv's and uv's; installs nothing."""
    for root in filter(None, (os.environ.get("PYENV_ROOT"), str(Path.home() / ".pyenv"))):
        versions = Path(root) / "versions"
        if (versions / pin / "bin").is_dir():
            return _of_environment(versions / pin)
        matching = sorted(versions.glob(f"{pin}.*"), key=_number)
        if matching:
            return _of_environment(matching[-1])
    uv = shutil.which("uv")
    if uv is None:
        return None
    environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    environment.pop("VIRTUAL_ENV", None)
    command = [uv, "python", "find", "--no-project", "--system", "--offline", pin]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, cwd="/", timeout=_PROBE_TIMEOUT
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


def missing(interpreter: Interpreter, requires: Iterable[str]) -> list[str]:
    """Which of some distributions an interpreter does not have.

    Args:
        interpreter: the interpreter
        requires: names of distributions, or requirements such as `pytest>=7`

    Returns:
        those that are not installed, or in a version that does not do, as they were asked for

    Raises:
        UsageError: a requirement cannot be read
    """
    lacking = []
    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise UsageError(f"{text!r} is no requirement: {error}".splitlines()[0]) from error
        version = interpreter.packages.get(canonicalize_name(requirement.name))
        if version is None or (version and not requirement.specifier.contains(version, prereleases=True)):
            lacking.append(text)
    return lacking


def require(interpreter: Interpreter, requires: Iterable[str]) -> None:
    """Insist that an interpreter has some distributions.

    Args:
        interpreter: the interpreter
        requires: as for `missing`

    Raises:
        RequirementError: some are missing; says how to get them
    """
    lacking = missing(interpreter, requires)
    if lacking:
        wanted = " ".join(f"'{text}'" if re.search(r"[<>!=~;\[ ]", text) else text for text in lacking)
        them = "it" if len(lacking) == 1 else "them"
        raise RequirementError(
            f"the interpreter {interpreter.executable} has no {', '.join(lacking)}; get {them} with: "
            f"{interpreter.executable} -m pip install {wanted} (or uv pip install -p {interpreter.executable} {wanted})"
        )


def refuse(interpreter: Interpreter, conflicts: Iterable[str]) -> None:
    """Insist that an interpreter does not have some distributions, which may hold the fix.

    Args:
        interpreter: the interpreter
        conflicts: names of distributions

    Raises:
        RequirementError: one is there; says what to do
    """
    for name in conflicts:
        if canonicalize_name(name) in interpreter.packages:
            raise RequirementError(
                f"the interpreter {interpreter.executable} has {name} installed, a release of what is worked on, which"
                f" may hold the fix; name another one (env.python), or run: {interpreter.executable} -m pip uninstall"
                f" {name}"
            )
