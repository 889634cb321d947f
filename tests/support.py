"""What the end-to-end tests share."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from _pytest.mark import ParameterSet
from click.testing import CliRunner
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from debug_gym_core import plugins
from debug_gym_core.cli import main
from debug_gym_core.plugins import default_plugins

COMMAND = Path(sys.executable).parent / "debug-gym"

EXAMPLES = int(os.environ.get("DEBUG_GYM_TEST_EXAMPLES") or 0)
"""How many times as many examples property tests try, each time others; 0: the usual ones."""
GATE_EXAMPLES = 20
"""Examples that a property test tries in the gate; with `--hypothesis-profile full` it tries as many as it says."""

PYTHONS = [path for path in os.environ.get("DEBUG_GYM_TEST_PYTHONS", "").split(":") if path] or [sys.executable]
"""The interpreters that what runs in sandboxes is tried on: DEBUG_GYM_TEST_PYTHONS, separated by colons."""

ORDINARY_USER = 1234
"""One without a name, as in many containers."""


@functools.cache
def version_of(python: str) -> tuple[int, int]:
    """Major and minor version of an interpreter."""
    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([python, "-I", "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    major, minor = done.stdout.split()
    return int(major), int(minor)


@functools.cache
def has(python: str, module: str) -> bool:
    """Whether an interpreter has a module."""
    return subprocess.run([python, "-c", f"import {module}"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def interpreters(handful: bool = False) -> list[ParameterSet]:
    """A parameter for the interpreter that runs the tests, and one, marked `interpreters`, for each other of `PYTHONS`.

    Args:
        handful: the oldest and the newest of them are not marked, so that the gate takes them too
    """
    found = {version_of(path): path for path in PYTHONS} | {version_of(sys.executable): sys.executable}
    gate = {version_of(sys.executable), *((min(found), max(found)) if handful else ())}
    return [
        pytest.param(
            path,
            id="py" + ".".join(map(str, version)),
            marks=() if version in gate else pytest.mark.interpreters,
        )
        for version, path in sorted(found.items())
    ]


def repeated(section: str, *cases: Any) -> list[ParameterSet]:
    """Parameters for cases that repeat what those of the gate try, beside which they stand: `[a, *repeated("x", b)]`.

    Args:
        section: of the full suite, which tries them
        cases: as `parametrize` takes them; a tuple has a value for each argument
    """
    return [_case(one, getattr(pytest.mark, section)) for one in cases]


def handful(section: str, cases: Mapping[str, Any] | Sequence[str], *kept: str) -> list[ParameterSet]:
    """The same for cases that have names, by which the gate keeps some.

    Args:
        section: of the full suite, which tries the others
        cases: by their ids, each as `repeated` takes it; of names alone, each is the case
        kept: those of the gate
    """
    assert set(kept) <= set(cases), set(kept) - set(cases)
    named = cases if isinstance(cases, Mapping) else {one: one for one in cases}
    mark = getattr(pytest.mark, section)
    return [_case(one, *(() if name in kept else (mark,)))._replace(id=name) for name, one in named.items()]


def _case(one: Any, *marks: pytest.MarkDecorator) -> ParameterSet:
    known = one if isinstance(one, ParameterSet) else pytest.param(*(one if isinstance(one, tuple) else (one,)))
    return known._replace(marks=[*known.marks, *marks])


def said_by(python: str, package: str, code: str, *flags: str) -> Any:
    """What code prints, as JSON, that finds a package that travels under the last part of its name."""
    [directory] = importlib.import_module(package).__path__
    start = f"import json, sys\nsys.path.append({str(Path(directory).parent)!r})\n"
    done = subprocess.run([python, "-I", "-B", *flags, "-c", start + code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def terminals(*names: str) -> list[ParameterSet]:
    """A parameter for each terminal named (default: all): all but bubblewrap are marked `terminals`."""
    return [
        pytest.param(name, marks=() if name == "bubblewrap" else pytest.mark.terminals)
        for name in names or ("local", "bubblewrap", "docker")
    ]


def examples(count: int) -> settings:
    """Settings of a property test that tries `count` examples in the full suite and fewer in the gate."""
    if not EXAMPLES and settings.get_current_profile_name() == "gate":
        count = min(count, GATE_EXAMPLES)
    return settings(max_examples=count * max(1, EXAMPLES), suppress_health_check=list(HealthCheck))


def property_tests() -> None:
    """Have all property tests try the same examples each time unless DEBUG_GYM_TEST_EXAMPLES is set.

    What fails then fails again, on any machine and with any other tests; a busy machine is no failure.
    """
    if hasattr(providers, "_get_local_constants"):  # else it draws no numbers from constants of the modules loaded
        none = providers.Constants()
        vars(providers)["_get_local_constants"] = lambda: none
    busy = [HealthCheck.too_slow]
    for name, count in (("gate", GATE_EXAMPLES), ("full", 100)):
        settings.register_profile(
            name,
            max_examples=count,
            derandomize=not EXAMPLES,
            deadline=None,
            database=None,
            suppress_health_check=busy,
        )
    settings.load_profile("full" if EXAMPLES else "gate")


def python_in(terminal: object) -> str | None:
    """The interpreter for what the fixture `terminal` gives: in docker the image's that has pytest, else None."""
    return os.environ.get("DEBUG_GYM_TEST_PYTHON") if isinstance(terminal, dict) else None


