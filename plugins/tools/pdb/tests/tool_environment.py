"""What the tool is tried with alone: as much of an environment as it asks for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from debug_gym_core import ActionError, ToolCall
from debug_gym_core.debugging.breakpoints import Breakpoints
from debug_gym_core.sandbox.interruption import Interruption
from debug_gym_core.sandbox.session import Session
from debug_gym_core.workspace.edits import edits_between
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
    interruption: Interruption

    def __init__(self, session: Session) -> None:
        super().__init__(
            session=session,
            breakpoints=Breakpoints(),
            workspace=Workspace(),
            debug_entrypoint="python app.py",
            interruption=Interruption(),
        )

    def edit(self, tool: Pdb, path: str, new: str) -> Any:
        tool.on_step(self, ToolCall("pdb", {}))  # that the debugger was used is over
        before = self.session.read(path)
        self.session.write(path, new.encode())
        return tool.on_file_changed(self, path, edits_between(before, new.encode()))
