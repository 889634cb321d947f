"""How a task's code is run: an entrypoint's text, understood.

pytest -q tests                      the module pytest, in the session's interpreter
PYTHONPATH=src python -X dev -m app  a module, with a flag and a variable
python app.py --verbose              a script
uv run pytest -q                     as without `uv run`: the session's interpreter is already the project's
make test                            anything else is a shell command, which a debugger cannot start
"""

from __future__ import annotations

import enum
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from debug_gym_core.errors import UsageError

EXAMPLE = "python -m pytest -q"

LONGEST = 100_000
"""Characters that an entrypoint may have."""

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_INTERPRETER = re.compile(r"python(\d+(\.\d+)?t?)?")
_SESSION_INTERPRETERS = ("python", "python3")
_PYTEST = ("pytest", "py.test")
_SHELL_OUTSIDE_QUOTES = frozenset("|&;<>()$`*?\n")
_SHELL_IN_DOUBLE_QUOTES = frozenset("$`")
_FLAGS = frozenset("bBdEIOPqsSuvx")
_OPTIONS = frozenset("WXmc")
# fmt: off
_UV_FLAGS = frozenset({
    "--active", "--all-extras", "--all-groups", "--all-packages", "--dev", "--exact", "--frozen", "--isolated",
    "--locked", "--no-dev", "--no-editable", "--no-progress", "--no-sync", "--offline", "--quiet", "-q", "--verbose",
    "-v",
})
_UV_FLAGS_WITH_VALUE = frozenset({
    "--extra", "--group", "--no-extra", "--no-group", "--only-group", "--package", "--with",
})
# fmt: on

RUNNERS = frozenset({"pytest", "unittest"})
"""Modules that run tests, each of which they tell of."""


class Kind(enum.Enum):
    """What an entrypoint starts."""

    MODULE = "module"
    SCRIPT = "script"
    CODE = "code"
    COMMAND = "command"


@dataclass(frozen=True)
class Entrypoint:
    """A parsed entrypoint.

    Attributes:
        text: as it was written
        kind: what it starts: a module (`-m`), a script, code (`-c`), or a shell command
        target: name of the module, path of the script, the code; empty for a command
        args: arguments of the program
        env: variables set before it
        flags: flags of the interpreter, such as `-O` or `-X dev`
        interpreter: the interpreter that was named; None: the session's
        why_not: why a debugger cannot start it, in a few words; empty when it can
    """

    text: str
    kind: Kind
    target: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    interpreter: str | None = None
    why_not: str = ""

    @classmethod
    def parse(cls, text: str) -> Entrypoint:
        """Understand an entrypoint.

        Args:
            text: one command, quoted as for a POSIX shell

        Returns:
            the entrypoint; what is not a Python program is a `Kind.COMMAND`

        Raises:
            UsageError: it is empty or too long, or a quote is left open
        """
        text = text.strip()
        if not text:
            raise UsageError(f"the entrypoint is empty; an example: {EXAMPLE}")
        if len(text) > LONGEST:  # telling words apart takes time that grows with the square of a word's length
            raise UsageError(f"the entrypoint is too long: {len(text)} characters, at most {LONGEST}")
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"the entrypoint {text!r} cannot be read: {str(error).lower()}") from None
        syntax = _shell_syntax(text)
        if syntax:
            shown = "a line break" if syntax == "\n" else repr(syntax)
            return cls(text, Kind.COMMAND, why_not=f"it uses the shell ({shown})")
        env: dict[str, str] = {}
        while words and (match := _ASSIGNMENT.fullmatch(words[0])):
            env[match[1]] = match[2]
            words.pop(0)
        program = _parse_program(words)
        if program is None:
            return cls(text, Kind.COMMAND, why_not="it is not `pytest`, `python file.py` or `python -m module`")
        return replace(program, text=text, env=env)

    @property
    def debuggable(self) -> bool:
        """Whether a debugger can start it."""
        return not self.why_not

    @property
    def module(self) -> str | None:
        """The module's name, None when no module is started."""
        return self.target if self.kind is Kind.MODULE else None

    @property
    def runs_tests(self) -> bool:
        """Whether it is pytest or unittest, whose tests are reported one by one."""
        return self.module in RUNNERS

    @property
    def script(self) -> str | None:
        """The script's path, None when no script is started."""
        return self.target if self.kind is Kind.SCRIPT else None

    @property
    def program(self) -> str:
        """The program that a command starts first; empty where only a shell or the session's interpreter knows."""
        if self.kind is not Kind.COMMAND:
            return self.interpreter or ""
        words = [] if _shell_syntax(self.text) else shlex.split(self.text)
        return next((word for word in words if not _ASSIGNMENT.fullmatch(word)), "")

    def with_args(self, args: Sequence[str]) -> Entrypoint:
        """The same program with other arguments, for what is no `Kind.COMMAND`."""
        changed = replace(self, args=tuple(args))
        assignments = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        return replace(changed, text=" ".join([*assignments, shlex.join(changed.argv("python"))]))

    def argv(self, python: str) -> list[str]:
        """The command that runs it plainly; `env` has to be set besides.

        Args:
            python: the session's interpreter, used where the entrypoint names no other
        """
        if self.kind is Kind.COMMAND:
            return ["/bin/sh", "-c", self.text]
        switch = {Kind.MODULE: ["-m"], Kind.CODE: ["-c"], Kind.SCRIPT: []}[self.kind]
        return [self.interpreter or python, *self.flags, *switch, self.target, *self.args]


