"""Models of OpenAI, and of any service that speaks its language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from debug_gym_core import LLM, Message, RequirementError, hookimpl
from debug_gym_core.models.chat_client import NO_KEY, ChatLLM, load_sdk
from debug_gym_llm_openai.tokens import count_tokens


class OpenAI(ChatLLM):
    """A model of OpenAI, or of a service that speaks its language, such as vLLM, Ollama or OpenRouter."""

    name = "openai"
    tags = ("openai",)

    def connect(self, **arguments: Any) -> Any:
        """Load the SDK and make its client; see `ChatLLM`."""
        openai = load_sdk(self.name, "openai", "openai>=2,<3")
        settings = self.settings
        # The environment's key is for OpenAI, and not for whoever serves elsewhere.
        key = self.key("OPENAI_API_KEY") if settings.endpoint is None else self.key() or NO_KEY
        if key is None:
            raise RequirementError(
                f"{self.title}: there is no key; set api_key in llm.yaml, or the environment variable OPENAI_API_KEY"
            )
        return openai.OpenAI(api_key=key, base_url=settings.endpoint, **arguments)

    def answer_bound(self) -> str:
        """OpenAI has renamed it, most others have not followed."""
        host = urlsplit(self.settings.endpoint or "").hostname
        return "max_completion_tokens" if host is None or host.endswith(".openai.com") else "max_tokens"

    def count(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> int:
        """Tokens of a prompt, by tiktoken where it and the model's encoding are on this machine, else an estimate."""
        counted = count_tokens(self.settings.tokenizer or self.settings.model, messages, tools)
        return super().count(messages, tools) if counted is None else counted


@hookimpl
def debug_gym_register_llms() -> Sequence[type[LLM]]:
    """The LLM of this package."""
    return [OpenAI]
