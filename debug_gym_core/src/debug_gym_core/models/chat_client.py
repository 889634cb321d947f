"""Models behind OpenAI's SDK: what the backends that use it share. They import the SDK, core does not."""

from __future__ import annotations

import abc
import functools
import importlib
import json
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

import pydantic

from debug_gym_core.components.component import Settings
from debug_gym_core.components.values import Flag
from debug_gym_core.errors import LLMError, LLMUnavailable, RequirementError, UsageError
from debug_gym_core.models import chat_format, responses_format
from debug_gym_core.models.chat_errors import failure, hide, shortened, words_of
from debug_gym_core.models.chat_format import MalformedAnswer, mapping
from debug_gym_core.models.llm import Completion, Message
from debug_gym_core.models.service import CHARACTERS, ServiceLLM, ServiceSettings
from debug_gym_core.redaction import remember
from debug_gym_core.usage import Usage

NO_KEY = "none"
"""What is sent as the key to a service that needs none."""

_OF_THE_SDK = ("extra_headers", "extra_query", "timeout")
"""Arguments of a call that are no part of what is sent as JSON."""


class ChatSettings(ServiceSettings):
    """Settings of a model that is asked with OpenAI's SDK.

    Attributes:
        api: chat (Chat Completions, which compatible services speak) or responses (the Responses API)
        tool_choice: auto, required (a call in each answer, which not all services can force) or none; null: the
            service's way
        return_reasoning: give the thinking that led to tool calls back to the service, which many models need; false
            for a service that refuses it
    """

    api: Literal["chat", "responses"] = "chat"
    tool_choice: Literal["auto", "required", "none"] | None = None
    return_reasoning: Flag = True

    @pydantic.field_validator("endpoint")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None and (not value.startswith(("http://", "https://")) or not urlsplit(value).hostname):
            raise ValueError("must be an address that begins with http:// or https://")
        return value


@dataclass(frozen=True)
class _Format:
    """One of the two formats.

    Attributes:
        create: the SDK's method, below the client
        gather: puts a stream together
        read: understands an answer
        usage: understands its count of tokens
    """

    create: str
    gather: Callable[[Iterator[Any]], dict[str, Any]]
    read: Callable[..., Completion]
    usage: Callable[[Any], Usage]


_FORMATS = {
    "chat": _Format("chat.completions", chat_format.gather, chat_format.read_answer, chat_format.read_usage),
    "responses": _Format(
        "responses",
        responses_format.gather_response,
        responses_format.read_response,
        responses_format.read_response_usage,
    ),
}


