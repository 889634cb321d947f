"""The listdir tool: what is below a directory."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import TYPE_CHECKING

from debug_gym_core import ActionError, Observation, Tool, hookimpl
from debug_gym_core.workspace.lines import shown

if TYPE_CHECKING:
    from debug_gym_core import Environment
    from debug_gym_core.workspace.listing import WorkspaceEntry

LIMIT = 500
"""Entries shown at most."""


class ListDir(Tool):
    """List the files below a directory of the repository.

    Directories end in `/`, links show where they point, `(ro)` marks what is read-only.
    """

    name = "listdir"
    examples = ({"path": "src", "depth": 2},)

    def use(self, env: Environment, path: str = ".", depth: int = 1) -> Observation:
        """List a directory.

        Args:
            env: where the tool is used
            path: the directory, relative to the repository's root
            depth: how many levels to list, at least 1
        """
        if depth < 1:
            raise ActionError(f"listdir: depth must be at least 1, not {depth}")
        root = env.workspace.resolve(path)
        found = env.workspace.list(f"{path}/", depth)
        listed = found[:LIMIT]
        above = 0 if root == "." else root.count("/") + 1
        lines = ["./" if root == "." else f"{shown(root)}/"]
        lines += ["  " * (entry.path.count("/") - above + 1) + _line(entry, env) for entry in listed]
        if len(found) > LIMIT:
            lines.append(f"[{len(found) - LIMIT} more entries; list a directory below, or with a smaller depth]")
        elif not found:
            lines.append("  (nothing)")
        data = {
            "path": root,
            "entries": [{"path": entry.path, "kind": entry.kind, "readonly": entry.readonly} for entry in listed],
            "left_out": len(found) - len(listed),
        }
        return Observation(self.name, "\n".join(lines), data)


def _line(entry: WorkspaceEntry, env: Environment) -> str:
    """One entry, without its directory; nothing is said of what is ignored, where a link leads there neither."""
    text = shown(entry.path.rpartition("/")[2])
    if entry.kind == "directory":
        text += "/"
    elif entry.kind == "link":
        target = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), entry.target or ""))
        names = () if target.startswith(("/", "../")) else (target, f"{target}/")
        is_ignored = any(map(env.workspace.is_ignored, names))
        text += " -> (ignored)" if is_ignored else f" -> {shown(entry.target or '')}"
    return f"{text} (ro)" if entry.readonly else text


@hookimpl
def debug_gym_register_tools() -> Sequence[type[Tool]]:
    """Register the tool."""
    return [ListDir]
