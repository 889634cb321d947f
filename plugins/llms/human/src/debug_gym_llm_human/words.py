"""Words that the prompt understands itself, and those that the debugger does, with what each is for."""

from __future__ import annotations

COMMANDS = {
    "help": "what can be typed; help TOOL or TOOL? says more",
    "patch": "what was changed so far",
    "quit": "end the episode and have it graded; so does Ctrl-D",
}
"""What the prompt understands itself; costs no step. A tool of the same name goes first."""

OTHER_WORDS = {"?": "help", "exit": "quit"}

PDB_COMMANDS = {
    "args": "arguments of the current function",
    "b": "set a breakpoint: b file:line[, condition], b function; alone: list them",
    "c": "continue to the next breakpoint",
    "cl": "clear breakpoints: cl number, cl file:line",
    "commands": "what to do at a breakpoint: commands number, commands, end",
    "condition": "stop only if: condition number expression",
    "d": "one frame down, towards where it stopped",
    "disable": "switch a breakpoint off",
    "display": "show an expression at each stop where it changed",
    "enable": "switch a breakpoint on",
    "h": "pdb's own help: h command",
    "ignore": "pass a breakpoint so many times: ignore number count",
    "j": "jump to a line of this function",
    "l": "source around the line; l first, last",
    "ll": "source of the whole function",
    "n": "next line, over calls; n count: so many",
    "p": "print an expression",
    "pp": "print it nicely",
    "q": "end the session",
    "r": "run until this function returns",
    "restart": "start the program again, breakpoints kept",
    "retval": "what the function returned last",
    "s": "next line, into calls; s count: so many",
    "source": "source of a function or class",
    "tbreak": "breakpoint that goes away with its first stop",
    "threads": "where each thread, and each process of the program, is",
    "u": "one frame up, towards the caller",
    "undisplay": "stop showing an expression",
    "until": "run to a later line: until line",
    "w": "where: the stack",
    "whatis": "type of an expression",
}
PLACES = frozenset(("b", "break", "tbreak"))
NUMBERS = frozenset(("cl", "clear", "disable", "enable", "condition", "ignore", "commands"))