def _shell_syntax(text: str) -> str:
    """The first character that only a shell understands, outside the quotes that protect it; empty: none."""
    quote = ""
    escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif quote:
            if character == quote:
                quote = ""
            elif quote == '"' and character in _SHELL_IN_DOUBLE_QUOTES:
                return character
        elif character in "'\"":
            quote = character
        elif character in _SHELL_OUTSIDE_QUOTES:
            return character
    return ""


def _parse_program(words: Sequence[str]) -> Entrypoint | None:
    """The entrypoint (without its text and variables) for the words after the assignments; None: no Python program."""
    if words[:2] == ["uv", "run"]:
        return _parse_uv(list(words[2:]))
    if not words:
        return None
    if words[0] in _PYTEST:
        return Entrypoint("", Kind.MODULE, "pytest", tuple(words[1:]))
    if _INTERPRETER.fullmatch(PurePosixPath(words[0]).name):
        interpreter = None if words[0] in _SESSION_INTERPRETERS else words[0]
        program = _parse_python(list(words[1:]))
        return program and replace(program, interpreter=interpreter)
    return None


def _parse_uv(words: list[str]) -> Entrypoint | None:
    """`uv run [options] command`: options that only say what to install have nothing to do in the sandbox."""
    while words and words[0].startswith("-"):
        word = words.pop(0)
        name, _, value = word.partition("=")
        if word in ("-m", "--module") and words:
            return Entrypoint("", Kind.MODULE, words[0], tuple(words[1:]))
        if word == "--":
            break
        if name in _UV_FLAGS_WITH_VALUE and (value or words):
            if not value:
                words.pop(0)
        elif word not in _UV_FLAGS:
            return None
    if words and words[0].endswith(".py"):
        return Entrypoint("", Kind.SCRIPT, words[0], tuple(words[1:]))
    return _parse_program(words) if words[:1] != ["uv"] else None


def _parse_python(words: list[str]) -> Entrypoint | None:
    """`[flags] (-m module | -c code | script) [arguments]`; None when no program is started."""
    flags: list[str] = []
    while words:
        word = words.pop(0)
        if word == "-" or word.startswith("--"):
            return None
        if not word.startswith("-"):
            return Entrypoint("", Kind.SCRIPT, word, tuple(words), flags=tuple(flags))
        for place, letter in enumerate(word[1:], start=1):
            if letter in _FLAGS:
                flags.append(f"-{letter}")
                continue
            rest = word[place + 1 :]
            if letter not in _OPTIONS or not (rest or words):
                return None
            value = rest or words.pop(0)
            if letter == "m":
                return Entrypoint("", Kind.MODULE, value, tuple(words), flags=tuple(flags))
            if letter == "c":
                return Entrypoint("", Kind.CODE, value, tuple(words), flags=tuple(flags))
            flags += [f"-{letter}", value]
            break
    return None
