"""The local terminal: a temporary directory on this machine, without isolation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from debug_gym_terminal_local.terminal import LocalTerminal

__all__ = ["LocalTerminal"]


def __getattr__(name: str) -> Any:
    if name == "LocalTerminal":
        from debug_gym_terminal_local.terminal import LocalTerminal

        return LocalTerminal
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
