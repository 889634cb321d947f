"""Where the debuggee begins."""

import sys

from debug_gym_core.debugging.inside.process import INTERRUPT_SIGNAL, STACK_SIGNAL
from debug_gym_core.debugging.inside.programs import BadTarget, Program, make_program

from .channel import Channel
from .copies import Copies
from .debugger import Debugger, end_by_interrupt
from .pytests import DebuggedPytest
from .rewinding import Rewinding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    Json = Dict[str, Any]


def find_program(config: "Json", debugger: "Debugger") -> "Program":
    """What the configuration asks to debug."""
    if config["kind"] == "module" and config["target"] == "pytest":
        return DebuggedPytest(config["args"], debugger)
    return make_program(config["kind"], config["target"], config["args"])


def main(descriptor: int) -> int:
    """Debug what the host asks for; returns the exit status."""
    channel = Channel(descriptor)
    config = channel.receive()
    copies = Copies()
    why_not = copies.begin() if config.get("rewind") else ""
    if copies.begun:
        debugger: "Debugger" = Rewinding(channel, config["root"], copies)
    else:
        debugger = Debugger(channel, config["root"])
    debugger.files.ignored = frozenset(config.get("ignored", ()))
    debugger.finder.allowed = config.get("backends", debugger.finder.allowed)
    try:
        program = find_program(config, debugger)
    except BadTarget as error:
        channel.send({"t": "error", "message": str(error)})
        return 2
    debugger.aliases.update(config.get("aliases", {}))
    debugger.hello = {
        "python": list(sys.version_info[:3]),
        "root": debugger.root,
        "signals": {"interrupt": int(INTERRUPT_SIGNAL), "stack": int(STACK_SIGNAL)},
        "lost": debugger.remembered.restore(config["breakpoints"]),
        "rewind": why_not,
    }
    status = debugger.run_program(program)
    if status < 0:
        end_by_interrupt()
    return status
