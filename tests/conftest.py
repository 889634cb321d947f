"""Fixtures of the end-to-end tests."""

from __future__ import annotations

import os

import pytest
from support import reason_not_to_use, terminals


@pytest.fixture(scope="session")
def sandbox() -> str:
    """Name of the terminal for tests that need an isolated one: bubblewrap."""
    reason = reason_not_to_use("bubblewrap")
    if reason:
        pytest.skip(reason)
    return "bubblewrap"


@pytest.fixture(params=terminals())
def terminal(request: pytest.FixtureRequest) -> object:
    """Each terminal, as `make` takes it."""
    reason = reason_not_to_use(request.param)
    if reason:
        pytest.skip(reason)
    return {"docker": {"image": os.environ["DEBUG_GYM_TEST_IMAGE"]}} if request.param == "docker" else request.param
