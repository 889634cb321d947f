"""llm.yaml: where it is looked for, how an entry becomes a model, what is said of one that is wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from debug_gym_core.cli import main
from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.layers import read_text
from debug_gym_core.config.llm_yaml import Models, read_models, unknown
from debug_gym_core.config.model import Config
from debug_gym_core.errors import PluginError, RequirementError, UsageError
from debug_gym_core.models.service import ServiceLLM, ServiceSettings
from debug_gym_core.plugins import load_plugins
from debug_gym_core.redaction import redact, redacted
from debug_gym_core.runs.chosen_model import ChosenModel
from debug_gym_core.runs.ledger import Ledger, Limits
from debug_gym_core.testing.model_server import ModelServer, Reply, Request

WIRE = Path(__file__).parent / "wire_plugin.py"
KEY = "sk-planted-0123456789"


@pytest.fixture(scope="module")
def plugins() -> Iterator[Plugins]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEBUG_GYM_PLUGINS", "core,terminal-local")
        yield load_plugins(files=[WIRE], strict=True)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LLM_CONFIG_FILE_PATH", raising=False)
    return tmp_path / "home"


def models(path: Path, text: str) -> Models:
    (path / "llm.yaml").write_text(text)
    return read_models(path / "llm.yaml")


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


def test_an_entry_becomes_a_model(tmp_path: Path, plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIRE_KEY", KEY)
    monkeypatch.setenv("WIRE_STOP", "END")
    found = models(
        tmp_path,
        "mine:\n  model: m-1\n  tags: [Wire Service]\n  api_key: ${WIRE_KEY}\n  context_limit: 128\n"
        "  prices: {prompt: 1.0, completion: 2}\n  generate_kwargs: {top_p: 0.5, stop: ['${WIRE_STOP}']}\n",
    )
    llm = found.make("mine", plugins, {"temperature": 0.5, "max_tokens": None, "actions": ["not a setting of it"]})
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
    told = typed.make("mine", plugins, {}).settings
    assert isinstance(told, ServiceSettings) and told.prices is not None
    assert (told.model, told.stream, told.context_limit, told.prices.prompt) == ("32", True, 32, 0.5)
    monkeypatch.setenv("WIRE_LIMIT", "[much")
    with pytest.raises(UsageError, match=r"llm.yaml:5: mine: context_limit"):
        typed.make("mine", plugins, {})
    again = models(tmp_path, f"mine: {{model: a-model-of-theirs, tags: [wire], api_key: {KEY}}}\n")
    again.make("mine", plugins, {})
    assert redact("a-model-of-theirs") == "a-model-of-theirs", "nothing but secrets is masked"


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
    tmp_path: Path, plugins: Plugins, given: dict[str, Any], sent: dict[str, Any]
) -> None:
    found = models(tmp_path, f"mine:\n  model: m\n  tags: [wire]\n  generate_kwargs: {json.dumps(SENT)}\n")
    llm = found.make("mine", plugins, {"temperature": None, **given})
    assert isinstance(llm, ServiceLLM)
    assert llm.settings.generate_kwargs == sent
    assert all(getattr(llm.settings, name) == value for name, value in given.items() if name != "generate_kwargs")


def test_a_wrong_value_is_said_where_it_stands(tmp_path: Path, plugins: Plugins) -> None:
    found = models(tmp_path, "mine: {model: m, tags: [wire], timeout: 5, max_retries: x}\n")
    with pytest.raises(UsageError, match=r"^the config's llm section: mine: timeout: say .* \(got 'soon'\)"):
        found.make("mine", plugins, {"timeout": "soon", "max_retries": 1})
    with pytest.raises(UsageError, match=r"llm\.yaml:1: mine: max_retries: say .* \(got 'x'\)"):
        found.make("mine", plugins, {"timeout": 6})


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
    tmp_path: Path, plugins: Plugins, entry: str, given: dict[str, Any], said: str
) -> None:
    found = models(tmp_path, f"mine: {{model: m, tags: [wire], {entry}}}\n")
    places = {"entry": f"{tmp_path}/llm.yaml:1", "config": "the config's llm section"}
    with pytest.raises(UsageError, match=f"^{re.escape(said.format(**places))}"):
        found.make("mine", plugins, given)


def test_a_bound_on_the_answer_in_the_arguments_takes_the_place_of_the_entrys_own(
    tmp_path: Path, plugins: Plugins
) -> None:
    found = models(tmp_path, "mine: {model: m, tags: [wire], max_tokens: 9}\n")
    told = found.make("mine", plugins, {"generate_kwargs": {"max_completion_tokens": 5}}).settings
    assert isinstance(told, ServiceSettings)
    assert (told.max_tokens, told.generate_kwargs) == (None, {"max_completion_tokens": 5})


def test_a_run_names_entries_that_it_does_not_use_and_that_are_wrong(tmp_path: Path, plugins: Plugins) -> None:
    models(
        tmp_path,
        "mine: {model: m, tags: [wire]}\nother: {model: m, tags: [wire], api_key: '${NOWHERE}', endpiont: x}\n"
        "elsewhere: {model: m, tags: [anthropic], endpiont: x}\n",
    )
    config = Config.model_validate({"llm": {"name": "mine"}, "llm_config_file_path": tmp_path / "llm.yaml"})
    notes: list[str] = []
    ChosenModel(config, plugins).check(Ledger(None, Limits(None)), notes.append)
    said = "llm.yaml:2: other: unknown key 'endpiont'; did you mean 'endpoint'?; other is not played here"
    assert notes == [f"{tmp_path}/{said}"]


PICKY = """
import pydantic
from debug_gym_core import LLM, hookimpl
from debug_gym_core.models.service import ServiceLLM, ServiceSettings

