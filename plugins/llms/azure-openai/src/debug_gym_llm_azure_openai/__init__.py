"""OpenAI's models on Azure."""

from __future__ import annotations

import datetime
import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from pydantic import field_validator

from debug_gym_core import LLM, RequirementError, Settings, hookimpl
from debug_gym_core.errors import LLMRefused, LLMUnavailable
from debug_gym_core.models.chat_client import ChatLLM, ChatSettings, load_sdk


class AzureSettings(ChatSettings):
    """A model on Azure.

    Attributes:
        api_version: of Azure's API, such as 2024-10-21; null: as OPENAI_API_VERSION says
        scope: instead of a key, ask for tokens of this scope as the machine's or person's identity at Azure
    """

    api_version: str | None = None
    scope: str | None = None

    @field_validator("api_version", mode="before")
    @classmethod
    def _written(cls, value: Any) -> Any:
        """YAML makes a date of what looks like one."""
        return value.isoformat() if isinstance(value, datetime.date) else value


class AzureOpenAI(ChatLLM):
    """A model of OpenAI that Azure serves: `model` is the name of its deployment, `endpoint` the resource's address."""

    name = "azure-openai"
    tags = ("azure openai",)
    Settings: ClassVar[type[Settings]] = AzureSettings
    settings: AzureSettings

    def connect(self, **arguments: Any) -> Any:
        """Load the SDK and make its client; see `ChatLLM`."""
        openai = load_sdk(self.name, "openai", "openai>=2,<3")
        settings = self.settings
        endpoint = self._needed("endpoint", settings.endpoint, "AZURE_OPENAI_ENDPOINT")
        version = self._needed("api_version", settings.api_version, "OPENAI_API_VERSION")
        if settings.scope is not None:
            arguments["azure_ad_token_provider"] = self._tokens(settings.scope)
        else:
            key = self.key("AZURE_OPENAI_API_KEY")
            arguments["api_key"] = self._needed("api_key or scope", key, "AZURE_OPENAI_API_KEY")
        return openai.AzureOpenAI(azure_endpoint=endpoint, api_version=version, **arguments)

    def answer_bound(self) -> str:
        """Azure follows OpenAI."""
        return "max_completion_tokens"

    def _needed(self, setting: str, value: str | None, variable: str) -> str:
        found = value or os.environ.get(variable)
        if not found:
            raise RequirementError(f"{self.title}: set {setting} in llm.yaml, or the environment variable {variable}")
        return found

    def _tokens(self, scope: str) -> Callable[[], str]:
        """Gives a token that is valid, at each call; the identity is found at the first."""
        identity = load_sdk(self.name, "azure.identity", "debug-gym-llm-azure-openai[identity]")
        errors = importlib.import_module("azure.core.exceptions")
        token: Callable[[], str] = identity.get_bearer_token_provider(identity.DefaultAzureCredential(), scope)

        def provide() -> str:
            try:
                return token()
            except errors.AzureError as error:
                said = f"{self.title}: no token for {scope}: {' '.join(str(error.message).split())[:300]}"
                if isinstance(error, errors.ClientAuthenticationError):
                    raise LLMRefused(f"{said}; try `az login`") from error
                raise LLMUnavailable(said) from error  # the network, or who gives tokens

        return provide


@hookimpl
def debug_gym_register_llms() -> Sequence[type[LLM]]:
    """The LLM of this package."""
    return [AzureOpenAI]
