"""The models that a person has configured: llm.yaml, read and made into backends."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

from debug_gym_core.components.catalogue import log
from debug_gym_core.components.component import construct, explain, validated
from debug_gym_core.config.layers import KeyPath, Layer, leaves, read_file
from debug_gym_core.config.spellings import ENTRY
from debug_gym_core.errors import NO_FAULT, PluginError, RequirementError, UnknownName, UsageError
from debug_gym_core.names import nearest
from debug_gym_core.places import expanded
from debug_gym_core.redaction import SECRET, SENT_WITH, name_alone, redact, remember

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.models.llm import LLM

VARIABLE = "LLM_CONFIG_FILE_PATH"
DEFAULT = Path("~/.config/debug_gym/llm.yaml")
BACKEND = "openai"
"""The backend of an entry whose tags name none."""
GIVEN = "the config's llm section"
"""Where values come from that a config has for a model."""

NAMED = ("model",)
"""The setting whose value names the model: it is said wherever the model is, whoever says it."""

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

_WORDS = re.compile(r"[A-Za-z]+([-_. ][A-Za-z]+)*|[0-9.]+")
"""What is no secret unless its name says that it is one, such as `medium` and `0.25`."""


@dataclass(frozen=True)
class Models:
    """The entries of an llm.yaml.

    Attributes:
        path: the file; None: there is none
        layer: what it says, each value with its line
    """

    path: Path | None = None
    layer: Layer = field(default_factory=Layer)

    @property
    def names(self) -> list[str]:
        """The models that have an entry."""
        return list(self.layer.data)

    def values(self, name: str) -> dict[str, Any]:
        """What an entry says, as it stands: nothing of the environment is in it.

        Raises:
            UsageError: the entry is no mapping
        """
        values = self.layer.data[name]
        if not isinstance(values, dict):
            raise UsageError(f"{self.layer.origin((name,))}: {name} must be a mapping, as in {{model: gpt-4o}}")
        return values

    def backend(self, name: str, plugins: Plugins) -> type[LLM]:
        """The backend that talks to a model: the one with a tag of the entry's, or with a tag as its name, else openai.

        Args:
            name: an entry
            plugins: what is installed

        Raises:
            UsageError: the entry is wrong
            PluginError: the backend's plugin failed
            RequirementError: the backend is not installed
        """
        tags = self.values(name).get("tags") or ()
        if not isinstance(tags, list | tuple):
            raise UsageError(f"{self.layer.origin((name, 'tags'))}: {name}: tags are a list, as in [openai]")
        wanted = {str(tag).casefold() for tag in tags}
        for key, cls in plugins.llms.items():
            if key in wanted or wanted & {tag.casefold() for tag in getattr(cls, "tags", ())}:
                return cls
        from debug_gym_core.components.homes import HOMES

        chosen = next((key for key in HOMES["llms"] if key in wanted or key.replace("-", " ") in wanted), None)
        if chosen is None:
            brought = self._brought(name, tags, plugins)
            if brought is not None:
                return brought
            self._refuse_misspelt(name, tags, {*HOMES["llms"], *plugins.llms})
            chosen = BACKEND
        try:
            found: type[LLM] = plugins.get("llms", chosen)
        except UsageError as error:
            raise RequirementError(f"{self.layer.origin((name,))}: {error}") from None
        return found

    def _brought(self, name: str, tags: Sequence[Any], plugins: Plugins) -> type[LLM] | None:
        """The backend that a tag names by its distribution, too; None: no tag does.

        Raises:
            PluginError: a tag is of a backend whose plugin failed, or of two
            UsageError: it is of one whose plugin is disabled; its key would be sent to the service of another
        """
        named = sorted(map(str, tags), key=lambda tag: ":" not in tag)
        for tag in dict.fromkeys([*named, *(tag.casefold() for tag in named)]):
            found = _looked_up(tag, plugins)
            if isinstance(found, Exception):
                raise type(found)(f"{self.layer.origin((name, 'tags'))}: {name}: {found}")
            if found is not None:
                return found
        return None

    def _refuse_misspelt(self, name: str, tags: Sequence[Any], backends: set[str]) -> None:
        """Refuse a tag that is nearly a backend's: its key would be sent to the service of another."""
        for tag in map(str, tags):
            near = difflib.get_close_matches(tag.casefold(), sorted(backends), n=1, cutoff=0.75)
            if near:
                where = self.layer.origin((name, "tags"))
                raise UsageError(f"{where}: {name}: no backend has the tag {tag!r}; did you mean {near[0]!r}?")

    def refuse_unknown_keys(self, name: str, plugins: Plugins) -> None:
        """Refuse an entry that says what nobody reads, whatever of the environment it needs.

        Args:
            name: an entry
            plugins: what is installed

        Raises:
            UsageError: it does, or is wrong otherwise
            RequirementError: its backend is not installed
        """
        known = self.backend(name, plugins).Settings
        values = self.values(name)
        refused = set()
        try:
            known.model_validate(values)
        except pydantic.ValidationError as error:  # of others, variables may be the cause
            refused = {one["loc"] for one in error.errors() if one["type"] == "extra_forbidden"}
        except NO_FAULT:
            raise
        except BaseException as error:  # of a validator of somebody's own: told where the entry is used
            log.debug("%s cannot be checked", name, exc_info=error)
        for key in values:
            if (key,) in refused:
                names = [field.alias or name for name, field in known.model_fields.items()]
                shown = name_alone(key)
                gone = f"{key!r} {ENTRY[key]}" if key in ENTRY else f"unknown key {shown!r}{nearest(shown, names)}"
                raise UsageError(f"{self.layer.origin((name, key))}: {name}: {gone}")

    def make(self, name: str, plugins: Plugins, given: Mapping[str, Any]) -> LLM:
        """A model, ready to be asked.

        Args:
            name: an entry
            plugins: what is installed
            given: settings that a config has for it; None counts as left out. They take the place of the entry's, key
                by key, also of those that its `generate_kwargs` have

        Raises:
            UsageError: a key of the entry is unknown, or a value is wrong
            PluginError: the backend cannot tell whether one is
            RequirementError: a variable of the environment that the entry names is not set, or the backend is missing
        """
        from debug_gym_core.models.answer_bounds import bounds_answer, names_sent, without
        from debug_gym_core.models.service import ServiceLLM

        self.refuse_unknown_keys(name, plugins)
        cls = self.backend(name, plugins)
        references: dict[KeyPath, str] = {}
        entry = self._resolved(name, references)
        known = cls.Settings.model_fields
        chosen = Layer({key: value for key, value in given.items() if value is not None and key in known}, name=GIVEN)
        names = names_sent(chosen.data)
        if isinstance(entry.data.get("generate_kwargs"), Mapping):
            entry.data["generate_kwargs"] = without(entry.data["generate_kwargs"], names)
        if bounds_answer(names):
            entry.data.pop("max_tokens", None)
        settings = chosen.over(entry)
        try:
            try:
                validated(cls, settings.data)
            except pydantic.ValidationError as error:
                self._type(name, settings, {tuple(map(str, one["loc"])) for one in error.errors()})
                validated(cls, settings.data)
        except pydantic.ValidationError as error:
            where = _where(settings, error.errors()[0])
            raise UsageError(redact(f"{where}: {name}: {explain(error, cls.Settings, keys=True)}")) from None
        except PluginError as error:
            raise PluginError(f"{self.layer.origin((name,))}: {name}: {error}") from error
        try:
            llm = construct(cls, **settings.data)
        except UsageError as error:
            raise UsageError(f"{self.layer.origin((name,))}: {name}: {error}") from None
        if isinstance(llm, ServiceLLM):
            llm.entry = name
            llm.settings.came_from({path: text for path, text in references.items() if settings.origin(path) != GIVEN})
        return llm

    def _resolved(self, name: str, references: dict[KeyPath, str]) -> Layer:
        """What an entry says that is not null, with the variables of the environment in the place of their names.

        Args:
            name: the entry
            references: gets what the entry has in the place of each text that came from there, by its path
        """
        entry = self.layer.part(name).without([key for key, value in self.values(name).items() if value is None])
        for path, value in leaves(entry.data):
            found: dict[KeyPath, str] = {}
            resolved = self._expanded(value, (name, *path), found)
            for (_, *steps), written in found.items() if path[:1] != NAMED else ():
                references[tuple(steps)] = written
                _keep_secret(tuple(steps), written)
            if isinstance(resolved, str) and any(SECRET.search(step) for step in path):
                remember(resolved)
            entry.set(path, resolved, entry.origin(path))
        return entry

    def _type(self, name: str, settings: Layer, wrong: Collection[KeyPath]) -> None:
        """Put numbers, and true and false, where a variable says one and no text can stand.

        Args:
            name: the entry
            settings: what it has, with what the config says
            wrong: paths of values that cannot be what they are
        """
        for path, value in leaves(self.values(name)):
            where = settings.origin(path)
            if path in wrong and where != GIVEN and isinstance(value, str) and _REFERENCE.fullmatch(value):
                settings.set(path, _scalar(self._expanded(value, (name, *path))), where)

    def _expanded(self, value: Any, path: KeyPath, references: dict[KeyPath, str] | None = None) -> Any:
        if isinstance(value, list):
            return [self._expanded(one, (*path, str(at)), references) for at, one in enumerate(value)]
        if isinstance(value, dict):  # within a list
            return {key: self._expanded(one, (*path, key), references) for key, one in value.items()}
        if not isinstance(value, str):
            return value

        def replaced(match: re.Match[str]) -> str:
            found = os.environ.get(match[1])
            if not found:
                where = self.layer.origin(path)
                raise RequirementError(f"{where}: the environment has no {match[1]}; set it: export {match[1]}=...")
            return found

        resolved = _REFERENCE.sub(replaced, value)
        if references is not None and _REFERENCE.search(value):
            references[path] = value
        return resolved


