"""The human LLM keeps what every backend promises; the person here is tired and only leaves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from debug_gym_core import LLM
from debug_gym_core.testing import LLMContract
from debug_gym_llm_human import Human


class TestHuman(LLMContract):
    llm = Human

    @pytest.fixture
    def ready(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LLM]:
        typed = tmp_path / "typed"
        typed.write_text("quit\n" * 5)
        with typed.open() as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            yield Human()
