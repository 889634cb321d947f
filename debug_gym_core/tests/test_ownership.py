"""Who owns what is left behind."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

from debug_gym_core.sandbox.ownership import gone, owner, started


def test_a_live_process_is_not_gone() -> None:
    assert gone(owner()) is False
    assert started(os.getpid()) is not None


def test_an_ended_process_is_gone() -> None:
    code = "from debug_gym_core.sandbox.ownership import owner; print(owner())"
    name = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
    assert gone(name) is True


def test_a_reused_number_is_gone() -> None:
    place = owner().rpartition("/")[0]
    assert gone(f"{place}/1") is True


def test_another_machines_process_is_unknown() -> None:
    assert gone("11111111-2222-3333-4444-555555555555/4026531836/1/1") is None
    assert gone("") is None
    assert gone("nonsense") is None


def test_who_cannot_look_knows_nothing() -> None:
    """A process that may open no more files takes nobody's living sandbox for a leftover."""
    name = owner()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        assert gone(name) is None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
