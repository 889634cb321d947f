"""What code in an isolating sandbox tries in order to get out, do damage or deceive, and must not achieve."""

from __future__ import annotations

import pytest

from debug_gym_core.testing.escape_bounds import BoundsProbes
from debug_gym_core.testing.escape_files import FileProbes
from debug_gym_core.testing.escape_harness import HarnessProbes
from debug_gym_core.testing.escape_kernel import KernelProbes
from debug_gym_core.testing.escape_network import NetworkProbes
from debug_gym_core.testing.escape_privileges import PrivilegeProbes
from debug_gym_core.testing.escape_processes import ProcessProbes


class EscapeProbes(
    ProcessProbes, FileProbes, NetworkProbes, KernelProbes, PrivilegeProbes, BoundsProbes, HarnessProbes
):
    """Attempts to get out of a sandbox, each a test that asserts by its effect that it failed.

    For terminals with `isolates = True`, beside `TerminalContract`; skipped for others. Each attempt is made in earnest
    by Python in the sandbox, of its standard library.

    Attributes:
        terminal: the backend's class
        settings: what every instance is made with
    """

    @pytest.fixture(scope="class", autouse=True)
    @staticmethod
    def isolating(request: pytest.FixtureRequest) -> None:
        """Nothing of this is attempted where it would succeed."""
        if not request.cls.terminal.isolates:
            pytest.skip(f"terminal {request.cls.terminal.name} says that it does not isolate")
