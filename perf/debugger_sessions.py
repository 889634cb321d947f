"""What the measurements of the debugger share: interpreters, sandboxes, programs under our debugger."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import debug_gym_core
from debug_gym_core import RepoEnv
from debug_gym_core.debugging.breakpoints import Breakpoints
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_tool_pdb.session import DebugSession

MORE_TURNS = 4
"""How many times as many turns there are where a bar seems missed."""


def version(python: str) -> tuple[int, ...]:
    """Major and minor version of an interpreter."""
    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return tuple(map(int, done.stdout.split()))


@contextlib.contextmanager
def session(terminal: object, directory: Path) -> Iterator[Session]:
    """A sandbox over the files of a directory."""
    with environment(terminal, directory, at_once(directory)) as env:
        yield env.session


def at_once(directory: Path) -> str:
    """An entrypoint that ends at once, for a sandbox in which others are debugged: a reset runs it."""
    (directory / "at_once.py").write_text("x = 1\n")
    return "python at_once.py"


@contextlib.contextmanager
def environment(terminal: object, directory: Path, entrypoint: str, **pdb: object) -> Iterator[RepoEnv]:
    """An environment of a directory."""
    python = os.environ.get("DEBUG_GYM_TEST_PYTHON", "python3") if isinstance(terminal, dict) else sys.executable
    with contextlib.closing(
        debug_gym_core.make(
            "repo", [{"pdb": pdb}], terminal, path=directory, allow_unsandboxed=True, entrypoint=entrypoint,
            debug_entrypoint=entrypoint, python=python,
        )
    ) as env:  # fmt: skip
        env.reset(seed=0)
        yield env


@contextlib.contextmanager
def debugging(sandbox: Session, entrypoint: str, *commands: str) -> Iterator[DebugSession]:
    """A program under the debugger, after some commands."""
    debugged = DebugSession(sandbox, Entrypoint.parse(entrypoint), Breakpoints())
    debugged.start()
    try:
        for command in commands:
            reply = debugged.execute(command, (), 60)
            if reply.failed or reply.end is not None:
                raise SystemExit(f"{entrypoint}: {command}: {reply}")
        yield debugged
    finally:
        debugged.close()