class PickySettings(ServiceSettings):
    @pydantic.field_validator("model")
    @classmethod
    def _check(cls, value):
        if value == "gone":
            raise SystemExit("bye")
        return {"m": value}[value]

class Picky(ServiceLLM):
    \"\"\"Looks its models up.\"\"\"
    name = "picky"
    Settings = PickySettings
    def send(self, request): raise NotImplementedError

@hookimpl
def debug_gym_register_llms(): return [Picky]
"""


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
def test_a_config_that_says_a_setting_twice_is_refused(tmp_path: Path, plugins: Plugins, setting: str) -> None:
    models(tmp_path, "mine: {model: m, tags: [wire]}\n")
    sent = "generate_kwargs: {temperature: 0.3, max_completion_tokens: 5}"
    section = read_text(f"{{name: mine, {setting}, {sent}}}", "run.yaml").data
    config = Config.model_validate({"llm": section, "llm_config_file_path": tmp_path / "llm.yaml"})
    model = ChosenModel(config, plugins)
    with pytest.raises(
        UsageError, match=r"^llm\.\w+ and llm\.generate_kwargs\.\w+ say the same: leave one of them out$"
    ):
        model.make(Ledger(None, Limits(None)))


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
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, plugins: Plugins, text: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        models(tmp_path, text).make("mine", plugins, {})


def test_a_key_is_known_by_each_name_that_its_backend_takes(
    tmp_path: Path, plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZONE", "eu")
    text = "mine: {model: m, tags: [wire], base-url: b, zone: '${ZONE}', accent: broad}\n"
    said = models(tmp_path, text).make("mine", plugins, {}).settings.model_dump(exclude_defaults=True)
    assert said == {"model": "m", "tags": ("wire",), "base": "b", "region": "eu", "dialect": "broad"}
    with pytest.raises(UsageError, match="mine: unknown key 'base'; did you mean 'base-url'"):
        models(tmp_path, text.replace("base-url", "base")).make("mine", plugins, {})


def test_a_key_of_a_wrong_type_is_not_shown(tmp_path: Path, plugins: Plugins) -> None:
    found = models(tmp_path, f"mine:\n  model: m\n  tags: [wire]\n  api_key: ['{KEY}']\n")
    with pytest.raises(UsageError, match="api_key") as caught:
        found.make("mine", plugins, {})
    assert KEY not in str(caught.value)


def test_errors_name_the_entry_and_what_the_service_calls_it(tmp_path: Path, plugins: Plugins) -> None:
    """Two entries may have the same model, with other keys or addresses."""
    text = "one: {model: m, tags: [wire]}\nm: {model: m, tags: [wire]}\n"
    made = [models(tmp_path, text).make(name, plugins, {}) for name in ("one", "m")]
    assert [llm.title for llm in made if isinstance(llm, ServiceLLM)] == ["one (m)", "m"]


def test_a_key_is_in_no_error_about_other_settings(plugins: Plugins) -> None:
    for wrong in ({}, {"model": "m", "timeout": -1}, {"model": "m", "nosuch": 1}, {"model": ["m"], "api_key": [KEY]}):
        with pytest.raises(UsageError) as caught:
            plugins.llms["wire"](**{"api_key": f"{KEY}-unseen", **wrong})
        error: BaseException | None = caught.value
        while error is not None:
            assert KEY not in str(error)
            error = error.__cause__


def test_a_variable_that_is_not_set_is_named(tmp_path: Path, plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WIRE_KEY", raising=False)
    found = models(tmp_path, "mine:\n  model: m\n  tags: [wire]\n  api_key: ${WIRE_KEY}\n")
    with pytest.raises(RequirementError, match=r"llm.yaml:4: the environment has no WIRE_KEY; set it: export WIRE_KEY"):
        found.make("mine", plugins, {})


def test_a_backend_that_is_not_installed_is_named(tmp_path: Path, plugins: Plugins) -> None:
    tags = ["fast, pdb", "azure openai", "anthropic"]  # pdb is what a tool is called whose plugin is turned off, too
    lines = [f"{name}: {{model: m, tags: [{text}]}}\n" for name, text in zip("abc", tags, strict=True)]
    found = models(tmp_path, "".join(lines))
    for name, package in (("a", "openai"), ("b", "azure-openai"), ("c", "anthropic")):
        # Where it is installed it is turned off by the variable of the fixture `plugins`.
        with pytest.raises(RequirementError, match=rf"[ (]debug-gym-llm-{package}( |$)"):
            found.make(name, plugins, {})


def test_a_backend_that_failed_is_named_and_no_other_is_sent_its_key(tmp_path: Path) -> None:
    (tmp_path / "birds.py").write_text('raise ImportError("no beak")\nname = "magpie"\n')
    plugins = load_plugins(files=[WIRE, tmp_path / "birds.py"])
    found = models(tmp_path, "mine: {model: m, tags: [Magpie]}\nother: {model: m, tags: [wire, magpie]}\n")
    cause = r"llm 'magpie': plugin file .*birds\.py failed: ImportError: no beak"
    with pytest.raises(PluginError, match=rf"llm\.yaml:1: mine: {cause}"):
        found.backend("mine", plugins)
    assert found.backend("other", plugins).name == "wire"
    for configured in (found, Models()):
        error = unknown("magpie", configured, plugins)
        assert isinstance(error, PluginError) and re.match(cause, str(error))


def test_a_plugin_that_failed_and_only_says_a_word_takes_no_tag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBUG_GYM_PLUGINS", "core")
    (tmp_path / "birds.py").write_text('raise ImportError("no beak")\ndef debug_gym_register_tools(): "chat"\n')
    found = models(tmp_path, "mine: {model: m, tags: [chat]}\n")
    with pytest.raises(RequirementError, match="llm 'openai'"):
        found.backend("mine", load_plugins(files=[tmp_path / "birds.py"]))


def test_a_backend_that_two_bring_is_said_with_its_distribution(tmp_path: Path) -> None:
    for name in ("crows.py", "rooks.py"):
        (tmp_path / name).write_text(PICKY.replace("picky", "caw"))
    plugins = load_plugins(files=[tmp_path / "crows.py", tmp_path / "rooks.py"])
    found = models(tmp_path, f"a: {{model: m, tags: [caw]}}\nb: {{model: m, tags: [caw, '{tmp_path}/rooks.py:caw']}}\n")
    with pytest.raises(PluginError, match=r"llm\.yaml:1: a: llm 'caw' is provided twice; say .*crows\.py:caw or .*"):
        found.backend("a", plugins)
    assert found.backend("b", plugins).brought_by == f"plugin file {tmp_path}/rooks.py"


def test_a_model_without_an_entry_names_the_nearest(tmp_path: Path, plugins: Plugins) -> None:
    found = models(tmp_path, "gpt-4o: {model: m, tags: [wire]}\n")
    assert "has no entry 'gpt-4'; did you mean 'gpt-4o'?" in str(unknown("gpt-4", found, plugins))
    assert "debug-gym llm init" in str(unknown("gpt-4o", Models(), plugins))


# -- the command line


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["llm", *arguments, "--plugin-file", str(WIRE)], standalone_mode=True)
    return result.exit_code, result.output


def test_init_writes_a_file_for_its_owner_only_and_none_over_another(home: Path, tmp_path: Path) -> None:
    path = home / ".config" / "debug_gym" / "llm.yaml"
    for target, arguments in ((path, []), (tmp_path / "d" / "llm.yaml", [str(tmp_path / "d")])):
        assert CliRunner().invoke(main, ["llm", "init", *arguments]).exit_code == 0
        assert target.stat().st_mode & 0o777 == 0o600
        assert read_models(target).names == ["gpt-4o"]
        target.write_text("mine: {model: m}\n")
        refused = CliRunner().invoke(main, ["llm", "init", *arguments])
        assert refused.exit_code == 2 and "is there already" in refused.output
        assert read_models(target).names == ["mine"]
        target.chmod(0o644)
        assert CliRunner().invoke(main, ["llm", "init", "--force", *arguments]).exit_code == 0
        assert target.stat().st_mode & 0o777 == 0o600
        assert read_models(target).names == ["gpt-4o"]


def test_the_name_that_the_original_gave_to_init(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "debug-gym-init-llm-config"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and read_models(tmp_path / "llm.yaml").names == ["gpt-4o"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "is there already" in done.stderr and "Traceback" not in done.stderr
    done = subprocess.run([command[0], "-h"], capture_output=True, text=True)
    assert done.returncode == 0 and "-h, --help" in done.stdout


def test_list_shows_what_is_missing_and_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOWHERE", raising=False)
    path = tmp_path / "llm.yaml"
    path.write_text(
        f"good: {{model: m, tags: [wire], api_key: {KEY}, context_limit: 8, "
        "prices: {prompt: 1, completion: 2, cached: null}}\n"
        "keyless: {model: m, tags: [wire], api_key: '${NOWHERE}'}\nwrong: {tags: [wire]}\n"
        "unprepared: {model: m, tags: [wire], dialect: keyed, endpoint: 'http://me:pw@one.example/v1'}\n"
        "queried: {model: m, tags: [wire], endpoint: 'http://one.example?api-key=hidden@end'}\n"
        "'[red]odd': {model: {a: b}, tags: [wire], context_limit: x, prices: x}\n"
        f"moved: {{model: m, tags: [wire], context_limit: {KEY}, prices: {{prompt: {KEY}}}}}\n"
        f"colon: {{model: m, tags: [wire], api_key:{KEY}}}\n"
        f"bare: {{model: m, tags: [wire], {KEY}}}\n"
    )
    status, output = run("list", "--llm-config", str(path))
    assert status == 2 and KEY not in output, "there are entries that are wrong"
    lines = output.splitlines()
    assert lines[0] == f"{path}:" and str(path) not in "".join(lines[1:])
    assert lines[2].split() == ["good", "wire", "m", "8k", "1/2", "ready"]
    assert "line 2: the environment has no NOWHERE" in lines[3] and "line 3: wrong: model: it is missing" in lines[4]
    assert lines[5].endswith("m: there is no key")
    assert lines[7].split()[:5] == ["[red]odd", "wire", "line", "6:", "[red]odd:"]
    assert "context_limit: say a number; prices.prompt: say a number; " in lines[8]
    assert "unknown key 'api_key:***'" in lines[9] and "unknown key '***'" in lines[10]
    status, output = run("list", "--llm-config", str(path), "--json")
    assert [row["problem"] is None for row in json.loads(output)] == [True, *[False] * 8] and KEY not in output
    assert [row["endpoint"] for row in json.loads(output)[3:5]] == ["http://one.example/v1", "http://one.example"]
    assert json.loads(output)[4]["problem"].endswith("a query is generate_kwargs: {extra_query: {name: value}}")
    status, output = run("list")
    assert status == 0 and "debug-gym llm init" in output
    path.write_text("keyless: {model: m, tags: [wire], api_key: '${NOWHERE}'}\n")
    assert run("list", "--llm-config", str(path))[0] == 0, "what is missing is not wrong"
    path.write_text("keyless: {model: m, tags: [wire], api_key: '${NOWHERE}', endpiont: x}\n")
    status, output = run("list", "--llm-config", str(path))
    assert status == 2 and "unknown key 'endpiont'; did you mean 'endpoint'?" in output


def test_check_asks_once_and_says_what_is_wrong(tmp_path: Path) -> None:
    replies = [
        Reply({"text": "", "calls": [{"name": "ready", "arguments": {"word": "yes"}}], "prompt": 100}),
        Reply({"text": "I am ready"}),
        Reply({"error": f"no such key {KEY}"}, status=401),
        Reply({}, status=503),
    ]

    def answer(request: Request) -> Reply:
        return replies[len(server.requests) - 1]

    with ModelServer(answer) as server:
        path = tmp_path / "llm.yaml"
        path.write_text(
            f"mine: {{model: m, tags: [wire], api_key: {KEY}, endpoint: '{server.url}', "
            "prices: {prompt: 10000, completion: 0}}\n"
        )
        status, output = run("check", "mine", "--llm-config", str(path))
        assert status == 0 and "mine answered in " in output and "100 + 1 tokens, $1.000000" in output
        status, output = run("check", "mine", "--llm-config", str(path))
        assert status == 0 and "it called no tool but said 'I am ready'" in output
        status, output = run("check", "mine", "--llm-config", str(path))
        assert status == 1 and f'{path}:1: mine: m: {{"error": "no such key ***"}}' in output
        status, output = run("check", "mine", "--llm-config", str(path))
        assert status == 1 and "status 503" in output
        assert len(server.requests) == 4 and server.requests[0].headers["authorization"] == KEY
        with path.open("a") as file:
            file.write(f"lost: {{tags: [wire]}}\nother: {{model: o, tags: [wire], endpoint: '{server.url}'}}\n")
        replies += [Reply({"text": ""}), Reply({"text": ""})]
        status, output = run("check", "--llm-config", str(path))
        assert status == 2 and "mine answered in " in output and "other answered in " in output
        assert f"error: {path}:2: lost: model: it is missing" in output and len(server.requests) == 6
        path.write_text(f"mine: {{model: m, tags: [wire], endpoint: '{server.url}'}}\nlost: {{tags: [wire]}}\n")
        replies += [Reply({"error": "no"}, status=401)]
        assert run("check", "--llm-config", str(path))[0] == 2, "the highest of all, as that of `llm list`"
        path.write_text(
            "".join(f"{name}: {{model: m, tags: [wire], endpoint: '{server.url}'}}\n" for name in ("mine", "b"))
        )
        replies += [Reply({"calls": 5}), Reply({"text": ""})]
        status, output = run("check", "--llm-config", str(path))
        assert status == 3 and f"error: {path}:1: mine: llm wire: " in output and "b answered in " in output
        assert " cannot answer: TypeError: 'int' object is not iterable (wire_plugin.py:" in output
    assert run("check")[0] == 4 and "there is no ~/.config/debug_gym/llm.yaml; debug-gym llm init" in run("check")[1]
    status, output = run("check", "min", "--llm-config", str(path))
    assert status == 2 and "did you mean 'mine'?" in output


@pytest.mark.parametrize("name", ["human", "scripted"])
def test_what_asks_no_service_needs_no_check(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEBUG_GYM_PLUGINS", raising=False)
    (tmp_path / "llm.yaml").write_text("mine: {model: m, tags: [wire]}\n")
    for more in ((), ("--llm-config", str(tmp_path / "llm.yaml"))):
        status, output = run("check", name, *more)
        assert (status, output) == (
            0,
            f"{name} asks no service: it needs no entry in llm.yaml, and there is nothing to check\n",
        )
