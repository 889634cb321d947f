"""Open models that a server of one's own serves: vLLM, TGI and others."""

from __future__ import annotations

import importlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from debug_gym_core import LLM, Message, Settings, hookimpl
from debug_gym_core.models.chat_client import NO_KEY, ChatLLM, ChatSettings, load_sdk
from debug_gym_core.models.chat_format import to_messages, to_tools


class HuggingFaceSettings(ChatSettings):
    """An open model that is served.

    Attributes:
        endpoint: the server's address, with the version: http://localhost:8000/v1
        chat_template_kwargs: for the model's chat template, such as {enable_thinking: false}
    """

    endpoint: str = Field(repr=False)
    chat_template_kwargs: Mapping[str, Any] = Field(default_factory=dict)


class HuggingFace(ChatLLM):
    """An open model that vLLM, TGI or another server serves; `tokenizer` counts its tokens before a call."""

    name = "huggingface"
    tags = ("vllm",)
    Settings: ClassVar[type[Settings]] = HuggingFaceSettings
    settings: HuggingFaceSettings

    def __init__(self, **settings: Any) -> None:
        """See `ServiceLLM`."""
        super().__init__(**settings)
        self._loading = threading.Lock()
        self._tokenizer: Any = None
        self._uncounted = self.settings.tokenizer is None

    def connect(self, **arguments: Any) -> Any:
        """Load the SDK and make its client; see `ChatLLM`."""
        openai = load_sdk(self.name, "openai", "openai>=2,<3")
        return openai.OpenAI(api_key=self.key() or NO_KEY, base_url=self.settings.endpoint, **arguments)

    def more_arguments(self, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What the chat template is given, and how the model chooses tools."""
        more = super().more_arguments(tools)
        if self.settings.chat_template_kwargs:
            more["chat_template_kwargs"] = dict(self.settings.chat_template_kwargs)
        return more

    def count(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> int:
        """Tokens of a prompt as the model's chat template writes it, where its tokenizer is here, else an estimate."""
        with self._loading:
            if self._tokenizer is None and not self._uncounted:
                self._load(str(self.settings.tokenizer))
            if self._uncounted:
                return super().count(messages, tools)
            try:
                return self._templated(messages, tools)
            except Exception as error:  # a chat template is a program of the model's author, and raises what it likes
                self._estimate(f"its chat template fails ({' '.join(str(error).split())[:200]})")
                return super().count(messages, tools)

    def _load(self, name: str) -> None:
        # It would be told that there is no PyTorch, which a tokenizer does not need.
        os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
        try:
            transformers = importlib.import_module("transformers")
        except ImportError:
            self._estimate("transformers is missing: pip install 'debug-gym-llm-huggingface[tokenizer]'")
            return
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(name, local_files_only=True)
        except Exception as error:  # of a library in Rust as well, which knows no class for it
            if isinstance(error, OSError) and not Path(name).exists():  # whose text speaks of a download
                where = "on this machine, in Hugging Face's cache (none is downloaded)"
                self._estimate(f"its tokenizer {name} is not {where}")
                return
            said = " ".join(str(error).split())[:200] or type(error).__name__
            self._estimate(f"its tokenizer {name} cannot be read ({said})")

    def _estimate(self, reason: str) -> None:
        self._uncounted = True
        self.note(f"{self.title}: tokens are estimated: {reason}")

    def _templated(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> int:
        ids = self._tokenizer.apply_chat_template(
            _for_template(to_messages(messages, key=self.name, system=self.settings.system_prompt_support)),
            tools=to_tools(tools if self.settings.function_calling else ()) or None,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=False,
            **self.settings.chat_template_kwargs,
        )
        return len(ids)


def _for_template(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As servers give messages to a template: with the arguments of calls as objects."""
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return messages


@hookimpl
def debug_gym_register_llms() -> Sequence[type[LLM]]:
    """The LLM of this package."""
    return [HuggingFace]
