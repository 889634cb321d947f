"""llm.yaml: where it is looked for, how an entry becomes a model, what is said of one that is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from asking_runs import KEY
from model_entries import PICKY, models

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.layers import read_text
from debug_gym_core.config.llm_yaml import read_models
from debug_gym_core.config.model import Config
from debug_gym_core.errors import PluginError, RequirementError, UsageError
from debug_gym_core.models.service import ServiceLLM, ServiceSettings
from debug_gym_core.plugins import load_plugins
from debug_gym_core.redaction import redact, redacted
from debug_gym_core.runs.chosen_model import ChosenModel
from debug_gym_core.runs.ledger import Ledger, Limits
from debug_gym_core.runs.model_record import recorded

WIRE = Path(__file__).parent / "wire_plugin.py"
pytestmark = pytest.mark.usefixtures("home")


def test_the_file_is_looked_for_in_order(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_models().names == [] and read_models().path is None
    for name in ("given", "variable"):
        (tmp_path / f"{name}.yaml").write_text(f"{name}: {{model: m}}\n")
    (home / ".config" / "debug_gym").mkdir(parents=True)
    (home / ".config" / "debug_gym" / "llm.yaml").write_text("default: {model: m}\n")
    assert read_models().names == ["default"]
    monkeypatch.setenv("LLM_CONFIG_FILE_PATH", str(tmp_path / "variable.yaml"))
    assert read_models().names == ["variable"]
    assert read_models(tmp_path / "given.yaml").names == ["given"]


def test_a_file_that_was_named_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"missing.yaml: there is no such file; debug-gym llm init"):
        read_models(tmp_path / "missing.yaml")
    monkeypatch.setenv("LLM_CONFIG_FILE_PATH", str(tmp_path / "missing.yaml"))
    with pytest.raises(UsageError, match=r"\$LLM_CONFIG_FILE_PATH: .*missing.yaml: there is no such file"):
        read_models()


def test_an_entry_becomes_a_model(tmp_path: Path, wire_plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIRE_KEY", KEY)
    monkeypatch.setenv("WIRE_STOP", "END")
    found = models(
        tmp_path,
        "mine:\n  model: m-1\n  tags: [Wire Service]\n  api_key: ${WIRE_KEY}\n  context_limit: 128\n"
        "  prices: {prompt: 1.0, completion: 2}\n  generate_kwargs: {top_p: 0.5, stop: ['${WIRE_STOP}']}\n",
    )
    llm = found.make("mine", wire_plugins, {"temperature": 0.5, "max_tokens": None, "actions": ["not a setting of it"]})
    assert isinstance(llm, ServiceLLM) and llm.name == "wire"
    settings = llm.settings
    assert settings.api_key is not None and settings.api_key.get_secret_value() == KEY
    assert (settings.model, settings.temperature, settings.max_tokens, settings.context_limit) == (
        "m-1",
        0.5,
        None,
        128,
    )
    assert settings.generate_kwargs == {"top_p": 0.5, "stop": ["END"]}
    assert KEY not in repr(settings) and KEY not in str(found.layer)
    assert redact(f"Authorization: {KEY}!") == "Authorization: ***!"
    assert redacted({"a": [KEY, 1]}) == {"a": ["***", 1]}
    monkeypatch.setenv("WIRE_LIMIT", "32")
    monkeypatch.setenv("WIRE_PRICE", "0.5")
    monkeypatch.setenv("WIRE_STREAM", "true")
    text = "mine:\n  model: ${WIRE_LIMIT}\n  tags: [wire]\n  stream: ${WIRE_STREAM}\n  context_limit: ${WIRE_LIMIT}\n"
    typed = models(tmp_path, f"{text}  prices: {{prompt: '${{WIRE_PRICE}}', completion: 2}}\n")
    told = typed.make("mine", wire_plugins, {}).settings
    assert isinstance(told, ServiceSettings) and told.prices is not None
    assert (told.model, told.stream, told.context_limit, told.prices.prompt) == ("32", True, 32, 0.5)
    monkeypatch.setenv("WIRE_LIMIT", "[much")
    with pytest.raises(UsageError, match=r"llm.yaml:5: mine: context_limit"):
        typed.make("mine", wire_plugins, {})
    again = models(tmp_path, f"mine: {{model: a-model-of-theirs, tags: [wire], api_key: {KEY}}}\n")
    again.make("mine", wire_plugins, {})
    assert redact("a-model-of-theirs") == "a-model-of-theirs", "nothing but secrets is masked"


def test_what_the_environment_says_is_masked_where_it_may_be_secret(
    tmp_path: Path, wire_plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"SAID_A": "of-mine-4711", "SAID_B": "developer", "SAID_TOKEN": "hush-hush", "SAID_M": "of-theirs-4712"}
    said["SAID_DIRECTORY"] = "/home/alice-4713"
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    models(
        tmp_path,
        "mine:\n  model: ${SAID_M}\n  tags: [wire]\n  endpoint: https://h/${SAID_A}/v1\n"
        "  generate_kwargs: {user: '${SAID_TOKEN}', extra_headers: {X-Role: '${SAID_B}'},\n"
        "    extra_body: {name: '${SAID_M}', cache: '${SAID_DIRECTORY}/tok'}}\n",
    ).make("mine", wire_plugins, {})
    assert redact(" ".join(said.values())) == "*** developer *** of-theirs-4712 /home/alice-4713"


def test_what_came_from_the_environment_is_recorded_as_its_reference_where_it_stands(
    tmp_path: Path, wire_plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a validator makes of it, by the field's name; and not where the config says another thing."""
    for name, value in {"SAID_A": "high", "SAID_LIMIT": "32", "SAID_SLASH": "http://h/v1/"}.items():
        monkeypatch.setenv(name, value)
    sent = {"stop": ["high", "${SAID_A}", {"of": "${SAID_A}"}], "user": "${SAID_A}", "effort": "high"}
    entry = {"model": "${SAID_A}", "tags": ["wire"], "context_limit": "${SAID_LIMIT}", "zone": "${SAID_A}"}
    entry |= {"endpoint": "${SAID_SLASH}", "base-url": "x/${SAID_A}", "generate_kwargs": {**sent, "seed": "${SAID_A}"}}
    found = models(tmp_path, json.dumps({"mine": entry}))

    def kept(**given: Any) -> dict[str, Any]:
        record = recorded(found.make("mine", wire_plugins, given).settings)
        assert set(record.pop("variables")) <= {"${SAID_A}", "x/${SAID_A}"}
        assert set(record.pop("endpoint_variables", ())) <= {"${SAID_SLASH}"}
        return record

    all_of_it = kept()
    assert all_of_it == {
        **{key: entry[key] for key in ("tags", "generate_kwargs", "endpoint")},
        **{"model": "high", "context_limit": 32, "region": "${SAID_A}", "base": "x/${SAID_A}"},
    }
    said = kept(generate_kwargs={"user": "high", "stop": ["high"]}, seed=3, endpoint="http://i/v1")
    sent = {**sent, "user": "high", "stop": ["high"], "seed": "${SAID_A}"}
    assert said == {**all_of_it, "endpoint": "http://i/v1", "generate_kwargs": sent}


