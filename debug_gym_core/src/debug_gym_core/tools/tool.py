"""Tools: what an agent can do in an environment.

A tool is a class with a `name`, a docstring that tells the agent what it is for, and a method `use` whose signature and
docstring become the JSON Schema that models are shown and that arguments are checked against.
"""

from __future__ import annotations

import abc
import inspect
import json
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, cast, get_type_hints

import pydantic

from debug_gym_core import strict_json
from debug_gym_core.components.component import Component, MadeAnew, in_words
from debug_gym_core.errors import ActionError, PluginError, cause_of
from debug_gym_core.names import nearest
from debug_gym_core.tools.flags import flag_for_number, schema_of
from debug_gym_core.tools.references import as_json
from debug_gym_core.tools.samples import sample

LARGEST = 2**63
"""Whole numbers from here on are refused: no file has so many lines, and not every program can write them down."""


class Tool(MadeAnew, Component, abc.ABC):
    """Base of all tools.

    An instance belongs to one environment and may keep state between steps. A copy of it has none: that is made anew,
    with the same arguments, as `gymnasium.make(env.spec)` does. A tool takes part in events by methods of the names in
    `debug_gym_core.tools.events`, marked `@hookimpl`.

    Attributes:
        name: what agents call it
        examples: argument sets that are right, shown when an agent's are wrong
        ends_like: text arguments and those that they must end like: in the text form, the last line end of a block that
            is the first is left out where the second ends without one
        sets_breakpoints: whether it sets those of the environment: programs are told them, as by it, after each step
    """

    examples: ClassVar[tuple[dict[str, Any], ...]] = ()
    ends_like: ClassVar[Mapping[str, str]] = types.MappingProxyType({})
    sets_breakpoints: ClassVar[bool] = False

    def __init__(self, **settings: Any) -> None:
        """Check the settings, and that the tool can be called.

        Args:
            settings: fields of `Settings`

        Raises:
            UsageError: a setting is unknown or has a wrong type
            PluginError: the signature of `use` is none that can be called with the arguments of a model
        """
        super().__init__(**settings)
        self.schema()

    use: ClassVar[Any]
    """The method that carries out one call, `use(self, env, ...) -> str | Observation`.

    It raises ActionError for what the agent did wrong. The arguments are named, typed and documented in the docstring's
    `Args:`; one without a default is required.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not inspect.isabstract(cls) and "use" not in dir(cls):
            raise TypeError(f"{cls.__name__} must have a method use(self, env, ...)")
        if "use" in vars(cls):
            _check_first(cls)
        for name in ("check", "parameters", "schema"):
            if name in vars(cls):
                raise TypeError(f"{cls.__name__}.{name} takes the place of Tool.{name}; give the method another name")

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """The tool as JSON Schema for function calling: `name`, `description`, `parameters`.

        Raises:
            PluginError: the signature of `use` is none that can be called with the arguments of a model
        """
        return cast("dict[str, Any]", json.loads(_signature(cls).schema_json))

    @classmethod
    def check(cls, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
        """Check a call's arguments against the signature.

        Args:
            arguments: by name, None counts as left out; text, as a call may have it, is refused

        Returns:
            the arguments that were given, with the types of the signature

        Raises:
            ActionError: an argument is unknown, missing or of a wrong type; says which, what is expected, an example
        """
        return _signature(cls).check(arguments)

    @classmethod
    def parameters(cls) -> list[str]:
        """Names of the arguments in order."""
        return [parameter.name for parameter in _signature(cls).parameters]

    def interrupt(self) -> bool:
        """Have `use`, which another thread is in, come back soon, as a person expects of Ctrl-C; whether it will.

        Called where nothing is under way that `env.interruption` ends.
        """
        return False

    def close(self) -> None:
        """Free what the tool holds; called at the end of the environment, and before each reset."""


PLAIN = re.compile(r"(str|int|float|bool|list|dict|List|Dict)\b.*", re.DOTALL)
"""Types that arguments of an agent's have, and no environment."""


def _check_first(tool: type[Tool]) -> None:
    """Refuse a `use` whose first argument is one of the agent's, by its type and documentation.

    Raises:
        TypeError: it is
    """
    given = list(inspect.signature(tool.use).parameters.values())[1:]
    first = given[0] if given else None
    if first is None:
        what = "has none"
    else:
        typed = "" if first.annotation is first.empty else inspect.formatannotation(first.annotation).strip("'")
        explained = first.name in _arguments_of(inspect.getdoc(tool.use) or "")
        if PLAIN.fullmatch(typed):
            what = f"is {first.name}: {typed}"
        elif not typed and explained and not first.name.startswith("env"):
            what = f"is {first.name!r}, which its docstring explains as one of the agent's"
        else:
            return
    raise TypeError(f"{tool.__name__}.use: its first argument is the environment, use(self, env, ...); this one {what}")


