"""The backend `scripted` keeps what every backend promises."""

from __future__ import annotations

from debug_gym_core.testing import LLMContract
from debug_gym_llm_scripted import Scripted


class TestScripted(LLMContract):
    llm = Scripted
    settings = {"actions": [{"name": "weather", "arguments": {"place": "Zürich"}}]}  # noqa: RUF012
    calls_tools = True
