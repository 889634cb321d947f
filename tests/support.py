"""What the end-to-end tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from debug_gym_core.plugins import default_plugins

COMMAND = Path(sys.executable).parent / "debug-gym"

EXAMPLES = int(os.environ.get("DEBUG_GYM_TEST_EXAMPLES") or 0)
"""How many times as many examples property tests try, each time others; 0: the usual ones."""


def examples(count: int) -> settings:
    """Settings of a property test with another number of examples than usual (see `property_tests`)."""
    return settings(max_examples=count * max(1, EXAMPLES), suppress_health_check=list(HealthCheck))


def property_tests() -> None:
    """Have all property tests try the same examples each time unless DEBUG_GYM_TEST_EXAMPLES is set.

    What fails then fails again, on any machine and with any other tests; a busy machine is no failure.
    """
    if hasattr(providers, "_get_local_constants"):  # else it draws no numbers from constants of the modules loaded
        none = providers.Constants()
        vars(providers)["_get_local_constants"] = lambda: none
    busy = [HealthCheck.too_slow]
    settings.register_profile(
        "here", derandomize=not EXAMPLES, deadline=None, database=None, suppress_health_check=busy
    )
    settings.load_profile("here")


def reason_not_to_use(terminal: str) -> str | None:
    """Why a terminal cannot be tested here and what to install, or None."""
    if terminal == "docker" and not os.environ.get("DEBUG_GYM_TEST_IMAGE"):
        return "set DEBUG_GYM_TEST_IMAGE to an image with pytest and pandas; `.ci/images` makes one"
    return default_plugins().get("terminals", terminal).unavailable()


def run_debug_gym(
    arguments: Sequence[object], cwd: Path, env: dict[str, str] | None = None, timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user would, output captured."""
    return subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "120", **(env or {})},
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
    )
