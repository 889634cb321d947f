"""JSON Schema of the config, with the settings of every installed plugin: editors complete and check by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import pydantic
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind, models_json_schema

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.components.component import Component
from debug_gym_core.components.homes import HOMES
from debug_gym_core.config.model import COMPONENT_SECTIONS, ComponentSection, Config
from debug_gym_core.config.text import attribute_help

DRAFT = "https://json-schema.org/draft/2020-12/schema"
REFERENCES = "#/$defs/{model}"
QUALIFIED = "^[^:]+:[^:]+$"
"""`distribution:name`."""

Schema = dict[str, Any]
Model = type[pydantic.BaseModel]


class SettingsSchema(GenerateJsonSchema):
    """The schema of settings, which says nothing of a default that JSON has no word for."""

    def render_warning_message(self, kind: JsonSchemaWarningKind, detail: str) -> str | None:
        """What is warned of; None: nothing."""
        return None if kind == "non-serializable-default" else super().render_warning_message(kind, detail)


class _Lenient(SettingsSchema):
    """Leaves open what a plugin's settings may be that have no schema; `plugins --check` says that they have none."""

    def generate_inner(self, schema: Any) -> Schema:
        try:
            return super().generate_inner(schema)
        except Exception:
            model = schema.get("cls")
            if schema["type"] != "model" or _is_own(model):
                raise
            return {"properties": {name: {} for name in model.model_fields}}


def schema(plugins: Plugins) -> Schema:
    """Describe every config that would be accepted here.

    Args:
        plugins: what is installed

    Returns:
        a JSON Schema, draft 2020-12. It refuses unknown keys everywhere, and keys of components that a section does not
        choose. Names of tasks, models and files are not checked
    """
    models: list[Model] = [Config, *_settings(plugins)]
    inputs: list[tuple[Model, Literal["validation"]]] = [(model, "validation") for model in models]
    found, definitions = models_json_schema(inputs, ref_template=REFERENCES, schema_generator=_Lenient)
    parts: Schema = definitions.get("$defs", {})
    described = ((model, found[model, "validation"]) for model in models)
    known = {model: parts[_name(part)] if "$ref" in part else part for model, part in described}
    for model, part in known.items():
        _describe(part, model)
    sections = {name: _section(name, field.annotation, known, plugins) for name, field in Config.model_fields.items()}
    sections["tools"] = _tools(known, plugins)
    words = attribute_help(Config)
    for name, section in sections.items():
        section["description"] = words[name]
    overrides = {
        name: {
            "type": ["object", "null"],
            "description": f"Put over the other sections when {name} plays.",
            "additionalProperties": False,
            "properties": {key: {"$ref": f"#/properties/{key}"} for key in sections},
        }
        for name in plugins.agents
    }
    return {
        "$schema": DRAFT,
        "title": "debug-gym config",
        "description": "The config of a run; every section may be left out.",
        "type": "object",
        "additionalProperties": False,
        "properties": {**sections, **{name: part for name, part in overrides.items() if name not in sections}},
        "$defs": _used(parts, [*sections.values()]),
    }


def _settings(plugins: Plugins) -> list[Model]:
    """The models of all settings, each once."""
    kinds = (*COMPONENT_SECTIONS.values(), "tools")
    classes: Iterable[type[Component]] = (cls for kind in kinds for cls in getattr(plugins, kind).values())
    sections = [Config.model_fields[name].annotation for name in Config.model_fields]
    models: list[Model] = [
        model for model in sections if isinstance(model, type) and issubclass(model, pydantic.BaseModel)
    ]
    return list(dict.fromkeys([*models, *(cls.Settings for cls in classes)]))


def _is_own(model: Model) -> bool:
    """Whether settings are the core's own."""
    return model.__module__.partition(".")[0] == __name__.partition(".")[0]


