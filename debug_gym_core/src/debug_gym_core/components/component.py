"""What every pluggable class has in common: a name, a help text, typed settings."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self, TypeAlias, TypeVar, get_args

import pydantic

from debug_gym_core.errors import NO_FAULT, DebugGymError, PluginError, UsageError, cause_of, place_of
from debug_gym_core.redaction import SECRET, may_be_key, name_alone, redact


class Settings(pydantic.BaseModel):
    """Base of all settings: frozen, and an unknown key is an error."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


_Checked: TypeAlias = Settings  # in the class below its name is that of an attribute


class Component:
    """Base of the classes that plugins provide.

    A component is a class with a `name`, a docstring that is its help, and `Settings` that the config checks.

    Attributes:
        name: what a config calls it; unique among the components of its kind
        brought_by: the plugin that registered it, as errors name it
        settings: the checked settings of this instance
    """

    name: ClassVar[str]
    brought_by: ClassVar[str] = "its plugin"
    Settings: ClassVar[type[Settings]] = Settings

    def __init__(self, **settings: Any) -> None:
        """Check and keep the settings.

        Args:
            settings: fields of `Settings`

        Raises:
            UsageError: a setting is unknown or has a wrong type
        """
        self.settings = self.check_settings(settings)

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> _Checked:
        """Check settings without making the component.

        Args:
            settings: fields of `Settings`

        Raises:
            UsageError: a setting is unknown or has a wrong type
            PluginError: a validator fails otherwise
        """
        try:
            return validated(cls, settings)
        except pydantic.ValidationError as error:
            raise UsageError(f"{cls.name}: {explain(error, cls.Settings)}") from None

    @classmethod
    def help(cls) -> str:
        """The component's docstring, cleaned of indentation."""
        return inspect.getdoc(cls) or ""


class MadeAnew:
    """Base of what is copied, and pickled, by making it anew: what it has come to hold since may be live."""

    def __new__(cls, *arguments: Any, **settings: Any) -> Self:
        """Keep what it is made with; see the constructor."""
        made = super().__new__(cls)
        vars(made)["_made_with"] = arguments, settings
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """How a copy is made: as this was, by the same arguments."""
        return _anew, (type(self), *vars(self)["_made_with"])


def _anew(cls: type[Any], arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    return cls(*arguments, **settings)


Made = TypeVar("Made", bound=Component)


def construct(cls: type[Made], **settings: Any) -> Made:
    """Make a component of another's class.

    Args:
        cls: its class
        settings: fields of its `Settings`

    Raises:
        UsageError: a setting is unknown or has a wrong type
        PluginError: its constructor fails otherwise
    """
    try:
        return cls(**settings)
    except (DebugGymError, *NO_FAULT):
        raise
    except BaseException as error:
        raise failure(cls, "make it", error) from error


def validated(cls: type[Component], settings: Mapping[str, Any]) -> Settings:
    """The settings of a component of another's class.

    Args:
        cls: its class
        settings: fields of its `Settings`

    Raises:
        pydantic.ValidationError: a setting is unknown or has a wrong type
        PluginError: a validator fails otherwise
    """
    try:
        return cls.Settings(**settings)
    except (pydantic.ValidationError, DebugGymError, *NO_FAULT):
        raise
    except BaseException as error:
        raise failure(cls, "check its settings", error) from error


@contextlib.contextmanager
def blamed(cls: type[Component], what: str) -> Iterator[None]:
    """Name a component of another's class as what failed, and where, in a block that asks it something.

    An error that is raised on purpose passes, and so does what the system refuses.

    Args:
        cls: its class
        what: is asked of it, in words: `list its tasks`

    Raises:
        PluginError: the block fails otherwise
    """
    try:
        yield
    except (DebugGymError, *NO_FAULT):
        raise
    except BaseException as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise failure(cls, what, error) from error


def failure(cls: type[Component], what: str, error: BaseException) -> PluginError:
    """The error that names a component of another's class as what failed, and where.

    Args:
        cls: its class
        what: could not be done with it, in words: `make it`
        error: what its code raised
    """
    said = redact(cause_of(error))
    kind = next(base.__name__.lower() for base in cls.__mro__ if Component in base.__bases__)
    return PluginError(f"{kind} {cls.name}: {cls.brought_by} cannot {what}: {said} ({place_of(error)})")


def explain(
    error: pydantic.ValidationError, model: type[pydantic.BaseModel] | None = None, *, keys: bool = False
) -> str:
    """Say in one line what is wrong with values that a pydantic model refused.

    Args:
        error: what pydantic raised
        model: the model, to name the nearest known key when a key is unknown, and to repeat no value of a field whose
            `repr` is false
        keys: whether any of them may be a key that stands in a wrong place, and is not repeated either

    Returns:
        `key.path: what is wrong`, several joined by `; `
    """
    return in_a_line(error.errors(), model, keys=keys)


def in_a_line(
    problems: Iterable[Mapping[str, Any]], model: type[pydantic.BaseModel] | None = None, *, keys: bool = False
) -> str:
    """Say in one line what is wrong with values.

    Args:
        problems: as pydantic tells them (`ValidationError.errors`)
        model: as for `explain`
        keys: likewise

    Returns:
        `key.path: what is wrong`, several joined by `; `
    """
    from debug_gym_core.names import nearest

    parts = []
    for item in problems:
        where = ".".join(name_alone(str(step)) if keys else str(step) for step in item["loc"])
        if item["type"] == "extra_forbidden" and model is not None:
            known = _fields_at(model, item["loc"][:-1])
            parts.append(f"unknown key {where!r}{nearest(str(item['loc'][-1]), known)}")
        else:
            text = in_words(item)
            given = item.get("input")
            # What may hold a key is not repeated.
            secret = isinstance(given, Mapping) or SECRET.search(where) or _is_hidden(model, item["loc"])
            secret = secret or (keys and may_be_key(given))
            got = "" if secret else f" (got {redact(repr(given)):.80})"
            parts.append(f"{where}: {text}{got}" if where else text)
    return "; ".join(parts)


def in_words(problem: Mapping[str, Any]) -> str:
    """What is wrong with a value, in words of a person's where pydantic has its own."""
    kind, _, what = str(problem["type"]).partition("_")
    if kind in _KINDS and what in ("type", "parsing", "parsing_size", "from_float"):
        return f"say {_KINDS[kind]}"
    said = _BOUNDS.get(problem["type"])
    if said is not None:
        return said.format(**{name: _plain(value) for name, value in problem.get("ctx", {}).items()})
    text = str(problem["msg"]).removeprefix("Value error, ")  # which pydantic puts before words of ours
    return text.replace("Input should be", "it must be")


def _plain(value: Any) -> str:
    """A bound or a list of choices, as one writes it."""
    return f"{value:g}" if isinstance(value, float) else str(value).replace("'", "")


_BOUNDS = {
    "greater_than_equal": "say {ge} or more",
    "greater_than": "say more than {gt}",
    "less_than_equal": "say {le} or less",
    "less_than": "say less than {lt}",
    "literal_error": "say {expected}",
    "enum": "say {expected}",
    "finite_number": "say a finite number",
    "missing": "it is missing",
    "string_too_short": "it is too short",
    "too_short": "it is too short",
}


_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping",
    "path": "a path",
}


