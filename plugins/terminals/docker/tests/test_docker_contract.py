"""The terminal `docker` keeps what every terminal promises."""

from __future__ import annotations

import os

import pytest

from debug_gym_core.testing import TerminalContract
from debug_gym_terminal_docker import DockerTerminal

pytestmark = pytest.mark.terminals

IMAGE = os.environ.get("DEBUG_GYM_TEST_IMAGE", "")


class TestDockerTerminal(TerminalContract):
    terminal = DockerTerminal
    settings = {"image": IMAGE}  # noqa: RUF012

    @classmethod
    def unusable(cls) -> str | None:
        missing = None if IMAGE else "set DEBUG_GYM_TEST_IMAGE to an image with Python; `.ci/images` makes one"
        return super().unusable() or missing
