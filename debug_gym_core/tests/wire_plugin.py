"""A backend that speaks a language of its own with a server on loopback, as small as one can be."""

import http.client
import json
import urllib.error
import urllib.request
from typing import ClassVar

import pydantic

from debug_gym_core import Completion, Message, Settings, ToolCall, Usage, hookimpl
from debug_gym_core.errors import ContextOverflow, LLMError, LLMUnavailable, RequirementError
from debug_gym_core.models.service import ServiceLLM, ServiceSettings


class WireSettings(ServiceSettings):
    dialect: str = "plain"
    base: str = pydantic.Field("", alias="base-url")
    region: str = pydantic.Field("", validation_alias=pydantic.AliasChoices("region", "zone"))

    @pydantic.model_validator(mode="after")
    def _has_room(self):
        if self.dialect == "wordy" and self.max_tokens is not None and self.max_tokens < 5000:
            raise ValueError("what is wordy takes 5000 tokens")
        return self

    @pydantic.field_validator("endpoint")
    @classmethod
    def _without_slash(cls, value):
        return value and value.rstrip("/")

    @pydantic.model_validator(mode="before")
    @classmethod
    def _renamed(cls, given):
        if given.get("dialect") == "silent" and given.get("stream"):
            raise ValueError("what is silent streams nothing")
        return {"dialect" if key == "accent" else key: value for key, value in given.items()}


class Wire(ServiceLLM):
    """Posts the conversation as JSON."""

    name = "wire"
    tags: ClassVar = ("wire", "wire service")
    Settings: ClassVar[type[Settings]] = WireSettings

    def prepare(self):
        if self.settings.dialect == "keyed" and self.settings.api_key is None:
            raise RequirementError(f"{self.settings.model}: there is no key")

    def ask(self, messages, tools):
        key = self.settings.api_key
        request = urllib.request.Request(
            self.settings.endpoint,
            json.dumps({"messages": [[one.role, one.content] for one in messages]}).encode(),
            {"authorization": key.get_secret_value() if key else "none"},
        )
        try:
            with urllib.request.urlopen(request, timeout=self.settings.timeout) as reply:
                data = json.load(reply)
        except urllib.error.HTTPError as error:
            said = error.read().decode()
            if error.code == 413:
                raise ContextOverflow(said) from None
            if error.code == 429 or error.code >= 500:
                after = error.headers.get("retry-after")
                raise LLMUnavailable(
                    f"status {error.code}", retry_after=float(after) if after else None, crowded=error.code == 429
                ) from None
            raise LLMError(f"{self.settings.model}: {said}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise LLMUnavailable(str(error)) from None
        if self.settings.dialect == "rough":
            self.note(f"{self.title}: tokens are estimated, says {self.settings.api_key.get_secret_value()}")
        calls = tuple(ToolCall(**call) for call in data.get("calls", ()))
        usage = Usage(data.get("prompt", 10), data.get("completion", 1), data.get("cached", 0))
        return Completion(Message("assistant", data.get("text", ""), calls), usage)


class Brief(Wire):
    """Guesses that it answers less than others."""

    name = "brief"
    tags: ClassVar = ("brief",)
    answer_guess: ClassVar = 2000
    thinking_budget = 1000


@hookimpl
def debug_gym_register_llms():
    return [Wire, Brief]
