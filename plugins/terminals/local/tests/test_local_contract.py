"""The terminal `local` keeps what every terminal promises."""

from __future__ import annotations

import pytest

from debug_gym_core.testing import TerminalContract
from debug_gym_terminal_local import LocalTerminal

pytestmark = pytest.mark.terminals


class TestLocalTerminal(TerminalContract):
    terminal = LocalTerminal
