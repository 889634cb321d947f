"""Where those who were given no catalogue get the one of this environment: the top of the house leaves word here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

load: Callable[[], Any]
"""Loads it, as `debug_gym_core.plugins.default_plugins` does; `debug_gym_core` sets it, before any of its modules."""
