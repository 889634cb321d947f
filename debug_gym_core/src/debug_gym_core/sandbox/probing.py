"""What a Python says of itself."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, cast

from debug_gym_core.errors import RequirementError, UsageError

OLDEST = (3, 6)
"""The oldest Python that can run the guest."""

PROBE_TIMEOUT = 30.0
"""Seconds that a Python has to answer."""

_MARK = "debug-gym-interpreter:"

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
                    value = node.value if hasattr(node, "value") else getattr(node, "s", None)
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


def ask(path: Path) -> dict[str, Any]:
    """Run the probe in an interpreter.

    It runs without the host's environment, without the user's own site-packages and without the current directory, as
    it will run in a sandbox.

    Args:
        path: of the interpreter, absolute

    Returns:
        what it said

    Raises:
        UsageError: there is no such file, or it is no Python
        RequirementError: it is older than 3.6, or does not start
    """
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
            timeout=PROBE_TIMEOUT,
        )
    except subprocess.TimeoutExpired as error:
        raise RequirementError(f"the interpreter {path} did not answer within {PROBE_TIMEOUT:.0f} s") from error
    except OSError as error:
        raise RequirementError(f"the interpreter {path} does not start: {error.strerror or error}") from error
    answer = done.stdout.decode("utf-8", "replace").rpartition(_MARK)[2] if _MARK.encode() in done.stdout else ""
    if not answer:
        words = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        if done.returncode and words:
            cause = words[-1] if words[0].startswith("Traceback") else words[0]  # notes may come after it
            raise RequirementError(f"the interpreter {path} does not start: {cause.strip()[:200]}")
        raise UsageError(f"{path} is no Python")
    try:
        facts = json.loads(answer)
    except ValueError as error:
        raise UsageError(f"{path} is no Python") from error
    if isinstance(facts, list):
        raise RequirementError(
            f"the interpreter {path} is Python {facts[0]}.{facts[1]}; at least {OLDEST[0]}.{OLDEST[1]} is needed"
        )
    return cast("dict[str, Any]", facts)
