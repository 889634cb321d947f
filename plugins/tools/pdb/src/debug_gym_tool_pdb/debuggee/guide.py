"""What the debugger says of itself: its commands, what other debuggers call them, which name was probably meant."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Optional

GROUPS = (
    (
        "Set",
        (
            ("b FILE:LINE[, CONDITION]", "set a breakpoint; b FUNCTION, b FILE:FUNCTION, b CLASS.METHOD too"),
            ("b", "list breakpoints"),
            ("tbreak FILE:LINE", "a breakpoint that goes away with its first stop"),
            ("condition N EXPRESSION", "breakpoint N stops only if it is true; without EXPRESSION: always"),
            ("ignore N COUNT", "pass breakpoint N so many times, in each run"),
            ("disable N, enable N", "switch breakpoints off and on: 1 3, 1-3, all"),
            ("cl N, cl FILE:LINE, cl", "clear a breakpoint, or all"),
            ("commands N", "do the lines below it, up to end, at each stop at breakpoint N"),
        ),
    ),
    (
        "Run",
        (
            ("c", "go on to the next breakpoint"),
            ("n [COUNT]", "to the next line, over calls"),
            ("s [COUNT]", "to the next line, into calls"),
            ("r", "to the return of this function"),
            ("until LINE", "to that line of this function, or its return"),
            ("j LINE", "make that line the next one, without running those between"),
            ("restart [ARGUMENTS]", "start the program again; q ends it"),
        ),
    ),
    (
        "Look",
        (
            ("p EXPRESSION, pp", "print a value; pp does it nicely"),
            ("whatis EXPRESSION", "its type"),
            ("display EXPRESSION", "show it at each stop in this frame where it changed; undisplay ends that"),
            ("a", "the arguments of this function; retval: what it returned"),
            ("w [COUNT]", "where: the stack, newest last"),
            ("u [COUNT], d [COUNT]", "one frame up to the caller, or down again"),
            ("l, ll", "source around the line, of the whole function; l FILE:LINE, l FIRST, LAST"),
            ("source NAME", "source of a function or class"),
            ("threads", "where each thread is"),
        ),
    ),
)
"""Commands by what they are for: each with its form and what it does."""

LAST_LINES = (
    "Anything else runs as Python in the current frame; ! first where a name is a command too (!n = 3).",
    "Also: alias, unalias, interact, debug. help COMMAND says more.",
)

BACKWARDS = (
    ("back [COUNT]", "go back to the stop before, or COUNT stops"),
    ("rewind [N]", "go back to stop N; without N: list the stops"),
)
"""Commands of a session that keeps its stops."""

DIFFERENCES = {
    "break": "Here, FILE:FUNCTION, CLASS.METHOD and a function that is not imported yet do too; a blank line or a"
    " docstring inside a function stands for the next line with code. Breakpoints survive restarts and follow edits.",
    "clear": "Here, `all` and ranges such as 1-3 do too, and nothing is asked.",
    "commands": "Here, the lines below it in the same call are the commands, up to `end`.",
    "disable": "Here, `all`, ranges such as 1-3, and FILE:LINE do too; without a number, all are meant.",
    "enable": "Here, `all`, ranges such as 1-3, and FILE:LINE do too; without a number, all are meant.",
    "ignore": "Here, the count starts again with each restart.",
    "interact": "Here, the lines below it in the same call are run.",
    "jump": "Here, any line of a statement stands for its beginning.",
    "list": "Here, l FILE:LINE, l FILE.py and l FUNCTION do too.",
    "next": "Here, n COUNT repeats it, up to a breakpoint.",
    "step": "Here, s COUNT repeats it, up to a breakpoint.",
    "quit": "Here, breakpoints are kept, and the next command starts a new session.",
    "run": "Here, the program starts as a new process; breakpoints are kept.",
    "where": "Here, w COUNT shows the newest frames only, and the runner's frames are left out unless COUNT asks.",
}
"""What pdb's own help does not say, by the long name of a command."""

LONG_NAMES = {
    "a": "args",
    "b": "break",
    "bt": "where",
    "c": "continue",
    "cl": "clear",
    "cont": "continue",
    "d": "down",
    "exit": "quit",
    "h": "help",
    "j": "jump",
    "l": "list",
    "ll": "longlist",
    "n": "next",
    "q": "quit",
    "r": "return",
    "restart": "run",
    "rv": "retval",
    "s": "step",
    "u": "up",
    "unt": "until",
    "w": "where",
}
"""Short names of commands."""

SYNONYMS = {
    "backtrace": "where",
    "bp": "break",
    "br": "break",
    "breakpoint": "break",
    "breakpoints": "break",
    "call": "!",
    "callstack": "where",
    "delete": "clear",
    "echo": "p",
    "eval": "p",
    "examine": "p",
    "fin": "return",
    "finish": "return",
    "go": "continue",
    "goto": "jump",
    "inspect": "p",
    "into": "step",
    "locals": "locals",
    "out": "return",
    "output": "p",
    "over": "next",
    "print": "p",
    "proceed": "continue",
    "ptype": "whatis",
    "rerun": "restart",
    "resume": "continue",
    "stack": "where",
    "step_in": "step",
    "step_into": "step",
    "step_out": "return",
    "step_over": "next",
    "stepin": "step",
    "stepinto": "step",
    "stepout": "return",
    "stepover": "next",
    "tb": "tbreak",
    "type": "whatis",
    "vars": "locals",
}
"""Commands of other debuggers that pdb has under another name; `!` stands for a statement."""