def _is_hidden(model: type[pydantic.BaseModel] | None, path: tuple[int | str, ...]) -> bool:
    """Whether the value at a path below `model` is, or is part of, one that a model does not show of itself.

    A step of a path may be an index, a key or the name of a type: then, as for all steps, any model that was come
    through may have its field.
    """
    models = {model} if model else set()
    for start in range(len(path)):
        for one in tuple(models):
            for name, field in one.model_fields.items():
                if any(list(path[start : start + len(key)]) == key for key in _keys(name, field)):
                    if not all(_shows(base, name) for base in one.__mro__):
                        return True
                    models |= _models_in(field.annotation)
    return False


def _keys(name: str, field: pydantic.fields.FieldInfo) -> Iterator[list[int | str]]:
    """The names of a field, each as the path of what is given for it."""
    alias = field.validation_alias
    for key in (name, field.alias, *(alias.choices if isinstance(alias, pydantic.AliasChoices) else (alias,))):
        if key is not None:
            yield key.path if isinstance(key, pydantic.AliasPath) else [key]


def named(model: type[pydantic.BaseModel], path: tuple[str, ...]) -> tuple[str, ...]:
    """A path in what a model is made from as one in what it has: by the names of its fields, not by their aliases."""
    for name, field in model.model_fields.items():
        for key in _keys(name, field):
            if path[: len(key)] == tuple(map(str, key)):
                rest = path[len(key) :]
                inner = next(iter(_models_in(field.annotation)), None)
                return (name, *(named(inner, rest) if inner else rest))
    return path


def _shows(base: type, name: str) -> bool:
    field = getattr(base, "model_fields", {}).get(name)
    return field is None or bool(field.repr)


def _models_in(annotation: Any) -> set[type[pydantic.BaseModel]]:
    """The models that values of a type have in them."""
    if inspect.isclass(annotation) and issubclass(annotation, pydantic.BaseModel):
        return {annotation}
    return set().union(*map(_models_in, get_args(annotation)))


def _fields_at(model: type[pydantic.BaseModel], path: tuple[int | str, ...]) -> Mapping[str, pydantic.fields.FieldInfo]:
    """The fields of the model that lies at a path below `model`."""
    for step in path:
        field = model.model_fields.get(str(step))
        inner = field.annotation if field else None
        if not (inspect.isclass(inner) and issubclass(inner, pydantic.BaseModel)):
            return {}
        model = inner
    return model.model_fields