def _section(name: str, annotation: Any, known: Mapping[Any, Schema], plugins: Plugins) -> Schema:
    if annotation not in known:
        part: Schema = dict(known[Config]["properties"][name])
        part.pop("title", None)
        return part
    own = known[annotation]
    section: Schema = {"type": ["object", "null"], "additionalProperties": False, "properties": own["properties"]}
    if not issubclass(annotation, ComponentSection):
        return section
    classes: Mapping[str, type[Component]] = getattr(plugins, COMPONENT_SECTIONS[name])
    properties = {key: [part] for key, part in own["properties"].items()}
    for cls in classes.values():
        for key, part in known[cls.Settings].get("properties", {}).items():
            if key not in own["properties"] and part not in properties.setdefault(key, []):
                properties[key].append(part)
    section["properties"] = {key: one[0] if len(one) == 1 else {"anyOf": one} for key, one in properties.items()}
    section["properties"]["name"] = _names(name, classes, own["properties"]["name"])
    if name == "benchmark":
        section["properties"]["tasks"] = _tasks(own["properties"]["tasks"])
    section["allOf"] = [_only(cls, own["properties"]) for cls in classes.values()]
    if not section["allOf"]:
        del section["allOf"]
    return section


def _names(section: str, classes: Iterable[str], own: Schema) -> Schema:
    """What `name` of a section may be."""
    names = list(dict.fromkeys([*classes, *HOMES[COMPONENT_SECTIONS[section]]]))
    if section == "llm":  # models of llm.yaml as well
        return {**own, "examples": names}
    known = ["auto", *names] if section == "terminal" else names
    about: Schema = {key: own[key] for key in ("default", "description") if key in own}
    return {**about, "anyOf": [{"enum": known}, {"type": "string", "pattern": QUALIFIED}]}


def _tasks(own: Schema) -> Schema:
    about: Schema = {key: own[key] for key in ("default", "description") if key in own}
    one = {"type": "string", "minLength": 1}
    return {**about, "anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}


def _only(cls: type[Component], own: Mapping[str, Any]) -> Schema:
    """A section that chooses this component has its keys and none of another's."""
    chosen = {"type": "object", "properties": {"name": {"const": cls.name}}, "required": ["name"]}
    return {"if": chosen, "then": {"propertyNames": {"enum": list(dict.fromkeys([*own, *cls.Settings.model_fields]))}}}


def _tools(known: Mapping[Any, Schema], plugins: Plugins) -> Schema:
    names = list(dict.fromkeys([*plugins.tools, *HOMES["tools"]]))
    configured: Schema = {}
    for name in names:
        cls = plugins.tools.get(name)
        part: Schema = {"type": ["object", "null"]}
        if cls is not None:
            properties = known[cls.Settings].get("properties", {})
            part.update(additionalProperties=False, properties=properties, description=cls.help().partition("\n")[0])
        configured[name] = part
    one = {
        "anyOf": [
            {"enum": names},
            {"type": "string", "pattern": QUALIFIED},
            {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                "additionalProperties": False,
                "properties": configured,
                "patternProperties": {QUALIFIED: {"type": ["object", "null"]}},
            },
        ]
    }
    return {"type": "array", "items": one, "default": known[Config]["properties"]["tools"]["default"]}


def _describe(part: Schema, model: type[pydantic.BaseModel]) -> None:
    """Put what the docstrings say to a model's properties, and leave out the titles that pydantic makes up."""
    words = attribute_help(model)
    for key, one in part.get("properties", {}).items():
        one.pop("title", None)
        if key in words:
            one["description"] = words[key]


def _used(parts: Mapping[str, Schema], roots: Iterable[Any]) -> Schema:
    """The definitions that are referred to, directly or by one another."""
    wanted: Schema = {}
    waiting = [name for root in roots for name in _references(root)]
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted[name] = parts[name]
            waiting += _references(parts[name])
    return dict(sorted(wanted.items()))


def _references(part: Any) -> list[str]:
    if isinstance(part, list):
        return [name for one in part for name in _references(one)]
    if not isinstance(part, dict):
        return []
    here = [_name(part)] if isinstance(part.get("$ref"), str) and part["$ref"].startswith("#/$defs/") else []
    return here + [name for one in part.values() for name in _references(one)]


def _name(reference: Mapping[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]