@dataclass(frozen=True)
class Parameter:
    """One argument of a tool."""

    name: str
    required: bool
    default: Any
    annotation: Any
    help: str


class _Signature:
    """What the signature and docstring of a tool's `use` say."""

    def __init__(self, tool: type[Tool]) -> None:
        self.tool = tool
        function = tool.use
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise PluginError(f"{tool.__name__}.use must answer at once: def, not async def")
        if inspect.isgeneratorfunction(function):
            raise PluginError(f"{tool.__name__}.use must return its answer, not yield it")
        documented = _arguments_of(inspect.getdoc(function) or "")
        self.parameters: list[Parameter] = []
        fields: dict[str, Any] = {}
        for parameter in list(inspect.signature(function).parameters.values())[2:]:
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                raise PluginError(f"{tool.__name__}.use must name its arguments, not take *{parameter.name}")
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise PluginError(f"{tool.__name__}.use must take its arguments by name, not {parameter.name} before /")
            required = parameter.default is parameter.empty
            annotation = _type_of(tool, parameter)
            help_text = documented.get(parameter.name, "")
            default = ... if required else parameter.default
            self.parameters.append(Parameter(parameter.name, required, parameter.default, annotation, help_text))
            field = pydantic.Field(default, alias=parameter.name, description=help_text or None)
            fields[_field_of(parameter.name)] = (annotation, field)
        self.model = _model_of(tool, fields)
        parameters = self.model.model_json_schema()
        parameters.pop("title", None)
        parameters.setdefault("properties", {})
        for one in parameters["properties"].values():
            one.pop("title", None)
        parameters["additionalProperties"] = False
        self.kinds = schema_of(self.model)
        self.schema_json = json.dumps({"name": tool.name, "description": tool.help(), "parameters": parameters})

    def check(self, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
        """See `Tool.check`."""
        if not isinstance(arguments, Mapping):
            raise ActionError(self._explain(f"the arguments must be an object, not {_show(arguments)}"))
        odd = next((name for name in arguments if not isinstance(name, str)), "")
        if not isinstance(odd, str):
            raise ActionError(self._explain(f"the name of an argument is text, not {type(odd).__name__}"))
        known = {parameter.name: parameter for parameter in self.parameters}
        given = {name: value for name, value in arguments.items() if value is not None}
        unknown = sorted(set(arguments) - set(known))
        if unknown:
            raise ActionError(self._explain(f"unknown argument {unknown[0][:80]!r}{nearest(unknown[0][:80], known)}"))
        lacking = next((one for one in self.parameters if one.required and one.name not in given), None)
        try:
            return self._checked(given, self.model(**given))
        except pydantic.ValidationError as error:
            said = []
            found = [one for one in error.errors() if one["type"] != "missing" or len(one["loc"]) > 1]
            if found:
                item = max(found, key=lambda one: len(one["loc"]))  # of the choices of a type, what came furthest
                name = str(item["loc"][0]) if item["loc"] else ""
                said.append(self._wrong(name, in_words(item) + self._as_text(name, given), item["input"]))
            if lacking is not None:
                said.append(f"missing argument {lacking.name!r}" + (f": {lacking.help}" if lacking.help else ""))
            raise ActionError(self._explain("; ".join(said))) from None
        except RecursionError:
            raise ActionError(self._explain("the arguments are nested too deeply")) from None

    def _checked(self, given: Mapping[str, Any], model: pydantic.BaseModel) -> dict[str, Any]:
        """What was made of arguments, in which each number is one."""
        checked = {name: getattr(model, _field_of(name)) for name in given}
        for name, value in checked.items():
            if flag_for_number(given[name], self.kinds["properties"][name], self.kinds.get("$defs", {})):
                raise ActionError(self._explain(self._wrong(name, "true and false are no numbers", given[name])))
            if (isinstance(value, int) and abs(value) >= LARGEST) or not strict_json.is_finite(value):
                raise ActionError(self._explain(f"argument {name!r}: the number is too large, or none"))
        return checked

    def _as_text(self, name: str, given: Mapping[str, Any]) -> str:
        """How the text form says the value of an argument, where a word was taken as it is and JSON is wanted."""
        if not isinstance(given.get(name), str):
            return ""
        how = as_json(name, self.kinds["properties"][name], self.kinds.get("$defs", {}))
        return f" (in a line of text it is {how})" if how else ""

    def _wrong(self, name: str, what: str, given: Any) -> str:
        help_text = next((f" ({one.help})" for one in self.parameters if one.name == name and one.help), "")
        return f"argument {name!r}{help_text}: {what}, got {_show(given)}"

    def _explain(self, what: str) -> str:
        return f"{self.tool.name}: {what}\n{self.expected()}"

    def expected(self) -> str:
        """How it is called, in lines: the text form, and an example where there is one that is right."""
        example = self.example()
        return f"expected: {self.usage()}" + (f"\nexample: {example}" if example else "")

    def usage(self) -> str:
        """The tool's text form with optional arguments in brackets."""
        words = [p.name if p.required else f"[{p.name}]" for p in self.parameters]
        return " ".join([self.tool.name, *words])

    def example(self) -> str:
        """A call that is right, as JSON; empty: none is known."""
        call = {"name": self.tool.name, "arguments": self.examples()[0]}
        return json.dumps(call, ensure_ascii=False) if self.has_example else ""

    def examples(self) -> tuple[dict[str, Any], ...]:
        """The tool's own examples, else the required arguments, made up, which `has_example` looks at."""
        if self.tool.examples:
            return self.tool.examples
        parameters = json.loads(self.schema_json)["parameters"]
        return (sample(parameters, parameters.get("$defs", {})),)

    @cached_property
    def has_example(self) -> bool:
        """Whether `examples` are right; nothing that is made up is known to be a date, or above a bound."""
        if self.tool.examples:
            return True
        try:
            self.model(**self.examples()[0])
        except Exception:  # validators are the plugin's code, which may raise anything
            return False
        return True


@cache
def _signature(tool: type[Tool]) -> _Signature:
    """What `use` says.

    Raises:
        PluginError: nobody can call it
    """
    try:
        return _Signature(tool)
    except Exception as error:  # its annotations and defaults are the plugin's code, which may raise anything
        raise PluginError(f"tool {tool.name}: {cause_of(error)}") from error


def _field_of(argument: str) -> str:
    """What an argument is called in the model, where names such as `json`, `copy` and `_x` mean something else."""
    return f"argument_{argument}"


def _model_of(tool: type[Tool], fields: Mapping[str, Any]) -> type[pydantic.BaseModel]:
    """What arguments are checked against.

    Args:
        tool: whose they are
        fields: type and pydantic's field of each

    Raises:
        PluginError: no argument can be of the type of one
    """
    config = pydantic.ConfigDict(extra="forbid", strict=False)
    try:
        return pydantic.create_model(tool.__name__, __config__=config, **fields)
    except pydantic.errors.PydanticSchemaGenerationError:
        if len(fields) > 1:
            for name, field in fields.items():  # It does not say which.
                _model_of(tool, {name: field})
            raise
    ((annotation, field),) = fields.values()
    raise PluginError(
        f"{tool.__name__}.use: no argument of a model's can be of the type of {field.alias}, {annotation!r:.80}; "
        "say str, int, float, bool, a list or dict of these, or a pydantic model"
    )


def _type_of(tool: type[Tool], parameter: inspect.Parameter) -> Any:
    """The type of an argument; those of `env` and of the result may be imported for type checking only.

    Raises:
        PluginError: its name is not known when the program runs
    """
    if parameter.annotation is parameter.empty:
        return str
    named = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        space = inspect.unwrap(tool.use).__globals__
        return get_type_hints(named, globalns=space, include_extras=True)[parameter.name]
    except NameError as error:
        raise PluginError(
            f"{tool.__name__}.use: the type of {parameter.name}, {parameter.annotation!r}, is not known when the"
            f" program runs ({error}); import it outside of `if TYPE_CHECKING`"
        ) from error


def _arguments_of(doc: str) -> dict[str, str]:
    """The `Args:` section of a Google-style docstring: help by argument name."""
    if doc.startswith("Args:\n"):  # the first line: getdoc has taken the indentation of the others away
        doc = doc.replace("\n", "\n    ")
    found: dict[str, str] = {}
    name = None
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)*)", doc, re.MULTILINE)
    for line in section.group(1).splitlines() if section else ():
        start = re.match(r"^(?: {1,4}|\t)(\w+)(?: \([^)]*\))?: (.*)$", line)
        if start:
            name = start.group(1)
            found[name] = start.group(2).strip()
        elif name and line.strip():
            found[name] += " " + line.strip()
    return found


def _show(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def usage(tool: type[Tool]) -> str:
    """A tool's text form, optional arguments in brackets."""
    return _signature(tool).usage()


def example(tool: type[Tool]) -> str:
    """A call of a tool that is right, as JSON; empty: none is known."""
    return _signature(tool).example()


def expected(tool: type[Tool]) -> str:
    """How a tool is called, in lines: its text form, and an example where there is one that is right."""
    return _signature(tool).expected()


def examples(tool: type[Tool]) -> tuple[dict[str, Any], ...]:
    """Arguments of a tool: its own examples, else those that are required, made up."""
    return _signature(tool).examples()
