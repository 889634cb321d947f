"""Registers the local terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from debug_gym_core.components.markers import hookimpl

if TYPE_CHECKING:
    from debug_gym_core.sandbox.terminal import Terminal


@hookimpl
def debug_gym_register_terminals() -> Sequence[type[Terminal]]:
    """The local terminal."""
    from debug_gym_terminal_local.terminal import LocalTerminal

    return [LocalTerminal]
