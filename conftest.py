"""Settings of all tests.

The packages are imported here, before pytest meets the directories of the same names at the root: it would take those
for namespace packages (`--import-mode=importlib` names test modules after their directories).
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from pathlib import Path

import guest_coverage
import pytest
import support

import debug_gym_agents
import debug_gym_benchmarks
import debug_gym_core
from debug_gym_core.plugins import default_plugins

__all__ = ["debug_gym_agents", "debug_gym_benchmarks", "debug_gym_core"]

# What is collected stays, and is far more than what tests make: whoever looks through it for garbage finds none.
gc.disable()

# Whatever the environment says: the tests start thousands of interpreters, which would compile their imports anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# They are loaded once a process, and tests limit which of them are.
default_plugins()

support.property_tests()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the tests in the background has them ignore it, and what they start inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Look for garbage again, but only in what comes now."""
    gc.freeze()
    gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of a contract that its class says are of the full suite.

    `repeats` has, by sections, expressions of which one is found in a test's name.
    """
    repeats = getattr(getattr(item, "cls", None), "repeats", {})
    for section, expressions in repeats.items():
        if any(re.search(one, item.name) for one in expressions):
            item.add_marker(getattr(pytest.mark, section))


if guest_coverage.VARIABLE in os.environ:
    guest_coverage.install(Path(os.environ[guest_coverage.VARIABLE]).resolve())
