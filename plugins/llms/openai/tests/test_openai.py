"""What is OpenAI's own: keys, addresses, names of arguments, and the tokens of its models."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core import LLMError, Message, RequirementError, ToolCall, UsageError
from debug_gym_core.config.llm_yaml import read_models
from debug_gym_core.errors import ContextOverflow, LLMUnavailable
from debug_gym_core.plugins import default_plugins
from debug_gym_core.testing.chat_server import chat_reply, error_reply, responses_reply
from debug_gym_core.testing.llm import WEATHER
from debug_gym_core.testing.model_server import ModelServer, Reply, Request
from debug_gym_llm_openai import OpenAI, tokens

HELLO = [Message("user", "hello")]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the machine's."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(lambda request: chat_reply("yes")) as server:
        yield server


def test_the_sdk_is_loaded_when_it_is_used() -> None:
    code = "import sys, debug_gym_llm_openai as plugin; plugin.OpenAI(model='x'); print('openai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_without_the_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(RequirementError, match=r"openai is missing; pip install 'openai>=2,<3'"):
        OpenAI(model="x", api_key="k").ask(HELLO, [])


def test_without_a_key_it_says_where_to_put_one() -> None:
    with pytest.raises(RequirementError, match=r"no key; set api_key in llm\.yaml, or .* OPENAI_API_KEY"):
        OpenAI(model="x").ask(HELLO, [])


def test_what_is_missing_is_known_before_the_first_request(server: ModelServer) -> None:
    with pytest.raises(RequirementError, match="no key"):
        OpenAI(model="x").prepare()
    OpenAI(model="x", api_key="k", endpoint=server.url).prepare()
    assert not server.requests


def test_the_environments_key_and_address_are_openais(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment\n")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    assert OpenAI(model="x", max_tokens=9).ask(HELLO, []).message.content == "yes"
    assert server.requests[0].headers["authorization"] == "Bearer sk-environment"
    assert server.requests[0].body["max_completion_tokens"] == 9


def test_the_environments_key_goes_to_nobody_else(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    OpenAI(model="x", endpoint=f"{server.url}/v1", max_tokens=9).ask(HELLO, [])
    assert "sk-environment" not in str(server.requests[0].headers)
    assert server.requests[0].body["max_tokens"] == 9 and "max_completion_tokens" not in server.requests[0].body


def test_a_key_of_the_environment_is_not_repeated(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    with ModelServer(lambda request: error_reply(401, "Wrong key sk-environment and s3cret")) as refusing:
        monkeypatch.setenv("OPENAI_BASE_URL", refusing.url)
        kwargs = {"extra_headers": {"x-project": "s3cret"}}
        with pytest.raises(LLMError, match=r"Wrong key \*\*\* and \*\*\* \(401\)"):
            OpenAI(model="x", generate_kwargs=kwargs).ask(HELLO, [])
        assert refusing.requests[0].headers["x-project"] == "s3cret"


@pytest.mark.parametrize(
    ("endpoint", "name"),
    [
        (None, "max_completion_tokens"),
        ("https://eu.api.openai.com/v1", "max_completion_tokens"),
        ("https://openai.com.example/v1", "max_tokens"),
    ],
)
def test_the_bound_on_an_answer_has_the_services_name(endpoint: str | None, name: str) -> None:
    assert OpenAI(model="x", endpoint=endpoint, max_tokens=9).arguments(HELLO, [])[name] == 9


def test_thinking_is_kept_back_from_a_service_that_refuses_it(server: ModelServer) -> None:
    call = ToolCall("weather", {}, "1")
    said = Message("assistant", "", (call,), provider={"openai": {"reasoning_content": "hm"}})
    for returned in (True, False):
        OpenAI(model="x", endpoint=server.url, return_reasoning=returned).ask([*HELLO, said], [dict(WEATHER)])
    assert ["reasoning_content" in request.body["messages"][1] for request in server.requests] == [True, False]


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_how_tools_are_chosen_is_said_where_there_are_any(api: str) -> None:
    llm = OpenAI(model="x", api=api, tool_choice="required")
    assert llm.arguments(HELLO, [dict(WEATHER)])["extra_body"] == {"tool_choice": "required"}
    assert "extra_body" not in llm.arguments(HELLO, [])


def test_arguments_of_the_call_win(server: ModelServer) -> None:
    kwargs = {"temperature": 1, "extra_body": {"a": 1}, "b": None}
    OpenAI(model="x", endpoint=server.url, temperature=0, generate_kwargs=kwargs).ask(HELLO, [])
    body = server.requests[0].body
    assert (body["temperature"], body["a"], body["b"]) == (1, 1, None)


def test_arguments_of_the_sdk_are_not_sent_as_json(server: ModelServer) -> None:
    kwargs = {"extra_query": {"region": "eu"}, "extra_headers": {"x-a": "1"}, "timeout": 0.3}
    llm = OpenAI(model="x", endpoint=server.url, generate_kwargs=kwargs)
    llm.ask(HELLO, [])
    (request,) = server.requests
    assert (request.query, request.headers["x-a"]) == ("region=eu", "1")
    assert not {"extra_query", "extra_headers", "timeout"} & set(request.body)
    with ModelServer(lambda request: chat_reply("late", delay=1.0)) as slow, pytest.raises(LLMError, match="no answer"):
        OpenAI(model="x", endpoint=slow.url, generate_kwargs=kwargs).ask(HELLO, [])


def test_a_model_that_does_not_think_is_asked_without_encryption() -> None:
    def answer(request: Request) -> Reply:
        if request.body.get("include"):
            return error_reply(400, "Encrypted content is not supported with this model.", "invalid_request_error")
        return responses_reply("yes")

    with ModelServer(answer) as server:
        llm = OpenAI(model="x", endpoint=server.url, api="responses")
        assert [llm.ask(HELLO, []).message.content for _ in range(2)] == ["yes", "yes"]
        assert ["include" in request.body for request in server.requests] == [True, False, False]


@pytest.mark.parametrize(
    ("code", "kind", "crowded"),
    [
        ("rate_limit_exceeded", LLMUnavailable, True),
        ("server_error", LLMUnavailable, False),
        ("context_length_exceeded", ContextOverflow, None),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_failed_says_why(stream: bool, code: str, kind: type[LLMError], crowded: bool | None) -> None:
    """Status 200, and at the end a response that is no answer but an error."""
    failed = {"object": "response", "status": "failed", "output": [], "error": {"code": code, "message": "Not so."}}
    event = {"type": "response.failed", "response": failed}
    reply = Reply(events=[f"event: response.failed\ndata: {json.dumps(event)}"]) if stream else Reply(failed)
    with ModelServer(lambda request: reply) as server:
        llm = OpenAI(model="x", endpoint=server.url, api="responses", stream=stream)
        with pytest.raises(kind, match=r"^x: Not so\.") as caught:
            llm.ask(HELLO, [])
    assert getattr(caught.value, "crowded", None) is crowded


def test_a_service_that_does_not_stream_is_understood(server: ModelServer) -> None:
    assert OpenAI(model="x", endpoint=server.url, stream=True).ask(HELLO, []).message.content == "yes"


def test_that_tokens_are_estimated_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """What is spent, and what bounds it, rests on a guess; in two runs each has a backend of its own, which says it."""
    with ModelServer(lambda request: chat_reply("yes", usage=None)) as server, caplog.at_level("WARNING"):
        for _ in range(2):
            llm = OpenAI(model="tells-nothing", api_key="k", endpoint=server.url)
            assert all(llm.ask(HELLO, []).usage.prompt for _ in range(3))
    said = "tells-nothing: the service does not tell its tokens; they are estimated"
    assert [one for one in caplog.messages if "tells-nothing" in one] == [said] * 2


def test_an_entrys_name_is_in_its_errors(tmp_path: Path) -> None:
    path = tmp_path / "llm.yaml"
    with ModelServer(lambda request: error_reply(404, "No such model")) as refusing:
        entry = f"{{model: served, endpoint: {refusing.url}"
        path.write_text(f"mine: {entry}}}\nspoilt: {entry}, api_key: 'sk-\u2014'}}\n")
        with pytest.raises(LLMError, match=r"^mine \(served\): No such model \(404\); look at model and endpoint"):
            read_models(path).make("mine", default_plugins(), {}).complete(HELLO, [])
    with pytest.raises(UsageError, match=r"llm\.yaml:2: spoilt: served: api_key holds characters that no key has"):
        read_models(path).make("spoilt", default_plugins(), {})


def test_null_in_an_entry_is_as_if_left_out(tmp_path: Path) -> None:
    path = tmp_path / "llm.yaml"
    blank = "tags: null, generate_kwargs: null, timeout: null, stream: null, prices: null"
    path.write_text(f"mine: {{model: m}}\nblank: {{model: m, {blank}}}\nwrong: {{model: null, tags: null}}\n")
    mine, told = (read_models(path).make(name, default_plugins(), {}).settings for name in ("mine", "blank"))
    assert told == mine
    with pytest.raises(UsageError, match=r"llm\.yaml:3: wrong: model: it is missing$"):
        read_models(path).make("wrong", default_plugins(), {})


@pytest.fixture
def tiktoken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """With an encoding of single bytes, whose file is in the cache."""
    module = pytest.importorskip("tiktoken", reason="pip install tiktoken")
    registry, load = importlib.import_module("tiktoken.registry"), importlib.import_module("tiktoken.load")
    data = b"".join(base64.b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256))
    address = "https://encodings.invalid/bytes.tiktoken"
    name, digest = hashlib.sha1(address.encode()).hexdigest(), hashlib.sha256(data).hexdigest()

    def encoding() -> dict[str, Any]:
        ranks = load.load_tiktoken_bpe(address, expected_hash=digest)
        return {"name": "bytes", "pat_str": r"(?s).", "mergeable_ranks": ranks, "special_tokens": {}}

    registry.list_encoding_names()  # fills the registry
    monkeypatch.setitem(registry.ENCODING_CONSTRUCTORS, "bytes", encoding)
    monkeypatch.setitem(tokens.FILES, "bytes", (name, digest))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    (tmp_path / name).write_bytes(data)
    tokens.find_encoding.cache_clear()
    try:
        yield module
    finally:
        tokens.find_encoding.cache_clear()
        registry.ENCODINGS.pop("bytes", None)


def test_tokens_are_counted_by_the_encoding(tiktoken: Any) -> None:
    llm = OpenAI(model="x", tokenizer="bytes")
    assert llm.count([Message("user", "hä<|endoftext|>")], []) == 16 + tokens.MESSAGE
    called = Message("assistant", "", (ToolCall("weather", {}),))
    assert llm.count([called], []) == len("weather{}") + tokens.MESSAGE
    assert llm.count(HELLO, [dict(WEATHER)]) > 150


@pytest.mark.parametrize("content", [None, b"broken"])
def test_an_encoding_is_not_downloaded(tiktoken: Any, tmp_path: Path, content: bytes | None) -> None:
    (file,) = tmp_path.iterdir()
    file.unlink()
    if content:
        file.write_bytes(content)
    estimate = OpenAI(model="no such model").count([Message("user", "x" * 350)], [])
    assert OpenAI(model="x", tokenizer="bytes").count([Message("user", "x" * 350)], []) == estimate
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([content] if content else [])


def test_without_tiktoken_tokens_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    tokens.find_encoding.cache_clear()
    try:
        assert OpenAI(model="gpt-4o").count([Message("user", "x" * 350)], []) >= 100
    finally:
        tokens.find_encoding.cache_clear()


def test_the_files_are_those_of_tiktoken() -> None:
    """Names are hashes of addresses, which tiktoken holds beside the hashes of what is there."""
    public = pytest.importorskip("tiktoken_ext.openai_public", reason="pip install tiktoken")
    source = Path(public.__file__).read_text(encoding="utf-8")
    addresses = [text for text in source.split('"') if text.startswith("https://")]
    names = {hashlib.sha1(address.encode()).hexdigest() for address in addresses}
    for name, digest in tokens.FILES.values():
        assert name in names and digest in source
