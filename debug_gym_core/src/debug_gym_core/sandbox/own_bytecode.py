"""Byte code of pytest and of what a task requires, where debug-gym's own environment has none.

uv leaves compiling to the first import, and what only tasks use is never imported but in sandboxes, to which the
environment is read-only: there each start would compile it anew, which takes longer than all the rest of it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement

from debug_gym_core.sandbox.interpreter import Interpreter

_TIMEOUT = 60.0

_IMPORT = """
import importlib, sys
importlib.import_module(sys.argv[1])
if sys.argv[1] == "pytest":
    for name in importlib.import_module("_pytest.config").default_plugins:
        importlib.import_module("_pytest." + name)
"""


def make(interpreter: Interpreter, requires: Iterable[str]) -> None:
    """Have it compiled if a task's interpreter is the one that runs this program; another's files are not ours.

    It is imported, in a process of its own, which writes what is missing; once, since it is there from then on.

    Args:
        interpreter: what will run in sandboxes
        requires: requirements of a benchmark's, of which those count whose module has the distribution's name
    """
    if str(interpreter.executable) == sys.executable and not sys.dont_write_bytecode:
        for name in ("pytest", *(Requirement(one).name for one in requires)):
            _make(name.lower().replace("-", "_"))


@functools.cache
def _make(module: str) -> None:
    spec = importlib.util.find_spec(module) if module.isidentifier() else None
    if spec is None or spec.origin is None or spec.cached is None:
        return
    directory = Path(spec.origin).parent
    if Path(spec.cached).exists() or not os.access(directory, os.W_OK):
        return
    command = [sys.executable, "-I", "-c", _IMPORT, module]
    # Whatever is the matter with it, the tests' own run will show that.
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT)
