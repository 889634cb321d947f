"""Language models of Anthropic, by the Messages API."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import threading
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pydantic
from pydantic import Field

from debug_gym_core import LLM, Completion, Message, RequirementError, Settings, Usage, UsageError, hookimpl
from debug_gym_core.components.values import Flag
from debug_gym_core.errors import LLMError, LLMRefused, LLMUnavailable
from debug_gym_core.models.chat_format import mapping
from debug_gym_core.models.service import ServiceLLM, ServiceSettings
from debug_gym_core.redaction import remember
from debug_gym_llm_anthropic.conversation import read, request

if TYPE_CHECKING:
    import anthropic
    import httpx

    from debug_gym_llm_anthropic.answer import Answer
    from debug_gym_llm_anthropic.errors import Translator

log = logging.getLogger("debug_gym")

PAUSES = 5
"""Times that a turn is resumed which the service has paused (`pause_turn`)."""

COUNTED = ("system", "tools", "thinking", "tool_choice")
"""Of `generate_kwargs`: what the count of a prompt takes too."""

CONNECT = 10.0
"""Seconds until there must be a connection."""


class AnthropicSettings(ServiceSettings):
    """A model of Anthropic.

    Attributes:
        cache: let the service keep the beginning of the conversation, so that the next call costs a tenth for it
        thinking: tokens that it may think before it answers, at least 1024; null: it does not, or as `generate_kwargs`
            says (`thinking: {type: adaptive}`)
        count_tokens: ask the service for the tokens of a prompt before each call, a request more; else estimated
    """

    cache: Flag = True
    thinking: Annotated[int, Field(strict=True, ge=1024)] | None = None
    count_tokens: Flag = False

    @pydantic.field_validator("endpoint")
    @classmethod
    def _is_address(cls, endpoint: str | None) -> str | None:
        if endpoint is not None and not endpoint.startswith(("http://", "https://")):
            raise ValueError("an address begins with https:// or http://")
        return endpoint

    @pydantic.model_validator(mode="after")
    def _has_room(self) -> AnthropicSettings:
        if self.thinking is not None and self.max_tokens is not None and self.max_tokens <= self.thinking:
            raise ValueError(
                f"max_tokens ({self.max_tokens}) must be more than thinking ({self.thinking}), which is a part of it"
            )
        if self.thinks and self.temperature not in (None, 1):
            raise ValueError(f"temperature ({self.temperature}) cannot be set for a model that thinks; leave it out")
        return self

    @property
    def thinking_budget(self) -> int:
        """Tokens of an answer that may go into thinking."""
        asked = self.generate_kwargs.get("thinking")
        said = asked.get("budget_tokens") if isinstance(asked, Mapping) else self.thinking
        return said if isinstance(said, int) else 0

    @property
    def thinks(self) -> bool:
        """Whether it thinks before it answers; the service then insists on a temperature of 1."""
        asked = self.generate_kwargs.get("thinking")
        if isinstance(asked, Mapping):
            return asked.get("type") != "disabled"
        return self.thinking is not None


class Anthropic(ServiceLLM):
    """Models of Anthropic: tool use, prompt caching, thinking that is kept across turns."""

    name = "anthropic"
    tags = ("anthropic",)
    Settings: ClassVar[type[Settings]] = AnthropicSettings
    settings: AnthropicSettings

    def __init__(self, **settings: Any) -> None:
        """Check the settings; see `ServiceLLM`."""
        super().__init__(**settings)
        self._mutex = threading.Lock()
        self._built: tuple[anthropic.Anthropic, Translator] | None = None
        self._uncounted = False
        self._before: list[str] | None = None  # what was read of the last request that was answered

    @property
    def thinking_budget(self) -> int:
        """As the settings say; see `ServiceLLM`."""
        return self.settings.thinking_budget

    @property
    def bounds_answers(self) -> bool:
        """Yes: the service insists on a bound, and is always given one."""
        return True

    def prepare(self) -> None:
        """Load the SDK and make its client; see `ServiceLLM`."""
        self._client()

    def ask(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """Send one request, and go on with it when the service pauses; see `ServiceLLM`."""
        from debug_gym_llm_anthropic.answer import completion, usage_of

        client, translator = self._client()
        body = self._body(messages, tools)
        asked = read(body)
        known = {call.id for message in messages for call in message.calls}
        usage = Usage()
        told: dict[str, Any] = {}
        blocks: list[dict[str, Any]] = []
        try:
            with _translated(translator):
                for _ in range(PAUSES + 1):
                    answer = self._send(client, body, told)
                    told.clear()
                    usage += answer.usage.usage()
                    blocks += answer.content
                    if answer.stop_reason != "pause_turn" or not answer.content:
                        break
                    said = {"role": "assistant", "content": list(blocks)}
                    body["messages"] = [*_until_answer(body["messages"]), said]
                self._before = asked
                whole = answer.model_copy(update={"content": blocks})
                return dataclasses.replace(completion(whole, known), usage=usage)
        except LLMError as error:
            error.charged = usage + usage_of(told)
            raise

    def count(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> int:
        """Tokens of a prompt: the service's count where `count_tokens` asks for it, else the estimate.

        Raises:
            LLMRefused: the service would refuse the call, too; LLMError: the run is being stopped
        """
        if not self.settings.count_tokens or self.stopping.begun.is_set():
            return super().count(messages, tools)
        from debug_gym_llm_anthropic.answer import understand_count

        client, translator = self._client()
        body = self._body(messages, tools)
        counted_by = ("model", "system", "tools", "messages", "thinking")
        fields: dict[str, Any] = {name: body[name] for name in counted_by if name in body}
        fields.update(self._extras(COUNTED))

        def counted() -> int:
            with _translated(translator):
                answer = client.messages.with_raw_response.count_tokens(**fields, timeout=self._timeout())
                return understand_count(json.loads(answer.text))

        try:
            return self.waited_for(counted, self.stopping.begun.is_set)
        except LLMRefused as error:
            error.args = (f"{error}; or turn `count_tokens` off",)
            raise
        except LLMError as error:
            if self.stopping.begun.is_set():
                raise
            said = f"{error}; its tokens are estimated"
            if self._uncounted or isinstance(error, LLMUnavailable):
                log.info(said)
            else:
                self._uncounted = True
                self.note(said)
            return super().count(messages, tools)

    def estimate(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]],
        last: tuple[Sequence[Message], Usage] | None = None,
    ) -> Usage:
        """See `ServiceLLM`; what the service counts is the whole conversation, as it takes no results without calls."""
        return super().estimate(messages, tools, None if self.settings.count_tokens else last)

    def _body(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The fields of a request."""
        settings = self.settings
        asked = request(
            messages,
            tools,
            cache=settings.cache,
            before=self._before,
            system_role=settings.system_prompt_support,
        )
        body = {"model": settings.model, "max_tokens": self.longest_answer, "messages": [], **asked}
        if settings.thinking is not None:
            body["thinking"] = {"type": "enabled", "budget_tokens": settings.thinking}
        if settings.temperature is not None and not settings.thinks:
            body["temperature"] = settings.temperature
        return body

    def _send(self, client: anthropic.Anthropic, body: Mapping[str, Any], told: dict[str, Any]) -> Answer:
        """One request, and what is answered; what the service tells of its tokens is told even where it fails."""
        from debug_gym_llm_anthropic.answer import gather, understand

        fields = {**body, **self._extras(self.settings.generate_kwargs), "timeout": self._timeout()}
        if self.settings.stream:
            with client.messages.create(**fields, stream=True) as events:
                return understand(gather(events, told))
        # As it came: the SDK's own classes would change the order of what goes back.
        answered = json.loads(client.messages.with_raw_response.create(**fields).text)
        told.update(mapping(mapping(answered).get("usage")))
        return understand(answered)

    def _extras(self, names: Collection[str]) -> dict[str, Any]:
        """`generate_kwargs` as the SDK takes them: headers and a query, and of the others those of these names."""
        given = self.settings.generate_kwargs
        sent = {name: given.get(name) for name in ("extra_headers", "extra_query")}
        return {**sent, "extra_body": {name: given[name] for name in given if name in names and name not in sent}}

    def _timeout(self) -> httpx.Timeout:
        import httpx

        return httpx.Timeout(self.settings.timeout, connect=min(CONNECT, self.settings.timeout))

    def close(self) -> None:
        """Close the connections; see `LLM`."""
        with self._mutex:
            built, self._built = self._built, None
        if built is not None:
            built[0].close()

    def _client(self) -> tuple[anthropic.Anthropic, Translator]:
        """The SDK's client, built when it is first needed."""
        with self._mutex:
            if self._built is None:
                self._built = self._build()
            return self._built

    def _build(self) -> tuple[anthropic.Anthropic, Translator]:
        try:
            import anthropic
        except ImportError as error:
            raise RequirementError(
                f"{self.title}: the SDK cannot be loaded ({error}): pip install 'anthropic>=0.70,<1'"
            ) from error
        from debug_gym_llm_anthropic.bound import bound
        from debug_gym_llm_anthropic.errors import Translator

        given = self.settings.api_key
        key = given.get_secret_value().strip() if given else None
        if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
            raise UsageError(f"{self.title}: `api_key` in llm.yaml has a character that no key has")
        with self.making_client():
            http = anthropic.DefaultHttpxClient(event_hooks=bound(self.settings.timeout, self.stopping.is_over))
        weakref.finalize(self, http.close)
        client = anthropic.Anthropic(
            api_key=key or None, base_url=self.settings.endpoint, max_retries=0, http_client=http
        )
        # Older releases of the SDK know keys and tokens only.
        if not (client.api_key or client.auth_token or getattr(client, "credentials", None)):
            raise RequirementError(
                f"{self.title}: there is no key: set `api_key` of this model in llm.yaml, or ANTHROPIC_API_KEY"
            )
        secrets = (key, client.api_key, client.auth_token)
        for secret in filter(None, secrets):
            remember(secret)
        return client, Translator(self.title, self.settings.timeout, secrets)


@contextlib.contextmanager
def _translated(translator: Translator) -> Iterator[None]:
    """Turn what the SDK raises into errors of ours; without its own, whose text may hold a secret."""
    import anthropic
    import httpx

    try:
        yield
    except (anthropic.AnthropicError, httpx.HTTPError, ValueError, LLMError) as error:
        raise translator.error(error) from None


def _until_answer(messages: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Messages without the part of an answer that they end with."""
    return messages[:-1] if messages and messages[-1]["role"] == "assistant" else messages


@hookimpl
def debug_gym_register_llms() -> Sequence[type[LLM]]:
    """The LLM of this package."""
    return [Anthropic]
