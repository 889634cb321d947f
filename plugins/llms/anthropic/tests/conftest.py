"""A backend that talks to a server of the test's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from debug_gym_core.testing import messages_server
from debug_gym_core.testing.model_server import ModelServer, Reply, Request
from debug_gym_llm_anthropic import Anthropic

KEY = "sk-ant-planted-0123456789"


class Service:
    """Servers with the backends that talk to them.

    Attributes:
        requests: what the latest server was asked
        answer: makes an answer of blocks, in the form that is being tried
    """

    def __init__(self, streams: bool) -> None:
        self.streams = streams
        self.servers: list[ModelServer] = []
        self.answer: Callable[..., Reply] = messages_server.stream if streams else messages_server.answer

    @property
    def requests(self) -> list[Request]:
        return self.servers[-1].requests

    @property
    def bodies(self) -> list[Any]:
        return [request.body for request in self.requests]

    def llm(self, *replies: Reply, **settings: Any) -> Anthropic:
        """A backend whose service gives these replies, the last one for ever."""
        left = list(replies)
        return self.asking(lambda _: left.pop(0) if len(left) > 1 else left[0], **settings)

    def asking(self, reply: Callable[[Request], Reply], **settings: Any) -> Anthropic:
        """A backend whose service replies as a function says."""
        self.servers.append(messages_server.serve(reply))
        defaults = {"model": "claude-test", "api_key": KEY, "endpoint": self.servers[-1].url, "stream": self.streams}
        return Anthropic(**defaults | settings)

    def close(self) -> None:
        for server in self.servers:
            server.close()


@pytest.fixture(autouse=True)
def own_settings_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK looks for keys, addresses and proxies in the environment."""
    for name in ("API_KEY", "AUTH_TOKEN", "BASE_URL", "CUSTOM_HEADERS", "PROFILE", "IDENTITY_TOKEN", "LOG"):
        monkeypatch.delenv(f"ANTHROPIC_{name}", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def service() -> Iterator[Service]:
    """Answers come whole."""
    made = Service(streams=False)
    yield made
    made.close()


@pytest.fixture(params=[False, True], ids=["whole", "stream"])
def either(request: pytest.FixtureRequest) -> Iterator[Service]:
    """Answers come whole, and in pieces."""
    made = Service(streams=request.param)
    yield made
    made.close()
