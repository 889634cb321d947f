"""The engine that the tests look at from outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from debug_gym_terminal_docker import DockerTerminal
from debug_gym_terminal_docker.engine import connect


@pytest.fixture
def engine() -> Iterator[Any]:
    """A connection to the engine."""
    reason = DockerTerminal.unavailable()
    if reason:
        pytest.skip(reason)
    client = connect()
    yield client
    client.close()
