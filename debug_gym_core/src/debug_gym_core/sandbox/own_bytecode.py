"""Byte code of pytest, where debug-gym's own environment has none.

uv leaves compiling to the first import, and pytest is never imported but in sandboxes, to which the environment is
read-only: there each start would compile it anew, which takes longer than all the rest of it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from debug_gym_core.sandbox.interpreter import Interpreter

_TIMEOUT = 60.0

_IMPORT = """
import importlib
import pytest
from _pytest import config
for name in config.default_plugins:
    importlib.import_module("_pytest." + name)
"""


def make(interpreter: Interpreter) -> None:
    """Have pytest compiled if a task's interpreter is the one that runs this program; another's files are not ours.

    It is imported, in a process of its own, which writes what is missing; once, since it is there from then on.

    Args:
        interpreter: what will run in sandboxes
    """
    if str(interpreter.executable) == sys.executable:
        _make()


@functools.cache
def _make() -> None:
    spec = importlib.util.find_spec("pytest")
    if spec is None or spec.origin is None or sys.dont_write_bytecode:
        return
    package = Path(spec.origin).parent
    there = package / "__pycache__" / f"__init__.{sys.implementation.cache_tag}.pyc"
    if there.exists() or not os.access(package, os.W_OK):
        return
    command = [sys.executable, "-I", "-c", _IMPORT]
    # Whatever is the matter with that pytest, the tests' own run will show it.
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT)