def reason_not_to_use(terminal: str) -> str | None:
    """Why a terminal cannot be tested here and what to install, or None."""
    if terminal == "docker" and not os.environ.get("DEBUG_GYM_TEST_IMAGE"):
        return "set DEBUG_GYM_TEST_IMAGE to an image with pytest and pandas; `.ci/images` makes one"
    return default_plugins().get("terminals", terminal).unavailable()


def hold_for_an_ordinary_user(file: str, *options: str) -> None:
    """Run the tests of a file as a user who is not root, and expect that they pass; skips where that cannot be.

    Some must have run: where each is skipped, nothing was seen to hold.

    Args:
        file: the module of tests
        options: what else pytest is told
    """
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0:
        pytest.skip("the tests already run as an ordinary user")
    if setpriv is None:
        pytest.skip("setpriv is missing: apt-get install util-linux")
    user = [setpriv, "--reuid", str(ORDINARY_USER), "--regid", str(ORDINARY_USER), "--clear-groups"]
    # What the user's Python needs may be out of reach, and what these tests read.
    tried = f"import os, pytest, sys; os.stat(sys.executable); open({file!r}).close()"
    if subprocess.run([*user, sys.executable, "-c", tried], capture_output=True, cwd="/").returncode != 0:
        pytest.skip("an ordinary user cannot run this Python; make the virtual environment outside of root's home")
    with tempfile.TemporaryDirectory() as temporary:
        os.chown(temporary, ORDINARY_USER, ORDINARY_USER)
        done = subprocess.run(
            [*user, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, file],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=Path(__file__).parent.parent,
            env={"PATH": os.defpath, "HOME": "/nonexistent", "TMPDIR": temporary, "PYTHONDONTWRITEBYTECODE": "1"},
        )
    assert done.returncode == 0 and re.search(r"\b[1-9][0-9]* passed", done.stdout), done.stdout[-5000:]


def changed_lines(patch: bytes) -> dict[tuple[bytes, bytes], list[bytes]]:
    """The lines that a patch takes away and adds, by the two names of their file; nothing else that is said of them."""
    _, *found = re.split(rb"^--- (.*)\n\+\+\+ (.*)\n(?=@@ )", patch, flags=re.MULTILINE)
    texts = zip(found[::3], found[1::3], found[2::3], strict=True)
    return {(old, new): [one for one in text.splitlines() if one[:1] in (b"-", b"+")] for old, new, text in texts}


def published(release: str, directory: Path) -> Path:
    """The sources of a release as its authors published them, fetched from the package index into a directory."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("needs uv on the PATH: pip install uv")
    fetch = [uv, "tool", "run", "-q", "pip", "download", "-q", "--no-deps", "--no-binary", release.partition("==")[0]]
    subprocess.run([*fetch, release], cwd=directory, check=True)
    subprocess.run(["tar", "-xzf", next(directory.glob("*.tar.gz"))], cwd=directory, check=True)
    return next(path for path in directory.iterdir() if path.is_dir())


def run_debug_gym(
    arguments: Sequence[object],
    cwd: Path,
    env: dict[str, str] | None = None,
    timeout: float = 600,
    typed: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user would, output captured, `typed` in a pipe."""
    return subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "120", **(env or {})},
        text=True,
        capture_output=True,
        timeout=timeout,
        **({"stdin": subprocess.DEVNULL} if typed is None else {"input": typed}),
    )


def call_debug_gym(
    arguments: Sequence[object], cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """As `run_debug_gym`, in this process: what is no matter of a process of its own need not import everything."""
    words = list(map(str, arguments))
    with contextlib.chdir(cwd), mock.patch.object(plugins, "_complaints", set()):  # each process says its own
        runner = CliRunner(env={"COLUMNS": "120", **(env or {})})
        done = runner.invoke(main, words, prog_name="debug-gym", catch_exceptions=False)
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)
