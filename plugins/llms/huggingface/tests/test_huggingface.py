"""What is a served open model's own: its chat template, and how it is made to call tools."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from debug_gym_core import Message, RequirementError, ToolCall, UsageError
from debug_gym_core.config.llm_yaml import read_models
from debug_gym_core.plugins import default_plugins
from debug_gym_core.testing.chat_server import chat_reply
from debug_gym_core.testing.llm import WEATHER
from debug_gym_core.testing.model_server import ModelServer
from debug_gym_llm_huggingface import HuggingFace

HELLO = [Message("user", "hello")]
NOWHERE = "http://127.0.0.1:9/v1"

TEMPLATE = (
    "{% for tool in tools or [] %}w {% endfor %}"
    "{% for message in messages %}{{ message.content or '' }} "
    "{% for call in message.tool_calls or [] %}{% for name in call.function.arguments %}w {% endfor %}{% endfor %}"
    "{% endfor %}{% if add_generation_prompt %}w {% endif %}{% if thinking %}w w w {% endif %}"
)
"""One word for a tool, an argument and the beginning of the answer, three where it is told to think."""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(lambda request: chat_reply("yes")) as server:
        yield server


def test_it_needs_an_address() -> None:
    with pytest.raises(UsageError, match="endpoint"):
        HuggingFace(model="x")


@pytest.mark.parametrize("tag", ["vllm", "huggingface"])
def test_an_entry_chooses_it_by_a_tag(tag: str, tmp_path: Path) -> None:
    (tmp_path / "llm.yaml").write_text(f"mine: {{model: x, tags: [{tag}]}}\n")
    assert read_models(tmp_path / "llm.yaml").backend("mine", default_plugins()) is HuggingFace


def test_without_the_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(RequirementError, match=r"openai is missing; pip install 'openai>=2,<3'"):
        HuggingFace(model="x", endpoint=NOWHERE).ask(HELLO, [])


def test_the_template_and_the_choice_of_tools(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    kwargs: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}, "tool_choice": "required"}
    llm = HuggingFace(model="x", endpoint=server.url, max_tokens=9, **kwargs)
    llm.ask(HELLO, [dict(WEATHER)])
    llm.ask(HELLO, [])
    HuggingFace(model="x", endpoint=server.url).ask(HELLO, [dict(WEATHER)])
    first, second, third = (request.body for request in server.requests)
    assert first["chat_template_kwargs"] == second["chat_template_kwargs"] == {"enable_thinking": False}
    assert (first["tool_choice"], first["max_tokens"]) == ("required", 9)
    assert "tool_choice" not in second and "tool_choice" not in third and "chat_template_kwargs" not in third
    assert "sk-environment" not in str([request.headers for request in server.requests])


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """One that takes words for tokens, as a model's folder holds it."""
    pytest.importorskip("transformers", reason="pip install transformers")
    library = pytest.importorskip("tokenizers", reason="pip install transformers")
    words = library.Tokenizer(library.models.WordLevel({"w": 0, "[UNK]": 1}, unk_token="[UNK]"))
    words.pre_tokenizer = library.pre_tokenizers.WhitespaceSplit()
    words.save(str(tmp_path / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "chat_template": TEMPLATE}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


def test_tokens_are_those_of_the_template(tokenizer: Path, caplog: pytest.LogCaptureFixture) -> None:
    llm = HuggingFace(model="x", endpoint=NOWHERE, tokenizer=str(tokenizer))
    assert llm.count([Message("user", "one two three")], []) == 4
    called = Message("assistant", "", (ToolCall("weather", {"place": "a", "day": "b"}, "1"),))
    assert llm.count([*HELLO, called], [dict(WEATHER)]) == 5
    in_text = HuggingFace(model="x", endpoint=NOWHERE, tokenizer=str(tokenizer), function_calling=False)
    assert in_text.count(HELLO, [dict(WEATHER)]) == 2  # there the messages tell of tools
    thinking = {"tokenizer": str(tokenizer), "chat_template_kwargs": {"thinking": True}}
    assert HuggingFace(model="x", endpoint=NOWHERE, **thinking).count(HELLO, []) == 5
    assert not caplog.records


@pytest.mark.services
def test_torch_is_not_loaded(tokenizer: Path) -> None:
    code = (
        "import sys; from debug_gym_llm_huggingface import HuggingFace; from debug_gym_core import Message\n"
        f"llm = HuggingFace(model='x', endpoint={NOWHERE!r}, tokenizer={str(tokenizer)!r})\n"
        "assert not {'openai', 'transformers'} & set(sys.modules)\n"
        "print(llm.count([Message('user', 'hello')], []), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("2 False\n", "")


def estimated(llm: HuggingFace, caplog: pytest.LogCaptureFixture) -> str:
    """What is said, once, of a model whose tokens are estimated."""
    with caplog.at_level(logging.WARNING, "debug_gym"):
        counts = {llm.count([Message("user", "x" * 350)], []) for _ in range(2)}
    assert min(counts) >= 100
    (record,) = [record for record in caplog.records if record.name == "debug_gym"]
    return record.getMessage()


@pytest.mark.parametrize(
    "error", [Exception("untagged enum\nModelWrapper"), ImportError("SentencePiece"), ValueError()]
)
def test_a_tokenizer_that_no_library_reads_is_done_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error

    stands_for = SimpleNamespace(AutoTokenizer=SimpleNamespace(from_pretrained=fails))
    monkeypatch.setitem(sys.modules, "transformers", stands_for)
    said = estimated(HuggingFace(model="x", endpoint=NOWHERE, tokenizer="mine"), caplog)
    assert "x: tokens are estimated: its tokenizer mine cannot be read (" in said and "\n" not in said


def test_a_tokenizer_is_not_downloaded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("transformers", reason="pip install transformers")
    llm = HuggingFace(model="x", endpoint=NOWHERE, tokenizer="nobody/no-such-model")
    said = estimated(llm, caplog)
    assert said == (
        "x: tokens are estimated: its tokenizer nobody/no-such-model is not on this machine, in Hugging Face's cache "
        "(none is downloaded)"
    )


def test_no_hub_is_asked_for_a_tokenizer(server: ModelServer, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="pip install transformers")
    code = (
        "from debug_gym_llm_huggingface import HuggingFace; from debug_gym_core import Message\n"
        f"HuggingFace(model='x', endpoint={NOWHERE!r}, tokenizer='nobody/model').count([Message('user', 'hello')], [])"
    )
    hub = {"HF_ENDPOINT": server.url.removesuffix("/v1"), "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **hub}, capture_output=True, check=True)
    # The library asks its hub for other things of its own.
    assert [request.path for request in server.requests if "nobody" in request.path] == []


def test_a_template_that_fails(tokenizer: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tokenizer / "tokenizer_config.json"
    broken = {**json.loads(path.read_text()), "chat_template": "{{ raise_exception('Roles\\nmust alternate') }}"}
    path.write_text(json.dumps(broken))
    said = estimated(HuggingFace(model="x", endpoint=NOWHERE, tokenizer=str(tokenizer)), caplog)
    assert "its chat template fails (Roles must alternate)" in said


def test_without_transformers_tokens_are_estimated(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    said = estimated(HuggingFace(model="x", endpoint=NOWHERE, tokenizer="y"), caplog)
    assert "pip install 'debug-gym-llm-huggingface[tokenizer]'" in said


def test_without_a_tokenizer_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    assert HuggingFace(model="x", endpoint=NOWHERE).count([Message("user", "x" * 350)], []) >= 100
    assert not caplog.records