class ChatLLM(ServiceLLM):
    """Base of the backends that use OpenAI's SDK: a backend says how to connect."""

    Settings: ClassVar[type[Settings]] = ChatSettings
    settings: ChatSettings

    def __init__(self, **settings: Any) -> None:
        """See `ServiceLLM`."""
        super().__init__(**settings)
        self.key()
        self._mutex = threading.Lock()
        self._connected: Any = None
        self._encrypted = True
        self._strict = False
        self._tells_no_tokens = False

    @abc.abstractmethod
    def connect(self, **arguments: Any) -> Any:
        """Load the SDK and make its client.

        Args:
            arguments: for the client: `timeout` and `max_retries`

        Raises:
            RequirementError: the SDK, the key, or something else that is needed, is missing
        """

    def key(self, variable: str | None = None) -> str | None:
        """The key: the setting's or, else, an environment variable's; None: there is none.

        A line end, as files of keys have, is cut off.

        Raises:
            UsageError: it cannot be sent; the SDK's error for that would repeat it
        """
        given = self.settings.api_key.get_secret_value() if self.settings.api_key else ""
        key = (given or (os.environ.get(variable, "") if variable else "")).strip()
        if not (key.isascii() and key.isprintable()):
            raise UsageError(f"{self.title}: api_key holds characters that no key has")
        remember(key)
        return key or None

    def answer_bound(self) -> str:
        """The name of the argument that bounds an answer: what the service knows."""
        return "max_tokens"

    def more_arguments(self, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What a backend adds to a request: here, how the model is to choose tools."""
        return {"tool_choice": self.settings.tool_choice} if tools and self.settings.tool_choice is not None else {}

    def prepare(self) -> None:
        """Load the SDK and make its client; see `ServiceLLM`."""
        self._client()

    def close(self) -> None:
        """Close the connections; see `LLM`."""
        with self._mutex:
            connected, self._connected = self._connected, None
        if connected is not None:
            connected.close()

    def ask(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """Send one request; see `ServiceLLM`."""
        client = self._client()
        encrypted, strict = self._encrypted, self._strict
        body = self._sent(client, messages, tools)
        if encrypted and self.settings.api == "responses" and _refuses_encryption(body):
            self._encrypted = False
            body = self._sent(client, messages, tools)
        if not strict and _refuses_roles(body):
            self._strict = True
            body = self._sent(client, messages, tools)
        if isinstance(body, LLMError):
            raise body
        taken = {call.id for message in messages for call in message.calls}
        end = self.settings.reasoning_end_token
        try:
            completion = self._format.read(body, key=self.name, reasoning_end=end, taken=taken)
        except MalformedAnswer as error:
            usage = self._format.usage(mapping(body).get("usage"))
            raise LLMUnavailable(f"{self.title}: the service's answer {error}", charged=usage) from error
        return self._counted(completion, messages, tools)

    def arguments(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The arguments of the SDK's `create`."""
        settings = self.settings
        system = settings.system_prompt_support
        offered = tools if settings.function_calling else ()
        built: dict[str, Any] = {"model": settings.model}
        if settings.api == "responses":
            built.update(input=responses_format.to_input(messages, key=self.name, system=system), store=False)
            if self._encrypted:
                built["include"] = ["reasoning.encrypted_content"]
            built["tools"] = responses_format.to_functions(offered)
        else:
            built["messages"] = chat_format.to_messages(
                messages, key=self.name, system=system, reasoning=settings.return_reasoning, strict=self._strict
            )
            built["tools"] = chat_format.to_tools(offered)
        if not offered:
            del built["tools"]
        if settings.temperature is not None:
            built["temperature"] = settings.temperature
        if settings.max_tokens is not None:
            built["max_output_tokens" if settings.api == "responses" else self.answer_bound()] = settings.max_tokens
        if settings.stream:
            built["stream"] = True
            if settings.api == "chat":
                built["stream_options"] = {"include_usage": True}
        more = self.more_arguments(offered)
        given = dict(settings.generate_kwargs)
        built.update({name: given.pop(name) for name in _OF_THE_SDK if name in given})
        # As JSON rather than as arguments, which the SDK knows only those of OpenAI's own service of.
        body = {**more, **mapping(given.pop("extra_body", None)), **given}
        return {**built, "extra_body": body} if body else built

    @property
    def _format(self) -> _Format:
        return _FORMATS[self.settings.api]

    def _client(self) -> Any:
        with self._mutex:
            if self._connected is None:
                with self.making_client():
                    self._connected = self.connect(timeout=self.settings.timeout, max_retries=0)
                weakref.finalize(self, self._connected.close)  # for those who do not close
            return self._connected

    def _sent(self, client: Any, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Any:
        """The answer as JSON, or an error that says why there is none.

        It is read as JSON, not as the SDK's types: compatible services differ in what they leave out. The error is
        returned, since one raised from here would drag the SDK's along, which repeats all that the service said; it
        has the tokens that the service has told of until then.
        """
        told: list[Any] = []
        body = self._got(client, messages, tools, told)
        if isinstance(body, LLMError) and told:
            body.charged = self._format.usage(told[-1])
        return body

    def _got(self, client: Any, messages: Sequence[Message], tools: Sequence[dict[str, Any]], told: list[Any]) -> Any:
        """See `_sent`; what the service tells of its tokens is added to what was told."""
        create = functools.reduce(getattr, self._format.create.split("."), client).with_streaming_response.create
        end = time.monotonic() + self.settings.timeout
        try:
            with create(**self.arguments(messages, tools)) as response:
                body = self._read(response, end, told)
        except MalformedAnswer as error:
            said = shortened(self._hidden(client, str(error)))
            return LLMUnavailable(f"{self.title}: the service's answer {said}")
        except LLMError as error:
            return error
        except Exception as error:  # the SDK's, and its HTTP library's, which core does not know by class
            ours = self._told(client, error)
            if ours is None:
                raise
            return ours
        wrong = mapping(body).get("error")
        return self._refused(client, wrong) if wrong else body

    def _read(self, response: Any, end: float, told: list[Any]) -> Any:
        pieces = self._pieces(response.iter_bytes(), end)
        if "text/event-stream" in response.headers.get("content-type", ""):
            return self._format.gather(_noted(_events(pieces), told))
        return next(_noted(iter((_parsed(b"".join(pieces)),)), told))

    def _pieces(self, pieces: Iterator[bytes], end: float) -> Iterator[bytes]:
        """What comes, while there is time: services keep a connection busy with nothing."""
        for piece in pieces:
            if self.stopping.is_over():
                raise LLMUnavailable("the run is being stopped")
            if time.monotonic() > end:
                raise LLMUnavailable(self._late())
            yield piece

    def _told(self, client: Any, error: Exception) -> LLMError | None:
        """The error in our terms; None: it is none of the SDK's."""
        classes = {cls.__name__ for cls in type(error).__mro__ if cls.__module__.partition(".")[0] in _LIBRARIES}
        if "APIStatusError" in classes:
            status: Any = error
            said, code = words_of(status.body)
            headers = {name.lower(): value for name, value in status.response.headers.items()}
            # A token that the SDK asked for itself is known from the request only.
            token = status.request.headers.get("authorization", "").removeprefix("Bearer ")
            said = hide(self._hidden(client, said), {token} - {NO_KEY})
            return failure(self.title, status.status_code, said, code, headers)
        if classes & {"APITimeoutError", "TimeoutException"}:
            return LLMUnavailable(self._late())
        if classes & {"APIConnectionError", "RequestError", "APIError"}:
            cause = error.__cause__ or error
            said = shortened(self._hidden(client, str(cause) or type(cause).__name__))
            address = urlsplit(str(client.base_url)).netloc.rpartition("@")[2]
            mend = "; look at endpoint in llm.yaml" if type(cause).__name__ == "ConnectError" else ""
            return LLMUnavailable(f"{self.title}: no connection with {address}: {said}{mend}")
        return None

    def _refused(self, client: Any, wrong: Any) -> LLMError:
        """The error that a service sends as an answer, or within one."""
        said, code = words_of(wrong)
        number = mapping(wrong).get("code")
        status = number if isinstance(number, int) and 400 <= number < 600 else None
        return failure(self.title, status, self._hidden(client, said), code)

    def _late(self) -> str:
        return f"{self.title}: no answer within {self.settings.timeout:g} s"

    def _hidden(self, client: Any, text: str) -> str:
        """The text without what must not be repeated of a service's words."""
        headers = mapping(self.settings.generate_kwargs.get("extra_headers")).values()
        secrets = {client.api_key, self.key() or "", *map(str, headers)}
        return hide(text, secrets - {NO_KEY})

    def _counted(
        self, completion: Completion, messages: Sequence[Message], tools: Sequence[dict[str, Any]]
    ) -> Completion:
        """The answer with an estimate of its tokens where the service does not count them: a budget must."""
        if completion.usage.prompt or completion.usage.completion:
            return completion
        if not self._tells_no_tokens:
            self._tells_no_tokens = True
            self.note(f"{self.title}: the service does not tell its tokens; they are estimated")
        said = completion.message
        length = len(said.content) + len(completion.reasoning)
        length += sum(len(call.name) + len(chat_format.sent(call)) for call in said.calls)
        usage = Usage(self.count(messages, tools), max(1, int(length / CHARACTERS)))
        return replace(completion, usage=usage)


def _refuses_encryption(body: Any) -> bool:
    """Whether the model was refused for being asked to encrypt its thinking, since it is one that does not think."""
    return isinstance(body, LLMError) and not isinstance(body, LLMUnavailable) and "encrypted" in str(body).lower()


_ROLES = re.compile(r"unexpected role .*after role|roles? must alternate", re.IGNORECASE)


def _refuses_roles(body: Any) -> bool:
    """Whether the conversation was refused for who speaks after whom."""
    return isinstance(body, LLMError) and not isinstance(body, LLMUnavailable) and bool(_ROLES.search(str(body)))


_LIBRARIES = ("openai", "httpx", "httpx2", "httpcore", "httpcore2")


def load_sdk(backend: str, module: str, install: str) -> Any:
    """Import a module that a backend cannot be used without.

    Args:
        backend: its name
        module: its full name; the package is called the same, with `-` for `.`
        install: what pip is told to install

    Raises:
        RequirementError: it is not there
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.replace(".", "-")
        raise RequirementError(f"{backend}: the package {package} is missing; pip install '{install}'") from error


def _events(pieces: Iterator[bytes]) -> Iterator[Any]:
    """The JSON of server-sent events; services send comments between them to keep the connection."""
    for line in _lines(pieces):
        if line.startswith(b"data:"):
            data = line[len(b"data:") :].strip()
            if data == b"[DONE]":
                yield chat_format.DONE
                return
            yield _parsed(data)


def _noted(bodies: Iterator[Any], told: list[Any]) -> Iterator[Any]:
    """The same answers or events, of which what they tell of tokens is added to what was told."""
    for body in bodies:
        choices = mapping(body).get("choices")
        within = choices[:1] if isinstance(choices, list) else []
        told += filter(None, (mapping(one).get("usage") for one in (body, mapping(body).get("response"), *within)))
        yield body


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    yield rest


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        said = data.decode("utf-8", "replace").strip()
        raise MalformedAnswer(f"is no JSON: {said}" if said else "is empty") from error
