"""What the plugin registers."""

from __future__ import annotations

from collections.abc import Sequence

from debug_gym_core.components.markers import hookimpl
from debug_gym_core.sandbox.terminal import Terminal
from debug_gym_terminal_bubblewrap.terminal import BubblewrapTerminal


@hookimpl
def debug_gym_register_terminals() -> Sequence[type[Terminal]]:
    """The bubblewrap terminal."""
    return [BubblewrapTerminal]
