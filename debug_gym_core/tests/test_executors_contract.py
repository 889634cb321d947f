"""The executor that core brings keeps what every executor promises."""

from __future__ import annotations

from debug_gym_core.runs.local import LocalExecutor
from debug_gym_core.testing import ExecutorContract


class TestLocalExecutor(ExecutorContract):
    executor = LocalExecutor