STEPS = {"in": "step", "into": "step", "out": "return", "over": "next"}
"""Where a step may go, by the word after `step`."""

INFO = {
    "args": "args",
    "b": "break",
    "break": "break",
    "breakpoints": "break",
    "display": "display",
    "frame": "where 1",
    "line": "list .",
    "locals": "locals",
    "source": "list .",
    "stack": "where",
}
"""gdb's `info`."""

TOOLS = frozenset(("bash", "edit", "eval", "grep", "listdir", "rewrite", "submit", "trace", "view"))

_BACK = "without the tool's setting `rewind` a program does not run backwards: set a breakpoint earlier, then restart"
_WATCH = (
    "pdb has no watchpoints: display EXPRESSION shows it at each stop in this frame where it changed, and"
    " b FILE:LINE, CONDITION stops where a condition holds"
)
_NAMED = "arguments are named before a block: pdb entrypoint='python app.py' <<<, the commands below it, then >>>"
_STARTED = "the program is started and stopped: c goes on, restart starts it again"
_SHELL = "this is the debugger, no shell: bash is a tool of its own, where there is one; l FILE:LINE shows source"
_STOPPED = "the program is stopped already; b FILE:LINE sets a breakpoint"
_FRAME = "w shows the stack, u and d move in it"
ELSEWHERE = {
    "advance": "tbreak FILE:LINE, then c",
    "awatch": _WATCH,
    "back": _BACK,
    "cat": _SHELL,
    "catch": "an uncaught exception and a failing test stop by themselves",
    "cd": _SHELL,
    "command": _NAMED,
    "entrypoint": _NAMED,
    "exceptions": "it is a command of Python 3.13; the stop shows the chain of exceptions",
    "f": _FRAME,
    "find": _SHELL,
    "frame": _FRAME,
    "git": _SHELL,
    "info": "info knows locals, args, breakpoints, stack, frame, display",
    "interrupt": _STOPPED,
    "kill": "q ends the session",
    "ls": _SHELL,
    "pause": _STOPPED,
    "pdb": "write the command alone, without pdb before it",
    "pip": _SHELL,
    "pwd": _SHELL,
    "pytest": "what to debug is the argument `entrypoint` of the tool",
    "python": "what to debug is the argument `entrypoint` of the tool",
    "reverse": _BACK,
    "rewind": _BACK,
    "runto": "tbreak FILE:LINE, then c",
    "rwatch": _WATCH,
    "sed": _SHELL,
    "set": "variables are set as in Python: x = 3",
    "set_trace": _STOPPED,
    "show": "p EXPRESSION prints a value, b lists the breakpoints",
    "start": _STARTED,
    "stop": "q ends the session",
    "thread": "threads lists all of them, with where each is",
    "watch": _WATCH,
}
"""Words of other debuggers and of shells for which pdb has no command: what to do instead."""


def overview(rewinds: bool = False) -> str:
    """All commands, with a line each.

    Args:
        rewinds: whether stops can be gone back to
    """
    width = max(len(form) for _, commands in GROUPS for form, _ in commands)
    lines = []
    for title, commands in GROUPS:
        lines.append(title)
        more = BACKWARDS if rewinds and title == "Run" else ()
        lines += ["  {}  {}".format(form.ljust(width), text) for form, text in (*commands, *more)]
    return "\n".join(lines + list(LAST_LINES))


def long_name(command: str) -> str:
    """The long name of a command."""
    return LONG_NAMES.get(command, command)


def nearest(word: str, names: "Iterable[str]", most: int = 3) -> "List[str]":
    """Names that differ from a word by few letters, the nearest first; none for a word that is long."""
    if not 2 <= len(word) <= 40:
        return []
    allowed = 1 if len(word) < 5 else 2 if len(word) < 9 else 3
    found = []
    for name in set(names):
        if abs(len(name) - len(word)) <= allowed and name != word:
            distance = 0 if name.lower() == word.lower() else _distance(word.lower(), name.lower())
            if distance <= allowed and distance < len(name):
                found.append((distance, name[:1] != word[:1], name))
    return [name for _, _, name in sorted(found)[:most]]


def _distance(one: str, other: str) -> int:
    """Letters to change, insert, leave out or swap with their neighbour."""
    before: "List[int]" = []
    above = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, wanted in enumerate(other, 1):
            least = min(above[column] + 1, current[-1] + 1, above[column - 1] + (letter != wanted))
            swapped = row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == wanted
            current.append(min(least, before[column - 2] + 1) if swapped else least)
        before, above = above, current
    return above[-1]


def command_near(word: str, commands: "Iterable[str]") -> "Optional[str]":
    """The command that a word probably stands for, with its short name; None: there is none near it."""
    long_ones = {long_name(name) for name in commands if len(long_name(name)) > 2}
    begun = sorted(name for name in long_ones if len(word) > 2 and name.startswith(word))
    found = begun[:1] if len(begun) == 1 else nearest(word, long_ones, 1)
    if not found:
        return None
    short = sorted((one for one, name in LONG_NAMES.items() if name == found[0]), key=len)
    return "{} ({})".format(found[0], short[0]) if short else found[0]