def _keep_secret(path: KeyPath, written: str) -> None:
    """Remember what the environment says for the variables of a value that may be secret.

    That is told by the names of both. In an address, a header and a parameter anything may be that is no plain word;
    elsewhere such a text (a directory, the name of a model) stands in what programs say, too.

    Args:
        path: of the value, in its entry
        written: what the entry says
    """
    for variable in _REFERENCE.findall(written):
        found = os.environ[variable]
        named = any(SECRET.search(step) for step in (*path, variable))
        sent = any(step in ("endpoint", *SENT_WITH) for step in path)
        if named or (sent and not _WORDS.fullmatch(found)):
            remember(found)


def _where(settings: Layer, problem: Mapping[str, Any]) -> str:
    """Where what pydantic finds wrong was said: of a whole that an entry and a config have a part of each, both."""
    path = tuple(map(str, problem["loc"]))
    if problem["type"] == "missing":
        path = path[:-1] or path
    where = settings.origin(path)
    both = any(known[: len(path)] == path and origin == GIVEN != where for known, origin in settings.origins.items())
    return f"{where} and {GIVEN}" if both else where


def _scalar(text: str) -> str | int | float:
    """The number, or true or false, that a variable says; else its text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text


def read_models(given: Path | None = None) -> Models:
    """Read the llm.yaml.

    Args:
        given: the file; None: `$LLM_CONFIG_FILE_PATH`, else `~/.config/debug_gym/llm.yaml`, which need not be there

    Raises:
        UsageError: the file that somebody named is not there, or it is wrong: the text says where
    """
    named = given or os.environ.get(VARIABLE)
    path = expanded(Path(named or DEFAULT), VARIABLE)
    if not named and not path.exists():
        return Models()
    if not path.exists():
        source = "" if given else f"${VARIABLE}: "
        raise UsageError(
            f"{source}{path}: there is no such file; debug-gym llm init writes one to start from, "
            "--llm-config FILE names another"
        )
    return Models(path, read_file(path))


def _looked_up(name: str, plugins: Plugins) -> type[LLM] | PluginError | UsageError | None:
    """The backend of a name, or why there is none: its plugin failed or is disabled, or two have it; None: unknown."""
    try:
        found: type[LLM] = plugins.get("llms", name)
    except UnknownName:
        return None
    except (PluginError, UsageError) as error:
        return error
    return found


def unknown(name: str, models: Models, plugins: Plugins) -> PluginError | UsageError | RequirementError:
    """The error for a model that has no entry: a plugin that failed, a wrong name, or a missing llm.yaml.

    Args:
        name: what was asked for
        models: what is configured
        plugins: what is installed
    """
    from debug_gym_core.models.service import ServiceLLM

    found = _looked_up(name, plugins)
    if isinstance(found, Exception):
        return found
    free = [key for key, cls in plugins.llms.items() if not issubclass(cls, ServiceLLM)]
    close = nearest(name, [*models.names, *free])
    if models.path:
        return UsageError(
            f"{models.path} has no entry {name!r}{close}\n"
            "Add one, or choose another model with --llm; debug-gym llm list shows them"
        )
    return RequirementError(
        f"model {name!r} is not configured: there is no {DEFAULT}{close}\n"
        "Write one: debug-gym llm init; take another: --llm-config FILE; "
        f"or say --llm with what needs none: {', '.join(free) or 'none is installed'}"
    )