OTHERS = {"temperature": 0.3, "max_completion_tokens": 5}
MORE = {"seed": 1, "stop": ["END"], "extra_body": {"stream": True, "k": 2}}
SENT = {**OTHERS, **MORE}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, SENT),
        ({"temperature": 0.9}, {"max_completion_tokens": 5, **MORE}),
        ({"max_tokens": 9}, {"temperature": 0.3, **MORE}),
        ({"stream": False}, {**SENT, "extra_body": {"k": 2}}),
        (
            {"generate_kwargs": {"seed": 2, "extra_body": {"k": 3}}},
            {**SENT, "seed": 2, "extra_body": {"stream": True, "k": 3}},
        ),
        (
            {"generate_kwargs": {"seed": {"of": "mine"}}},
            {**SENT, "seed": {"of": "mine"}},
        ),
        ({"generate_kwargs": {"stop": {"END": 1}}}, {**SENT, "stop": {"END": 1}}),
        ({"generate_kwargs": {}}, {}),
        (
            {"generate_kwargs": {"max_tokens": 9}},
            {"temperature": 0.3, "max_tokens": 9, **MORE},
        ),
        (
            {"generate_kwargs": {"extra_body": {"seed": 2}}},
            {**OTHERS, "stop": ["END"], "extra_body": {"stream": True, "k": 2, "seed": 2}},
        ),
    ],
)
def test_what_a_config_says_takes_the_place_of_what_the_entry_sends(
    tmp_path: Path, wire_plugins: Plugins, given: dict[str, Any], sent: dict[str, Any]
) -> None:
    found = models(tmp_path, f"mine:\n  model: m\n  tags: [wire]\n  generate_kwargs: {json.dumps(SENT)}\n")
    llm = found.make("mine", wire_plugins, {"temperature": None, **given})
    assert isinstance(llm, ServiceLLM)
    assert llm.settings.generate_kwargs == sent
    assert all(getattr(llm.settings, name) == value for name, value in given.items() if name != "generate_kwargs")


def test_a_wrong_value_is_said_where_it_stands(tmp_path: Path, wire_plugins: Plugins) -> None:
    found = models(tmp_path, "mine: {model: m, tags: [wire], timeout: 5, max_retries: x}\n")
    with pytest.raises(UsageError, match=r"^the config's llm section: mine: timeout: say .* \(got 'soon'\)"):
        found.make("mine", wire_plugins, {"timeout": "soon", "max_retries": 1})
    with pytest.raises(UsageError, match=r"llm\.yaml:1: mine: max_retries: say .* \(got 'x'\)"):
        found.make("mine", wire_plugins, {"timeout": 6})


