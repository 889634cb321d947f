"""Values of a config before they are checked: read from YAML, put over each other, each knowing where it came from."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from debug_gym_core.config.yaml_types import Loader
from debug_gym_core.config.yaml_words import problem_of
from debug_gym_core.errors import UsageError
from debug_gym_core.redaction import may_be_key, name_alone

KeyPath = tuple[str, ...]

NAMED = ("tools",)
"""Path of the list whose items have names."""

MOST_ALIASED = 100_000
"""Values that the aliases of a YAML file may stand for."""
DEEPEST = 50
"""Lists and mappings within each other."""
TOO_DEEP = f"more than {DEEPEST} lists and mappings within each other"


@dataclass
class Layer:
    """Values by key, and for each the words that say where somebody wrote it.

    Attributes:
        data: nested mappings; lists and scalars are values
        origins: `config.yaml:3` or `-p env.run_timeout` by key path
        name: where values come from that have no origin of their own
        blank: whether it was read of a text that says nothing at all, not even `{}`
    """

    data: dict[str, Any] = field(default_factory=dict)
    origins: dict[KeyPath, str] = field(default_factory=dict)
    name: str = "default"
    blank: bool = False

    def origin(self, path: Sequence[str | int]) -> str:
        """Where the value at a path, or a value below it that made it a mapping, or the nearest above was written.

        The empty path is that of the whole: its name.
        """
        steps = tuple(str(step) for step in path)
        if steps and steps not in self.origins:
            below = [where for known, where in self.origins.items() if known[: len(steps)] == steps]
            if below:
                return below[0]
        above = (self.origins[steps[:length]] for length in range(len(steps), 0, -1) if steps[:length] in self.origins)
        return next(above, self.name)

    def over(self, below: Layer) -> Layer:
        """This layer's values over those of another: mappings are merged, all else is replaced."""
        merged = Layer(copy.deepcopy(below.data), dict(below.origins), below.name)
        for path, value in leaves(self.data):
            merged.set(path, copy.deepcopy(value), self.origin(path), replacing=True)
        merged.origins.update(self.origins)
        return merged

    def part(self, key: str) -> Layer:
        """The mapping below a key as a layer of its own (empty when there is none)."""
        data = self.data.get(key)
        return Layer(
            copy.deepcopy(data) if isinstance(data, dict) else {},
            {path[1:]: origin for path, origin in self.origins.items() if path[0] == key and len(path) > 1},
            self.origin((key,)),
        )

    def without(self, keys: Collection[str]) -> Layer:
        """The layer without some of its outermost keys."""
        return Layer({k: v for k, v in self.data.items() if k not in keys}, self.origins, self.name)

    def set(self, path: KeyPath, value: Any, origin: str, *, replacing: bool = False) -> None:
        """Set one value by its path; a step into a list is an index, into that of the tools also the name of an item.

        Args:
            path: its keys
            value: it
            origin: where it comes from
            replacing: what has no keys, as all lists but that of the tools, gives way to a mapping with the rest of the
                path

        Raises:
            UsageError: a step of the path leads into something that has no keys
        """
        here: Any = self.data
        for depth, step in enumerate(path[:-1]):
            if isinstance(here, list):
                here = _item(here, step, ".".join(path[:depth]), origin)
                continue
            with_keys = dict | list if path[: depth + 1] == NAMED else dict
            if here.get(step) is None or (replacing and not isinstance(here[step], with_keys)):
                here[step] = {}
                self.origins.pop(path[: depth + 1], None)  # of what was there
            here = here[step]
            if not isinstance(here, dict | list):
                raise UsageError(
                    f"{origin}: {'.'.join(path[: depth + 1])} is {_shown(here)}, it has no keys of its own"
                )
        if isinstance(here, list):
            step = path[-1]
            index = _index(here, step, ".".join(path[:-1]), origin)
            here[index] = value if step.isdecimal() else {step: value}
        else:
            here[path[-1]] = value
        for known in [known for known in self.origins if known[: len(path)] == path]:
            del self.origins[known]
        self.origins[path] = origin


