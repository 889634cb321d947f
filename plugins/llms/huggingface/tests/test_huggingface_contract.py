"""The backend `huggingface` keeps what every backend promises, and what those do that share its client."""

from __future__ import annotations

from debug_gym_core.testing.chat_contract import ChatContract
from debug_gym_llm_huggingface import HuggingFace


class TestHuggingFace(ChatContract):
    llm = HuggingFace
    settings = {"model": "served", "endpoint": "http://127.0.0.1:9/v1"}  # noqa: RUF012
    ways = ("chat", "chat-stream")
