"""A line of help below the prompt."""

from __future__ import annotations

from collections.abc import Mapping

from debug_gym_core.tools import blocks
from debug_gym_llm_human.cursor import locate
from debug_gym_llm_human.usage import ToolClass, argument_help, is_raw, summary, usage
from debug_gym_llm_human.words import COMMANDS, PDB_COMMANDS


def hint(text: str, tools: Mapping[str, ToolClass]) -> str:
    """A line of help for what is being typed.

    Args:
        text: what stands before the cursor
        tools: of the environment
    """
    text = text.lstrip()
    first, space, rest = text.partition(" ")
    head, newline, _ = text.partition("\n")
    if newline and blocks.begins(head):
        return "a line >>> ends the text; Enter there sends it, so does Alt-Enter"
    if first in COMMANDS and first not in tools:
        return f"{first}: {COMMANDS[first]}"
    tool = tools.get(first)
    if tool is None:
        return "Tab completes, help explains, Ctrl-D ends" if not text else ""
    if not space:
        return f"{usage(tool)}: {summary(tool)}"
    if tool.name == "pdb":
        command = rest.split(" ")[0]
        return f"{command}: {PDB_COMMANDS[command]}" if command in PDB_COMMANDS else "Tab shows the debugger's commands"
    if blocks.begins(rest):
        return "Enter starts the text, Tab takes the lines as they are; >>> ends it"
    place = None if is_raw(tool) else locate(tool, rest)
    if place is None or place.argument is None:
        return usage(tool)
    return f"{place.argument.name}: {argument_help(place.argument)} | {usage(tool)}"
