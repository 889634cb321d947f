"""The scripted LLM: plays a list of actions or a saved trajectory instead of asking a model."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import yaml

from debug_gym_core import LLM, Completion, Message, Settings, ToolCall, UsageError, hookimpl
from debug_gym_core.config.yaml_types import loaded
from debug_gym_core.tools import blocks

LISTS = (".yaml", ".yml", ".json")
"""Endings of files that hold a list of actions."""


class ScriptedSettings(Settings):
    """What to play.

    Attributes:
        actions: tool calls in JSON or text form, played in order
        script: a file with them: a saved trajectory (.jsonl), a list (.yaml, .yml, .json), or else text as it is typed,
            an action a line
    """

    actions: tuple[dict[str, Any] | str, ...] | None = None
    script: Path | None = None


class Scripted(LLM):
    """Plays a list of actions (`llm.actions`) or a file of them (`llm.script`), then says that it is done."""

    name = "scripted"
    Settings: ClassVar[type[Settings]] = ScriptedSettings
    settings: ScriptedSettings

    def __init__(self, **settings: Any) -> None:
        """Read the script."""
        super().__init__(**settings)
        if (self.settings.actions is None) == (self.settings.script is None):
            raise UsageError("scripted: say what to play, either llm.actions or llm.script")
        actions = self.settings.actions if self.settings.script is None else read_script(self.settings.script)
        self._calls = [_call(action, number) for number, action in enumerate(actions or ())]
        self._next = 0

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """The next action; a message without a call when all are played."""
        if self._next >= len(self._calls):
            return Completion(Message("assistant", "The script is played to its end."), finish="over")
        call = self._calls[self._next]
        self._next += 1
        return Completion(Message("assistant", "", (call,)))


def read_script(path: Path) -> list[dict[str, Any] | str]:
    """Read the actions of a file.

    Args:
        path: a trajectory (`.jsonl`), a list (`.yaml`, `.yml`, `.json`), or text: an action a line, but for blocks
            between `<<<` and `>>>`; empty lines and those that begin with `#` are left out

    Raises:
        UsageError: there is no such file, or it holds something else
    """
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".jsonl":
            return _checked(_recorded(text), path)
        if path.suffix.lower() not in LISTS and not _is_list(text):
            return _typed(text)
        actions = loaded(text)
    except OSError as error:
        inside = next(path.rglob("trajectory.jsonl"), None) if path.is_dir() else None
        near = f"; did you mean {inside}?" if inside else ""
        raise UsageError(f"scripted: {path}: {error.strerror}{near}") from error
    except (ValueError, yaml.YAMLError) as error:
        raise UsageError(f"scripted: {path}: {' '.join(str(error).split())}") from error
    return _checked(actions, path)


def _recorded(text: str) -> Any:
    """The actions of a trajectory; a last line that was cut off, as by a kill, is left out.

    Raises:
        ValueError: a line is no event
    """
    lines = [line for line in text.split("\n") if line.strip()]
    events = []
    for number, line in enumerate(lines, 1):
        try:
            events.append(json.loads(line))
        except ValueError:
            if number < len(lines) or text.endswith("\n"):
                raise
    if not all(isinstance(event, dict) for event in events):
        raise ValueError("a line is no event of a trajectory")
    return [event["action"] for event in events if event.get("kind") == "step" and event.get("action")]


def _checked(actions: Any, path: Path) -> list[dict[str, Any] | str]:
    if not isinstance(actions, list) or not all(isinstance(action, dict | str) for action in actions):
        raise UsageError(f"scripted: {path} must be a list of actions, each text or {{name, arguments}}")
    return actions


def _is_list(text: str) -> bool:
    """Whether a file without a telling name is a list in YAML or JSON, not actions as they are typed."""
    return text.lstrip().startswith(("- ", "["))


def _typed(text: str) -> list[dict[str, Any] | str]:
    """The actions of a text, each with the lines of its block.

    Raises:
        ValueError: a block has no end
    """
    actions: list[dict[str, Any] | str] = []
    block: list[str] = []
    begun = 0
    for number, line in enumerate(re.split(r"\r?\n", text), 1):
        if block:
            block.append(line)
            if blocks.ends(line):
                actions.append("\n".join(block))
                block = []
        elif blocks.begins(line):
            below = blocks.is_begin(line) and actions  # it belongs to the line above
            block, begun = [*([str(actions.pop())] if below else []), line], number
        elif line.strip() and not line.lstrip().startswith("#"):
            actions.append(line)
    if block:
        raise ValueError(f"line {begun}: the text after <<< has no end (>>> on a line of its own)")
    return actions


def _call(action: dict[str, Any] | str, number: int) -> ToolCall:
    """An action as a call; text is understood by the environment, which knows the tools."""
    identity = f"call-{number + 1}"
    if isinstance(action, str):
        return ToolCall(action, {}, identity)
    if not isinstance(action.get("name"), str):
        raise UsageError(f"scripted: action {number + 1} has no name: {str(action)[:80]}")
    return ToolCall(action["name"], action.get("arguments") or {}, identity)


@hookimpl
def debug_gym_register_llms() -> Sequence[type[LLM]]:
    """The LLM of this package."""
    return [Scripted]
