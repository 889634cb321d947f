"""How the debuggee gets into the sandbox; see `debug_gym_core.debugging.boot`."""

from __future__ import annotations

from debug_gym_core.debugging import boot
from debug_gym_core.debugging.boot import ARGUMENTS, BOOT
from debug_gym_core.sandbox.warm import Warm

__all__ = ["ARGUMENTS", "BOOT", "DEBUGGEE", "blob", "warm_start"]

DEBUGGEE = f"{__package__}.debuggee"


def warm_start() -> Warm:
    """How a session is started warm."""
    return boot.warm_start(DEBUGGEE)


def blob() -> bytes:
    """The debuggee's code."""
    return boot.blob(DEBUGGEE)
