"""The backend `openai` keeps what every backend promises, and what those do that share its client."""

from __future__ import annotations

from debug_gym_core.testing.chat_contract import ChatContract
from debug_gym_llm_openai import OpenAI


class TestOpenAI(ChatContract):
    llm = OpenAI
    repeats = {"services": [r"\bchat-stream\b", r"\bresponses\b(?!-stream)"]}  # noqa: RUF012
    settings = {"model": "served"}  # noqa: RUF012