def leaves(data: dict[str, Any], above: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value that is not a mapping with keys, with its path."""
    for key, value in data.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*above, key))
        else:
            yield (*above, key), value


def read_file(path: Path) -> Layer:
    """Read a YAML file.

    Raises:
        UsageError: it is not there, not UTF-8, not YAML (with line and column), or not a mapping with words as keys
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error
    return read_text(text, str(path))


def read_text(text: str, name: str) -> Layer:
    """Read YAML; `name` says in errors where it stands.

    Raises:
        UsageError: as `read_file`
    """
    try:
        loader = Loader(text)
        node = loader.get_single_node()
        layer = Layer(name=name)
        if node is None or (isinstance(node, yaml.ScalarNode) and not node.value and node.style is None):
            layer.blank = True
            return layer
        if not isinstance(node, yaml.MappingNode):
            what = "a list" if isinstance(node, yaml.SequenceNode) else "one text"  # not repeated: it may be a key
            raise UsageError(f"{name}: a config is a mapping of sections, this is {what}")
        _bound(node, name)
        _walk(node, (), layer, ())
        layer.data = loader.construct_document(node)
        return layer
    except RecursionError as error:
        raise UsageError(f"{name}: {TOO_DEEP}") from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise UsageError(f"{name}:{line}:{column}: {error.reason} (character #x{error.character:04x})") from error
    except yaml.MarkedYAMLError as error:
        problem = problem_of(error)
        place = "" if problem.line is None else f":{problem.line + 1}:{problem.column + 1}"
        words = "; ".join(filter(None, (problem.what, problem.remedy)))
        raise UsageError(f"{name}{place}: {words}") from None  # not as its cause, whose text shows the line


class Override(NamedTuple):
    """A value that a person set by an option.

    Attributes:
        path: its keys
        value: it
        origin: how errors call it: `-p env.run_timeout`, or an option of its own such as `--source`
    """

    path: KeyPath
    value: Any
    origin: str


Overrides = Sequence[str | Override]
"""Values over those of a config, applied in order; a text is `key.path=value`, the value YAML."""


def parse_overrides(overrides: Overrides) -> list[Override]:
    """Read those that are texts.

    Raises:
        UsageError: as `parse_override`
    """
    return [parse_override(one) if isinstance(one, str) else one for one in overrides]


def parse_override(text: str) -> Override:
    """Read `key.path=value` of the option `-p`: split at the first `=`, the value parsed as YAML.

    Raises:
        UsageError: there is no `=`, no key, or the value is not YAML
    """
    key, equals, value = text.partition("=")
    path = tuple(key.strip().split("."))
    if not equals or not all(path):
        raise UsageError(f"-p {name_alone(text)}: say key.path=value, as in -p env.run_timeout=60")
    origin = f"-p {'.'.join(path)}"
    try:
        loader = Loader(value)
        node = loader.get_single_node()
        if node is None:
            return Override(path, None, origin)
        _bound(node, f"-p {key}")
        _walk(node, path, Layer(name=f"-p {key}"), ())
        return Override(path, loader.construct_document(node), origin)
    except RecursionError as error:
        raise UsageError(f"-p {key}: {TOO_DEEP}") from error
    except yaml.YAMLError as error:
        what = problem_of(error).what
        raise UsageError(f"-p {key}: {what}; put the value in quotes: -p {key}='\"...\"'") from None


def tool_name(item: Any) -> str | None:
    """The name of an item of the `tools` list: itself, or the only key of a mapping."""
    if isinstance(item, str):
        return item
    if isinstance(item, dict) and len(item) == 1:
        return str(next(iter(item)))
    return None


def _item(items: list[Any], step: str, where: str, origin: str) -> Any:
    """Go from a list into one of its items, given by name or index; a plain name becomes `{name: {}}`."""
    index = _index(items, step, where, origin)
    item = items[index]
    if isinstance(item, str):
        items[index] = item = {item: {}}
    if not step.isdecimal() and isinstance(item, dict):
        item[step] = item[step] or {}
        item = item[step]
    if not isinstance(item, dict | list):
        raise UsageError(f"{origin}: {where}.{step} is {_shown(item)}, it has no keys of its own")
    return item


def _index(items: list[Any], step: str, where: str, origin: str) -> int:
    names = [tool_name(item) if where in NAMED else None for item in items]
    if step in names:
        return names.index(step)
    if step.isdecimal() and int(step) < len(items):
        return int(step)
    if where not in NAMED:
        counted = f"it has {len(items)}, counted from 0"
        raise UsageError(f"{origin}: {where} has no item {step!r}, {counted}; or say the whole list")
    listed = ", ".join(name for name in names if name)
    raise UsageError(f"{origin}: {where} lists no {step!r}; it lists {listed or 'nothing'}")


def _bound(node: yaml.Node, name: str) -> None:
    """Refuse aliases that a few lines of make millions of values, and what nobody could go through."""
    sizes: dict[int, int] = {}

    def size(one: yaml.Node, depth: int = 0) -> int:
        if depth > DEEPEST:
            raise UsageError(f"{name}: {TOO_DEEP}")
        if id(one) not in sizes:
            sizes[id(one)] = 1  # while it is counted; what contains itself is refused elsewhere
            if isinstance(one, yaml.SequenceNode):
                sizes[id(one)] += sum(size(child, depth + 1) for child in one.value)
            elif isinstance(one, yaml.MappingNode):
                sizes[id(one)] += sum(size(child, depth + 1) for pair in one.value for child in pair)
        return sizes[id(one)]

    if size(node) - len(sizes) > MOST_ALIASED:
        raise UsageError(f"{name}: its aliases stand for more than {MOST_ALIASED:,} values; write it with fewer")


def _walk(node: yaml.Node, path: KeyPath, layer: Layer, above: tuple[int, ...]) -> None:
    """Note the line of every key, and refuse what YAML would silently make something else of."""
    if id(node) in above:
        raise UsageError(f"{_place(layer, node)}: {'.'.join(path)} contains itself")
    if isinstance(node, yaml.SequenceNode):
        for child in node.value:
            _walk(child, path, layer, (*above, id(node)))
    if not isinstance(node, yaml.MappingNode):
        return
    seen: dict[str, int] = {}
    for key, value in node.value:
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        if key.tag != "tag:yaml.org,2002:str":
            raise UsageError(f"{_place(layer, key)}: a key must be a word; put it in quotes: {_kind(key)}")
        shown = name_alone(key.value) if path else key.value
        if key.value in seen:
            raise UsageError(
                f"{_place(layer, key)}: {'.'.join((*path, shown))} is there twice, first in line {seen[key.value]}"
            )
        seen[key.value] = key.start_mark.line + 1
        layer.origins[*path, key.value] = _place(layer, key)
        _walk(value, (*path, key.value), layer, (*above, id(node)))


def _place(layer: Layer, node: yaml.Node) -> str:
    return f"{layer.name}:{node.start_mark.line + 1}"


def _shown(value: Any) -> str:
    return "a text" if may_be_key(value) else repr(value)


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return _shown(node.value)
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"
