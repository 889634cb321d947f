"""The backend `anthropic` keeps what every backend promises: whole, in pieces, and thinking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from debug_gym_core.testing import LLMContract
from debug_gym_core.testing.messages_server import answer, call, serve, stream, text, thinking
from debug_gym_core.testing.model_server import Reply, Request
from debug_gym_llm_anthropic import Anthropic

SUN = call("weather", {"place": "Zürich"})
RAIN = call("weather", {"place": "漢字"}, "toolu_2")


class TestAnthropic(LLMContract):
    llm = Anthropic
    settings: ClassVar[dict[str, Any]] = {"model": "claude-test", "api_key": "sk-ant-contract"}
    calls_tools = True
    counts = True

    @pytest.fixture
    def ready(self) -> Iterator[Anthropic]:
        with serve(self.reply) as server:
            yield self.llm(**self.settings, endpoint=server.url)

    def reply(self, request: Request) -> Reply:
        """Calls first, if there are tools; then text."""
        form = stream if request.body.get("stream") else answer
        if request.body.get("tools") and len(request.body["messages"]) == 1:
            thought = [thinking("Two places.", "c2ln")] if "thinking" in request.body else []
            return form(*thought, text("I look."), SUN, RAIN)
        return form(text("It is sunny. ☀"))


class TestAnthropicStreamed(TestAnthropic):
    settings: ClassVar[dict[str, Any]] = {**TestAnthropic.settings, "stream": True}


class TestAnthropicThinking(TestAnthropic):
    settings: ClassVar[dict[str, Any]] = {**TestAnthropic.settings, "thinking": 2048}
