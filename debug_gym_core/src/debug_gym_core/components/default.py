"""The catalogue of this environment, for who was handed none."""

from __future__ import annotations

import sys
from typing import Any


def load() -> Any:
    """Load it, by the way that the top of the house leaves in the package itself, which is there before its modules."""
    return sys.modules["debug_gym_core"].installed_plugins()
