"""`debug-gym config`: the effective config, and the schema of all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pydantic
import pytest
import yaml

from debug_gym_core.config.schema import schema
from debug_gym_core.plugins import load_plugins

TOY = Path(__file__).parent / "toy_plugin.py"


@pytest.fixture(scope="module")
def whole() -> Any:
    """The schema of everything that is installed here, and of the toy."""
    return schema(load_plugins(files=[TOY]))


def test_config_show_is_a_config(inside: Any, tmp_path: Path) -> None:
    done = inside("config", "show", "toy")
    assert done.status == 0 and "max_steps: 7 " in done.out
    (tmp_path / "c.yaml").write_text(done.out)
    again = inside("config", "show", "c.yaml", "-p", "run.output=exps")
    assert again.out == done.out


UNDESCRIBED = """
from collections.abc import Callable
from debug_gym_core import Settings, Tool, hookimpl

class CallSettings(Settings):
    \"\"\"Settings that have no schema.

    Attributes:
        key: sorts
    \"\"\"
    key: Callable = len

class Call(Tool):
    \"\"\"Has them.\"\"\"
    name = "call"
    Settings = CallSettings
    def use(self, env): return ""

@hookimpl
def debug_gym_register_tools(): return [Call]
"""

FAILING = """
    @classmethod
    def __get_pydantic_json_schema__(cls, core, handler): raise KeyError("of its own")
"""


def of_the_call(data: Any) -> Any:
    """What the schema of all configs says of the settings of the tool `call`."""
    (one,) = [part for part in data["properties"]["tools"]["items"]["anyOf"] if "properties" in part]
    return one["properties"]["call"]["properties"]


@pytest.mark.parametrize("failing", ["", FAILING])
def test_schema_is_printed_as_json(inside: Any, tmp_path: Path, failing: str) -> None:
    (tmp_path / "call.py").write_text(UNDESCRIBED.replace("= len\n", f"= len{failing}\n"))
    done = inside("config", "schema", "--plugin-file", "call.py")
    assert done.status == 0 and done.err == ""
    data = json.loads(done.out)
    assert of_the_call(data) == {"key": {"description": "sorts"}}
    assert data["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "toy" in json.dumps(data["properties"]["benchmark"]["properties"]["name"])


def test_a_default_that_json_has_not_is_left_out(inside: Any, tmp_path: Path) -> None:
    (tmp_path / "call.py").write_text(UNDESCRIBED.replace("Callable = len", "bytes = b'\\xff'"))
    done = inside("config", "schema", "--plugin-file", "call.py")
    assert done.status == 0 and done.err == ""
    assert of_the_call(json.loads(done.out)) == {"key": {"type": "string", "format": "binary", "description": "sorts"}}
    done = inside("plugins", "--check", "--plugin-file", "call.py")
    assert done.status == 0 and done.err == ""


def test_settings_of_the_core_that_have_no_schema_are_an_error(tmp_path: Path) -> None:
    own = "__module__ = 'debug_gym_core.call'\n    key: Callable"
    (tmp_path / "call.py").write_text(UNDESCRIBED.replace("key: Callable", own))
    with pytest.raises(pydantic.errors.PydanticInvalidForJsonSchema):
        schema(load_plugins(files=[tmp_path / "call.py"]))


def test_schema_has_every_key_with_its_words(whole: Any) -> None:
    sections = whole["properties"]
    assert sections["env"]["properties"]["run_timeout"]["description"].startswith("seconds that one run")
    assert sections["env"]["properties"]["run_timeout"]["default"] == 300
    assert "extra_tasks" in sections["benchmark"]["properties"]  # a setting of the toy
    assert "played" in sections["agent"]["properties"]
    assert "commands" in sections["llm"]["properties"]
    assert sections["fixer"]["properties"]["llm"] == {"$ref": "#/properties/llm"}
    for name, section in sections.items():
        assert section["description"], name
        if "object" in section.get("type", ()):
            assert section["additionalProperties"] is False, name


def test_schema_refers_to_what_is_there(whole: Any) -> None:
    def references(part: Any) -> list[str]:
        if isinstance(part, list):
            return [one for item in part for one in references(item)]
        if not isinstance(part, dict):
            return []
        here = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
        return here + [one for item in part.values() for one in references(item)]

    for reference in references(whole):
        part = whole
        for step in reference.removeprefix("#/").split("/"):
            part = part[step]


def valid(whole: Any, config: Any) -> bool:
    jsonschema = pytest.importorskip("jsonschema", reason="checks by the schema: pip install jsonschema")
    return bool(jsonschema.Draft202012Validator(whole).is_valid(config))


def test_schema_is_one(whole: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="checks the schema itself: pip install jsonschema")
    jsonschema.Draft202012Validator.check_schema(whole)


def test_shipped_configs_are_valid(whole: Any) -> None:
    plugins = load_plugins(files=[TOY])
    for name, benchmark in plugins.benchmarks.items():
        config = json.loads(json.dumps(benchmark.config))  # tuples are lists there
        assert valid(whole, {"benchmark": {"name": name}, **config}), name


def test_what_config_show_prints_is_valid(whole: Any, inside: Any) -> None:
    assert valid(whole, yaml.safe_load(inside("config", "show", "toy").out))


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"env": None},
        {"tools": ["sh", {"sh": None}, "acme:view", {"acme:view": {"x": 1}}]},
        {"terminal": {"name": "auto", "memory": "4g"}},
        {"fixer": {"agent": {"max_steps": 3}, "env": {"run_timeout": 5}}},
        {"benchmark": {"name": "toy", "extra_tasks": 3, "tasks": ["a", "b"]}},
        {"llm": {"name": "any-model-of-llm-yaml"}},
    ],
)
def test_what_is_accepted_is_valid(whole: Any, config: Any) -> None:
    assert valid(whole, config)


@pytest.mark.parametrize(
    "config",
    [
        {"envv": {}},
        {"env": {"run_timout": 1}},
        {"env": {"run_timeout": "soon"}},
        {"tools": ["shh"]},
        {"tools": [{"sh": {"x": 1}}]},
        {"tools": [{"sh": {}, "view": {}}]},
        {"terminal": {"name": "local", "pull": "never"}},
        {"terminal": {"name": "lokal"}},
        {"agent": {"foo": 1}},
        {"agent": {"name": "breaker", "played": "x"}},
        {"fixer": {"env": {"x": 1}}},
        {"benchmark": "toy"},
        {"benchmark": {"tasks": []}},
    ],
)
def test_what_is_refused_is_not_valid(whole: Any, config: Any) -> None:
    assert not valid(whole, config)