TWICE = "say only one of max_tokens, generate_kwargs.max_completion_tokens: each bounds the answer"


@pytest.mark.parametrize(
    ("entry", "given", "said"),
    [
        ("dialect: silent", {"stream": True}, "{entry} and {config}: mine: what is silent streams nothing"),
        (
            "max_tokens: 5, generate_kwargs: {max_completion_tokens: 5}",
            {"timeout": 5},
            "{entry} and {config}: mine: " + TWICE,
        ),
        (
            "generate_kwargs: {max_tokens: 5, extra_body: {max_new_tokens: 5}}",
            {},
            "{entry}: mine: say only one of gene",
        ),
        ("dialect: silent, stream: true", {}, "{entry}: mine: what is silent streams nothing"),
        ("generate_kwargs: {k: 1}", {"generate_kwargs": {"extra_query": 5}}, "{entry} and {config}: mine: generate_kw"),
        ("timeout: 5", {"generate_kwargs": {"extra_query": 5}}, "{config}: mine: generate_kwargs: extra_query names"),
        ("timeout: 5", {"prices": {"prompt": 1}}, "{config}: mine: prices.completion: it is missing"),
        ("prices: {prompt: 1}", {"timeout": 5}, "{entry}: mine: prices.completion: it is missing"),
    ],
)
def test_a_wrong_whole_is_said_where_its_parts_stand(
    tmp_path: Path, wire_plugins: Plugins, entry: str, given: dict[str, Any], said: str
) -> None:
    found = models(tmp_path, f"mine: {{model: m, tags: [wire], {entry}}}\n")
    places = {"entry": f"{tmp_path}/llm.yaml:1", "config": "the config's llm section"}
    with pytest.raises(UsageError, match=f"^{re.escape(said.format(**places))}"):
        found.make("mine", wire_plugins, given)


def test_a_bound_on_the_answer_in_the_arguments_takes_the_place_of_the_entrys_own(
    tmp_path: Path, wire_plugins: Plugins
) -> None:
    found = models(tmp_path, "mine: {model: m, tags: [wire], max_tokens: 9}\n")
    told = found.make("mine", wire_plugins, {"generate_kwargs": {"max_completion_tokens": 5}}).settings
    assert isinstance(told, ServiceSettings)
    assert (told.max_tokens, told.generate_kwargs) == (None, {"max_completion_tokens": 5})


def test_a_run_names_entries_that_it_does_not_use_and_that_are_wrong(tmp_path: Path, wire_plugins: Plugins) -> None:
    models(
        tmp_path,
        "mine: {model: m, tags: [wire]}\nother: {model: m, tags: [wire], api_key: '${NOWHERE}', endpiont: x}\n"
        "elsewhere: {model: m, tags: [anthropic], endpiont: x}\n",
    )
    config = Config.model_validate({"llm": {"name": "mine"}, "llm_config_file_path": tmp_path / "llm.yaml"})
    notes: list[str] = []
    ChosenModel(config, wire_plugins).check(Ledger(None, Limits(None)), notes.append)
    said = "llm.yaml:2: other: unknown key 'endpiont'; did you mean 'endpoint'?; other is not played here"
    assert notes == [f"{tmp_path}/{said}"]


@pytest.mark.parametrize(("model", "said"), [("n", "KeyError: 'n'"), ("gone", "SystemExit: bye")])
def test_a_validator_that_fails_by_an_error_of_its_own_stops_nobody_else(tmp_path: Path, model: str, said: str) -> None:
    (tmp_path / "picky.py").write_text(PICKY)
    plugins = load_plugins(files=[WIRE, tmp_path / "picky.py"], strict=True)
    models(tmp_path, f"mine: {{model: m, tags: [wire]}}\nother: {{model: {model}, tags: [picky]}}\n")
    path, ledger = tmp_path / "llm.yaml", Ledger(None, Limits(None))
    notes: list[str] = []
    for name in ("mine", "other"):
        config = Config.model_validate({"llm": {"name": name}, "llm_config_file_path": path})
        chosen = ChosenModel(config, plugins)
        if name == "mine":
            chosen.check(ledger, notes.append)
            continue
        with pytest.raises(
            PluginError, match=rf"llm\.yaml:2: other: llm picky: plugin file .* cannot check its settings: {said}"
        ):
            chosen.check(ledger, notes.append)
    assert notes == []


