"""What a terminal promises."""

from __future__ import annotations

from typing import ClassVar

from debug_gym_core.testing.component import ComponentContract
from debug_gym_core.testing.terminal_backend import BackendTests
from debug_gym_core.testing.terminal_commands import CommandTests
from debug_gym_core.testing.terminal_files import FileTests
from debug_gym_core.testing.terminal_interactive import InteractiveTests
from debug_gym_core.testing.terminal_isolation import IsolationTests
from debug_gym_core.testing.terminal_losses import LossTests
from debug_gym_core.testing.terminal_programs import ProgramTests


# pytest begins with the last of the bases: what all others build on comes there.
class TerminalContract(
    IsolationTests, LossTests, FileTests, InteractiveTests, ProgramTests, CommandTests, BackendTests, ComponentContract
):
    """The tests that every sandbox backend must pass, in real sandboxes.

    They are skipped where the backend says that it is not available. Those about isolation are skipped for a backend
    that says that it does not isolate; one that does is also tried by `EscapeProbes`.

    Attributes:
        terminal: the backend's class
        outlives_guest: see `LossTests`
    """

    _kind: ClassVar[str] = "terminals"
