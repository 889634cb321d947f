"""What specifications of events ask for, and what is wrong with the methods of a tool that are to answer them."""

from __future__ import annotations

import ast
import difflib
import inspect
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from debug_gym_core.components.markers import PROJECT
from debug_gym_core.sandbox.python_code import parse
from debug_gym_core.tools import events

_IMPLEMENTED = f"{PROJECT}_impl"
_SPECIFIED = f"{PROJECT}_spec"
_BOUND = ("self", "cls")

FILES = 200
"""Files of one package in which specifications are looked for."""

NEAR = 0.7
"""How alike two names are, of 1, for one to be doubted."""


@dataclass(frozen=True)
class Specification:
    """What an event comes with.

    Attributes:
        arguments: their names in order, `env` among them
        defaults: values of those that need not be given
    """

    arguments: tuple[str, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EventMethod:
    """A method of a tool that answers an event, or looks as if it were to.

    Attributes:
        name: the method's
        event: which it answers
        marked: whether it is marked `@hookimpl`; without, it is never called
        arguments: those that it must be given
        misfit: why it can answer no event at all; empty when it can
        optional: whether its author says that the event may be nobody's
    """

    name: str
    event: str
    marked: bool
    arguments: tuple[str, ...]
    misfit: str = ""
    optional: bool = False

    def wrong(self, specification: Specification) -> str | None:
        """Why it cannot answer the event; None when it can.

        Args:
            specification: the event's
        """
        unknown = next((one for one in self.arguments if one not in specification.arguments), None)
        if unknown is not None:
            return f"there is no argument {unknown!r}; it has {', '.join(specification.arguments) or 'none'}"
        return self.misfit or None


@dataclass(frozen=True)
class Findings:
    """What was found in a tool's class.

    Attributes:
        wrong: methods that cannot be called for their event
        misspelled: methods that are marked as an event's, of no event, and of a name that is a slip in the name of one
        doubtful: methods that are never called, or of a name like an event's, and look as if they were to be that one's
        unknown: events that are answered, and that nobody is known to specify
    """

    wrong: tuple[str, ...]
    misspelled: tuple[str, ...]
    doubtful: tuple[str, ...]
    unknown: tuple[str, ...]


def _function(attribute: Any) -> Any:
    """The function of a method as it stands in a class or module; None for anything else, which is not touched."""
    function = attribute.__func__ if isinstance(attribute, staticmethod | classmethod) else attribute
    return function if inspect.isfunction(function) else None


def specifications(place: Any) -> dict[str, Specification]:
    """The events that a module, class or object specifies, by name.

    Args:
        place: where functions are marked `@hookspec`
    """
    found = {}
    for name in dir(place):
        function = _function(inspect.getattr_static(place, name, None))
        if function is not None and hasattr(function, _SPECIFIED):
            parameters = list(inspect.signature(function).parameters.values())
            if parameters and parameters[0].name in _BOUND:
                del parameters[0]
            defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
            found[name] = Specification(tuple(one.name for one in parameters), defaults)
    return found


CORE_EVENTS: Mapping[str, Specification] = specifications(events)
"""The events that every environment has."""


def methods(tool: type[Any]) -> Iterator[EventMethod]:
    """The methods of a tool that are marked `@hookimpl` or begin with `on_`.

    Args:
        tool: the class
    """
    for name in dir(tool):
        attribute = inspect.getattr_static(tool, name, None)
        function = _function(attribute)
        options = getattr(function, _IMPLEMENTED, None)
        if function is None or (options is None and not name.startswith("on_")):
            continue
        parameters = list(inspect.signature(function).parameters.values())
        if not isinstance(attribute, staticmethod):
            del parameters[:1]
        needed = [one for one in parameters if one.default is one.empty]
        plain = [one for one in needed if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        misfit = ""
        if any(one.kind is one.KEYWORD_ONLY for one in needed):
            misfit = "its arguments are given by position; take the * out"
        elif options and (options.get("wrapper") or options.get("hookwrapper")):
            misfit = "an event has no wrappers; write @hookimpl alone"
        event = (options or {}).get("specname") or name
        optional = bool(options and options.get("optionalhook"))
        yield EventMethod(name, event, options is not None, tuple(one.name for one in plain), misfit, optional)


def examine(tool: type[Any], modules: Iterable[str] = ()) -> Findings:
    """Hold the methods of a tool against the events that there are.

    Args:
        tool: the class
        modules: names of modules whose packages may specify more events; the tool's own is always looked at
    """
    known: Mapping[str, Specification] = CORE_EVENTS
    found = list(methods(tool))
    if any(one.event not in known for one in found):
        known = {**_written(dict.fromkeys([tool.__module__, *modules])), **CORE_EVENTS}
    wrong: list[str] = []
    misspelled: list[str] = []
    doubtful: list[str] = []
    unknown: list[str] = []
    for one in found:
        called = f"{tool.name}.{one.name}"
        if one.event in known:
            reason = one.wrong(known[one.event])
            if not one.marked:
                doubtful.append(f"{called} is not marked @hookimpl and is never called")
            elif reason:
                wrong.append(f"{called}: {reason}")
        elif one.marked:
            slips = [name for name in known if _is_slip(one.event, name)]
            near = slips or difflib.get_close_matches(one.event, known, n=1, cutoff=NEAR)
            if near and not one.optional:
                said = f"{called}: there is no event {one.event!r}; did you mean {near[0]!r}?"
                (misspelled if slips else doubtful).append(said)
            else:
                unknown.append(one.event)
    return Findings(tuple(wrong), tuple(misspelled), tuple(doubtful), tuple(unknown))


def _is_slip(name: str, event: str) -> bool:
    """Whether a name is an event's without `on_`, with another ending of its last word, or one edit away from it.

    One that is only like it, such as `on_file_created`, may well be an event of another plugin.
    """
    start = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(name, event, strict=False)))
    here, there = name[start:], event[start:]
    one_edit = here[1:] == there[1:] or here[1:] == there or here == there[1:]
    return f"on_{name}" == event or one_edit or _stem(name) == _stem(event)


def _stem(name: str) -> str:
    """A name without what English hangs on its last word: `on_submit` of `on_submitted`."""
    return re.sub(r"(.)\1?(?:e|es|ed|s|ing)?$", r"\1", name)


def _written(modules: Iterable[str]) -> dict[str, Specification]:
    """The specifications in the source of packages, which need not be loaded: a tool may do that as late as it likes.

    Of two of one name the one in the earlier module counts.
    """
    found: dict[str, Specification] = {}
    for path in dict.fromkeys(path for module in modules for path in _files(module)):
        text = path.read_text(encoding="utf-8", errors="replace")
        if "hookspec" not in text:
            continue
        try:
            tree = parse(text)
        except (SyntaxError, ValueError):  # nothing that is loaded: a template, or for another Python
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and any(map(_is_hookspec, node.decorator_list)):
                names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                found.setdefault(node.name, Specification(tuple(names[names[:1] in (["self"], ["cls"]) :])))
    return found


def _files(module: str) -> list[Path]:
    """The source of a module and of the package that it is in."""
    package = module.partition(".")[0]
    if package == __package__.partition(".")[0]:
        return []
    folders = [Path(one) for one in getattr(sys.modules.get(package), "__path__", ())]
    files = [Path(one) for one in [getattr(sys.modules.get(module), "__file__", None)] if one]
    files += [path for folder in folders for path in sorted(folder.rglob("*.py"))[:FILES]]
    return [path for path in files if path.suffix == ".py" and path.is_file()]


def _is_hookspec(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return "hookspec" in (getattr(called, "id", ""), getattr(called, "attr", ""))