@pytest.mark.parametrize("setting", ["temperature: 0.9", "max_tokens: 9"])
def test_a_config_that_says_a_setting_twice_is_refused(tmp_path: Path, wire_plugins: Plugins, setting: str) -> None:
    models(tmp_path, "mine: {model: m, tags: [wire]}\n")
    sent = "generate_kwargs: {temperature: 0.3, max_completion_tokens: 5}"
    section = read_text(f"{{name: mine, {setting}, {sent}}}", "run.yaml").data
    config = Config.model_validate({"llm": section, "llm_config_file_path": tmp_path / "llm.yaml"})
    model = ChosenModel(config, wire_plugins)
    with pytest.raises(
        UsageError, match=r"^llm\.\w+ and llm\.generate_kwargs\.\w+ say the same: leave one of them out$"
    ):
        model.make(Ledger(None, Limits(None)), print)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("mine:\n  model: m\n  tags: [wire]\n  promts: 1\n", r"llm.yaml:4: mine: unknown key 'promts'"),
        (
            "mine:\n  model: m\n  tags: [wire]\n  ignore_kwargs: [n]\n",
            r"llm.yaml:4: mine: 'ignore_kwargs' is gone: only",
        ),
        (
            "mine: {model: m, tags: [wire], enable_thinking: true}\n",
            r"'enable_thinking' is now `chat_template_kwargs: ",
        ),
        ("mine:\n  tags: [wire]\n", r"llm.yaml:1: mine: model: it is missing$"),
        ("mine: 5\n", r"llm.yaml:1: mine must be a mapping"),
        ("mine:\n  model: m\n  tags: wire\n", r"llm.yaml:3: mine: tags are a list"),
        ("mine:\n  model: m\n  tags: [fast, Antropic]\n", r"llm.yaml:3: mine: .* tag 'Antropic'; .* 'anthropic'\?"),
        (
            "mine:\n  model: m\n  tags: [wire]\n  prices: {prompt: 1}\n",
            r"llm.yaml:4: mine: prices.completion: it is missing",
        ),
        ("mine:\n  model: m\n  tags: [wire]\n  max_tokens: -1\n", r"llm.yaml:4: mine: max_tokens: "),
        ("mine:\n  model: [\n", r"llm.yaml:3:1: "),
        ("- mine\n", r"a config is a mapping of sections, this is a list"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, wire_plugins: Plugins, text: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        models(tmp_path, text).make("mine", wire_plugins, {})


def test_a_key_is_known_by_each_name_that_its_backend_takes(
    tmp_path: Path, wire_plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZONE", "eu")
    text = "mine: {model: m, tags: [wire], base-url: b, zone: '${ZONE}', accent: broad}\n"
    said = models(tmp_path, text).make("mine", wire_plugins, {}).settings.model_dump(exclude_defaults=True)
    assert said == {"model": "m", "tags": ("wire",), "base": "b", "region": "eu", "dialect": "broad"}
    with pytest.raises(UsageError, match="mine: unknown key 'base'; did you mean 'base-url'"):
        models(tmp_path, text.replace("base-url", "base")).make("mine", wire_plugins, {})


def test_a_key_of_a_wrong_type_is_not_shown(tmp_path: Path, wire_plugins: Plugins) -> None:
    found = models(tmp_path, f"mine:\n  model: m\n  tags: [wire]\n  api_key: ['{KEY}']\n")
    with pytest.raises(UsageError, match="api_key") as caught:
        found.make("mine", wire_plugins, {})
    assert KEY not in str(caught.value)


def test_errors_name_the_entry_and_what_the_service_calls_it(tmp_path: Path, wire_plugins: Plugins) -> None:
    """Two entries may have the same model, with other keys or addresses."""
    text = "one: {model: m, tags: [wire]}\nm: {model: m, tags: [wire]}\n"
    made = [models(tmp_path, text).make(name, wire_plugins, {}) for name in ("one", "m")]
    assert [llm.title for llm in made if isinstance(llm, ServiceLLM)] == ["one (m)", "m"]


def test_a_key_is_in_no_error_about_other_settings(wire_plugins: Plugins) -> None:
    for wrong in ({}, {"model": "m", "timeout": -1}, {"model": "m", "nosuch": 1}, {"model": ["m"], "api_key": [KEY]}):
        with pytest.raises(UsageError) as caught:
            wire_plugins.llms["wire"](**{"api_key": f"{KEY}-unseen", **wrong})
        error: BaseException | None = caught.value
        while error is not None:
            assert KEY not in str(error)
            error = error.__cause__


def test_a_variable_that_is_not_set_is_named(
    tmp_path: Path, wire_plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WIRE_KEY", raising=False)
    found = models(tmp_path, "mine:\n  model: m\n  tags: [wire]\n  api_key: ${WIRE_KEY}\n")
    with pytest.raises(RequirementError, match=r"llm.yaml:4: the environment has no WIRE_KEY; set it: export WIRE_KEY"):
        found.make("mine", wire_plugins, {})
