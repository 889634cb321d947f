"""Settings of all tests.

The packages are imported here, before pytest meets the directories of the same names at the root: it would take those
for namespace packages (`--import-mode=importlib` names test modules after their directories).
"""

from __future__ import annotations

import debug_gym_agents
import debug_gym_benchmarks
import debug_gym_core

__all__ = ["debug_gym_agents", "debug_gym_benchmarks", "debug_gym_core"]
