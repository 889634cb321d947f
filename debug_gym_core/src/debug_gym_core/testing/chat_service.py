"""A service that speaks as OpenAI's do, and the base of the tests of backends that talk to it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import pytest

from debug_gym_core.errors import LLMError
from debug_gym_core.models.chat_client import ChatLLM
from debug_gym_core.models.llm import Completion, Message
from debug_gym_core.testing.chat_server import chat_reply, responses_reply
from debug_gym_core.testing.llm import WEATHER, LLMContract
from debug_gym_core.testing.model_server import ModelServer, Reply, Request
from debug_gym_core.tools.action import ToolCall

KEY = "sk-planted-0123456789abcdef"
ASKED = (Message("system", "Use the tools."), Message("user", "Zürich? 漢字"))
ZURICH = ToolCall("weather", {"place": "Zürich"}, "call-1")
BERN = ToolCall("weather", {"place": "Bern"}, "call-2")


class Service:
    """A server that answers as it is told, and a backend's instance that talks to it.

    Attributes:
        answer: tells what is answered; asked for each request
        api: the format that is spoken
        stream: whether answers come in pieces
        server: with the requests that came
        llm: the instance
    """

    def __init__(self, api: str, stream: bool, make: Callable[[str, dict[str, Any]], ChatLLM]) -> None:
        """Start to serve.

        Args:
            api: chat or responses
            stream: whether answers come in pieces
            make: the instance for the server's address and further settings
        """
        self.api, self.stream = api, stream
        self.answer: Callable[[Request], Reply] = lambda request: self.reply("hello")
        self.server = ModelServer(lambda request: self.answer(request))
        self._make = make
        self.llm = self.made()

    def made(self, **settings: Any) -> ChatLLM:
        """Another instance, with further settings."""
        return self._make(self.server.url, {"api": self.api, "stream": self.stream, **settings})

    def reply(self, text: str | None = None, calls: Sequence[ToolCall] = (), **more: Any) -> Reply:
        """An answer in the format that is spoken."""
        build = chat_reply if self.api == "chat" else responses_reply
        return build(text, calls, stream=self.stream, **more)

    def asked(self, reply: Reply, messages: Sequence[Message] = ASKED) -> Completion:
        """The answer to a conversation, when the service answers so."""
        self.answer = lambda request: reply
        return self.llm.ask(list(messages), [dict(WEATHER)])

    def refused(self, reply: Reply) -> LLMError:
        """What is raised when the service answers so."""
        with pytest.raises(LLMError) as caught:
            self.asked(reply)
        told = "".join(traceback.format_exception(caught.value))
        assert KEY not in told and "\n" not in str(caught.value)
        return caught.value

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The conversation of the last request, in the format that is spoken."""
        items: list[dict[str, Any]] = self.server.requests[-1].body["messages" if self.api == "chat" else "input"]
        return items


class ChatTests(LLMContract):
    """Base of the classes that try a backend built on `ChatLLM`; `ChatContract` says what its attributes are for."""

    endpoint: ClassVar[str] = "/v1"
    ways: ClassVar[Sequence[str]] = ("chat", "chat-stream", "responses", "responses-stream")
    calls_tools = True
    counts = True

    def make(self, url: str, settings: dict[str, Any]) -> ChatLLM:
        """An instance for the server at an address; to be overridden where that needs more."""
        given = {"model": "served", "api_key": KEY, "endpoint": url + self.endpoint}
        llm = self.llm(**{**self.settings, **given, **settings})
        assert isinstance(llm, ChatLLM)
        return llm

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Each test in each way to speak."""
        if "way" in metafunc.fixturenames:
            metafunc.parametrize("way", self.ways)

    @pytest.fixture
    def service(self, way: str) -> Iterator[Service]:
        """A service that is spoken to in one way."""
        api, _, stream = way.partition("-")
        service = Service(api, bool(stream), self.make)
        try:
            yield service
        finally:
            service.server.close()

    @pytest.fixture
    def ready(self, service: Service) -> ChatLLM:
        """One that calls a tool when it is offered one, and then answers."""

        def answer(request: Request) -> Reply:
            if request.body.get("tools") and len(service.sent) < 4:
                return service.reply(None, [ZURICH, BERN])
            return service.reply("sunny")

        service.answer = answer
        return service.llm
