"""What is Azure's own: deployments, versions, keys and tokens."""

from __future__ import annotations

import sys
import time
import traceback
from pathlib import Path

import pytest

from debug_gym_core import LLMError, Message, RequirementError
from debug_gym_core.config.llm_yaml import read_models
from debug_gym_core.errors import LLMRefused, LLMUnavailable
from debug_gym_core.plugins import default_plugins
from debug_gym_core.testing.chat_server import chat_reply, error_reply
from debug_gym_core.testing.model_server import ModelServer, Reply, Request
from debug_gym_llm_azure_openai import AzureOpenAI

HELLO = [Message("user", "hello")]
VERSION = "2024-10-21"
SCOPE = "https://cognitiveservices.azure.com/.default"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the machine's."""
    for name in ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION", "AZURE_OPENAI_AD_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def test_a_deployment_is_asked_with_the_key() -> None:
    with ModelServer(lambda request: chat_reply("yes")) as server:
        llm = AzureOpenAI(model="mine", endpoint=server.url, api_key="secret", api_version=VERSION, max_tokens=9)
        assert llm.ask(HELLO, []).message.content == "yes"
        (request,) = server.requests
    assert request.path == "/openai/deployments/mine/chat/completions"
    assert (request.query, request.headers["api-key"]) == (f"api-version={VERSION}", "secret")
    assert request.body["max_completion_tokens"] == 9


def test_a_version_may_be_what_yaml_makes_a_date_of(tmp_path: Path) -> None:
    (tmp_path / "llm.yaml").write_text(f"mine: {{model: x, tags: [azure openai], api_version: {VERSION}}}\n")
    assert read_models(tmp_path / "llm.yaml").make("mine", default_plugins(), {}).settings.api_version == VERSION


def test_the_environment_may_say_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer(lambda request: error_reply(401, "Wrong key: secret")) as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "secret")
        monkeypatch.setenv("OPENAI_API_VERSION", VERSION)
        with pytest.raises(LLMError, match=r"mine: Wrong key: \*\*\* \(401\)"):
            AzureOpenAI(model="mine").ask(HELLO, [])
        assert server.requests[0].headers["api-key"] == "secret"


@pytest.mark.parametrize("left_out", ["endpoint", "api_key", "api_version"])
def test_what_is_missing_is_said(left_out: str) -> None:
    settings = {"model": "mine", "endpoint": "http://127.0.0.1:9", "api_key": "secret", "api_version": VERSION}
    del settings[left_out]
    with pytest.raises(RequirementError, match=rf"mine: set {left_out}.* in llm.yaml, or the environment variable "):
        AzureOpenAI(**settings).ask(HELLO, [])


@pytest.mark.parametrize("tag", ["Azure OpenAI", "azure-openai"])
def test_an_entry_chooses_it_by_a_tag(tag: str, tmp_path: Path) -> None:
    (tmp_path / "llm.yaml").write_text(f"mine: {{model: x, tags: [{tag}]}}\n")
    assert read_models(tmp_path / "llm.yaml").backend("mine", default_plugins()) is AzureOpenAI


def test_without_the_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(RequirementError, match=r"openai is missing; pip install 'openai>=2,<3'"):
        AzureOpenAI(model="mine").ask(HELLO, [])


def test_a_scope_needs_azure_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    llm = AzureOpenAI(model="mine", endpoint="http://127.0.0.1:9", api_version=VERSION, scope=SCOPE)
    with pytest.raises(RequirementError, match=r"pip install 'debug-gym-llm-azure-openai\[identity\]'"):
        llm.ask(HELLO, [])


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """azure-identity, which finds no identity but the one that a test's server gives."""
    pytest.importorskip("azure.identity", reason="pip install azure-identity")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")


def test_a_token_of_the_machines_identity(identity: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for when it is needed, again when it ends, and is not repeated."""
    ends = [time.time() + 5, time.time() + 86400]  # the first is over too soon to be used again

    def answer(request: Request) -> Reply:
        if request.path == "/identity":
            number = min(sum(one.path == "/identity" for one in server.requests), 2)
            end = str(int(ends[number - 1]))
            return Reply(
                {"access_token": f"token-{number}", "expires_on": end, "resource": SCOPE, "token_type": "Bearer"}
            )
        asked = [one for one in server.requests if one.path != "/identity"]
        return chat_reply("yes") if len(asked) < 4 else error_reply(403, "Not with token-2")

    with ModelServer(answer) as server:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{server.url}/identity")
        monkeypatch.setenv("IDENTITY_HEADER", "header")
        llm = AzureOpenAI(model="mine", endpoint=server.url, api_version=VERSION, scope=SCOPE)
        for _ in range(3):
            assert llm.ask(HELLO, []).message.content == "yes"
        with pytest.raises(LLMError, match=r"mine: Not with \*\*\* \(403\)") as caught:
            llm.ask(HELLO, [])
        sent = [one.headers["authorization"] for one in server.requests if one.path != "/identity"]
    assert sent == ["Bearer token-1", "Bearer token-2", "Bearer token-2", "Bearer token-2"]
    assert "token-2" not in "".join(traceback.format_exception(caught.value))


def test_who_gives_tokens_may_be_asked_again(identity: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The network is down, or it fails: that passes."""
    import azure.core.exceptions
    import azure.identity

    def fails() -> str:
        raise azure.core.exceptions.ServiceRequestError("no route to it")

    monkeypatch.setattr(azure.identity, "get_bearer_token_provider", lambda *_: fails)
    llm = AzureOpenAI(model="mine", endpoint="http://127.0.0.1:9", api_version=VERSION, scope=SCOPE)
    with pytest.raises(LLMUnavailable, match=r"mine: no token for https://.*: no route to it"):
        llm.ask(HELLO, [])


def test_no_identity(identity: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer(lambda request: Reply({"error": "no identity"}, status=400)) as server:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{server.url}/identity")
        monkeypatch.setenv("IDENTITY_HEADER", "header")
        llm = AzureOpenAI(model="mine", endpoint=server.url, api_version=VERSION, scope=SCOPE)
        with pytest.raises(LLMRefused, match=r"mine: no token for https://.*; try `az login`") as caught:
            llm.ask(HELLO, [])
    assert "\n" not in str(caught.value)
