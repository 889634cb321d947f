"""What the tool is tried with alone: as much of an environment as it asks for, over a session in a local terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from debugged_programs import LOOP, LOOP_TEST

from debug_gym_core import ActionError, ToolCall
from debug_gym_core.debugging.breakpoints import Breakpoints
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_core.workspace.edits import edits_between
from debug_gym_terminal_local import LocalTerminal
from debug_gym_tool_pdb import Pdb


class Workspace:
    """As much of a workspace as the tool asks for."""

    def resolve(self, path: str) -> str:
        if path.startswith("secret"):
            raise ActionError(f"{path} is ignored")
        return path

    def is_ignored(self, path: str) -> bool:
        return path.startswith("secret")

    def ignored_files(self, suffix: str) -> list[str]:
        return [f"secret{suffix}"]


class Environment(SimpleNamespace):
    """As much of an environment as the tool asks for."""

    session: Session
    breakpoints: Breakpoints

    def edit(self, tool: Pdb, path: str, new: str) -> Any:
        tool.on_step(self, ToolCall("pdb", {}))  # that the debugger was used is over
        before = self.session.read(path)
        self.session.write(path, new.encode())
        return tool.on_file_changed(self, path, edits_between(before, new.encode()))


def local_session() -> Iterator[Session]:
    """A session, for the tests of a module."""
    with Session.start(LocalTerminal(), SandboxSpec(run="test")) as session:
        session.python = sys.executable
        yield session


def environment(session: Session) -> Environment:
    """An environment over it of two files alone, `app.py` and `test_app.py`."""
    for entry in list(session.walk(".", depth=1)):
        session.remove(entry.path)
    session.write("app.py", LOOP.encode())
    session.write("test_app.py", LOOP_TEST.encode())
    return Environment(
        session=session,
        breakpoints=Breakpoints(),
        workspace=Workspace(),
        debug_entrypoint="python app.py",
    )


def debugger() -> Iterator[Pdb]:
    """The tool, which is closed at the end."""
    tool = Pdb(timeout=10)
    yield tool
    tool.close()
