"""The terminal `bubblewrap` keeps what every terminal promises."""

from __future__ import annotations

from debug_gym_core.testing import TerminalContract
from debug_gym_terminal_bubblewrap import BubblewrapTerminal


class TestBubblewrapTerminal(TerminalContract):
    terminal = BubblewrapTerminal
