"""What the plugin registers; the Docker SDK is imported when it is used."""

from __future__ import annotations

from collections.abc import Sequence

from debug_gym_core.components.markers import hookimpl
from debug_gym_core.sandbox.terminal import Terminal
from debug_gym_terminal_docker.terminal import DockerTerminal


@hookimpl
def debug_gym_register_terminals() -> Sequence[type[Terminal]]:
    """The docker terminal."""
    return [DockerTerminal]
