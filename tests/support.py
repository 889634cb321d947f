"""What the end-to-end tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from debug_gym_core.plugins import default_plugins

COMMAND = Path(sys.executable).parent / "debug-gym"


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
