"""The terminal `bubblewrap` keeps what every terminal promises."""

from __future__ import annotations

from debug_gym_core.testing import TerminalContract
from debug_gym_terminal_bubblewrap import BubblewrapTerminal


class TestBubblewrapTerminal(TerminalContract):
    terminal = BubblewrapTerminal
    repeats = {  # noqa: RUF012
        "terminals": [
            r"a_timeout_ends_the_command.*\[(has children|holds the output|starts a new session|prints|closes)",
            r"a_programs_end_by_a_signal_is_told\[(?!15)",
        ]
    }
