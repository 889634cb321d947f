"""The backend `azure-openai` keeps what every backend promises, and what those do that share its client."""

from __future__ import annotations

from debug_gym_core.testing.chat_contract import ChatContract
from debug_gym_llm_azure_openai import AzureOpenAI


class TestAzureOpenAI(ChatContract):
    llm = AzureOpenAI
    repeats = {  # noqa: RUF012
        "services": [r"^test_(?!text|the_request|parallel_calls|what_is_wrong_for_good|connections_that_are_cut).*\["]
    }
    endpoint = ""
    settings = {"model": "served", "api_version": "2025-04-01-preview"}  # noqa: RUF012
    ways = ("chat", "responses-stream")
