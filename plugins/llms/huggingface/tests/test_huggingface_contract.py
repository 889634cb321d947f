"""The backend `huggingface` keeps what every backend promises, and what those do that share its client."""

from __future__ import annotations

from debug_gym_core.testing.chat_contract import ChatContract
from debug_gym_llm_huggingface import HuggingFace


class TestHuggingFace(ChatContract):
    llm = HuggingFace
    repeats = {  # noqa: RUF012
        "services": [r"^test_(?!text|the_request|parallel_calls|what_is_wrong_for_good|connections_that_are_cut).*\["]
    }
    settings = {"model": "served", "endpoint": "http://127.0.0.1:9/v1"}  # noqa: RUF012
    ways = ("chat", "chat-stream")
