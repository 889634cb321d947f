"""What an entrypoint debugs: the Python program behind wrappers, console scripts and shells.

timeout 60 pytest -q, poetry run pytest -q   wrappers that only go before a command are left out
coverage run -m app, python -m pdb app.py    so is what traces a program as the debugger does
.venv/bin/pytest, flask run, ./manage.py     the script that they are, with the interpreter of their first line
cd sub && pytest                             the program, in that directory
make test, ./run.sh, tox                     refused, with the command of theirs that can be debugged
"""

from __future__ import annotations

import itertools
import posixpath
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from debug_gym_core.debugging.recipes import make_commands, nox_commands, tox_commands
from debug_gym_core.debugging.wrappers import TRACERS, WRAPPERS, Wrapper
from debug_gym_core.errors import ActionError, UsageError
from debug_gym_core.sandbox.terminal import ROOT
from debug_gym_core.tasks.entrypoint import EXAMPLE, Entrypoint, Kind

if TYPE_CHECKING:
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.workspace.files import Workspace

TEXT_LIMIT = 2000
"""Characters of an entrypoint that an error repeats."""

LOOK_SECONDS = 5.0
LARGEST_READ = 64 * 1024
DEEPEST = 8
"""Wrappers in each other that are taken apart."""

_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_PYTEST = frozenset(("pytest", "py.test"))
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_CHANGE_DIRECTORY = re.compile(r"cd\s+([^\s&|;<>()$`*?'\"]+)\s*(?:&&|;)\s*(.+)", re.DOTALL)
_SHELL_PARTS = re.compile(r"\s*(?:\d?>&?\s*\S*|<<?|[|&;\n]+)\s*")
_SHEBANG = re.compile(r"#!\s*(\S+)[ \t]*([^\n]*)")
_LONG_SHEBANG = re.compile(r"#!/bin/sh\n'''exec' \"?([^\s\"]+)")
_INTERPRETER = re.compile(r"(?:python|pypy)(\d+(\.\d+)?t?)?")
_LOOK = 'PATH="$2:$PATH"; p=$(command -v -- "$1") && [ -x "$p" ] && printf "%s\\n" "$p" && head -c 4096 "$p"'


class Place(Protocol):
    """Where an entrypoint runs; an environment is one."""

    @property
    def session(self) -> Session:
        """The live sandbox."""

    @property
    def workspace(self) -> Workspace:
        """The files of the task, under its rules."""


@dataclass(frozen=True)
class Target:
    """What is debugged.

    Attributes:
        entrypoint: the program; its text is what was written
        cwd: where it runs, relative to the workspace
        notes: what is left out of it that makes a difference
    """

    entrypoint: Entrypoint
    cwd: str = "."
    notes: tuple[str, ...] = ()


class Refused(Exception):
    """What was written cannot be debugged.

    Attributes:
        why: the reason, in a few words
        instead: an entrypoint that does something like it; empty: none is known
    """

    def __init__(self, why: str, instead: str = "") -> None:
        """Say why."""
        super().__init__(why)
        self.why = why
        self.instead = instead


def find_target(text: str, env: Place, tool: str = "pdb", what: str = "debugged") -> Target:
    """Find the Python program that an entrypoint starts.

    Args:
        text: the entrypoint
        env: where it runs
        tool: who wants to know, for what is said of it
        what: what is to be done with the program, `debugged` or `traced`

    Raises:
        ActionError: there is none that can be debugged; says why, and what to write instead
        SandboxError: the sandbox failed
    """
    text = text.strip()
    if "\0" in text or (not text.isascii() and text != text.encode("utf-8", "replace").decode()):
        raise ActionError(f"{tool}: the entrypoint holds a character that no command can hold")
    try:
        found = _Finder(env).find(text)
    except UsageError as error:
        raise ActionError(_bound(f"{tool}: {error}")) from None
    except Refused as refused:
        shown = _bound(repr(text))
        advice = f"what it runs is {refused.instead!r}" if refused.instead else f"for example {EXAMPLE!r}"
        raise ActionError(
            f"{tool}: {shown} cannot be {what}: {_bound(refused.why)}; give `entrypoint`, {advice}"
        ) from None
    return replace(found, entrypoint=replace(found.entrypoint, text=text))


@dataclass
class _Finder:
    """Takes one entrypoint apart."""

    env: Place
    cwd: str = "."
    variables: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def find(self, text: str) -> Target:
        """The program behind a command; see `find_target`."""
        for _ in range(DEEPEST):
            changed = _CHANGE_DIRECTORY.fullmatch(text)
            if changed:
                self._enter(changed[1])
                text = changed[2]
            parsed = Entrypoint.parse(text)
            if parsed.kind is Kind.COMMAND and parsed.why_not.startswith("it uses the shell"):
                raise self._refuse(parsed.why_not, _SHELL_PARTS.split(text))
            self.variables.update(parsed.env or _assignments(text))
            inner = self._inside(text, parsed)
            if inner is None:
                break
            text = inner
        else:
            raise Refused(f"it has more than {DEEPEST} commands that start another one")
        if parsed.kind is Kind.COMMAND:
            parsed = self._console_script(_words(text))
        if parsed.kind is Kind.SCRIPT and parsed.target.startswith(ROOT + "/"):  # as all that we say names it
            parsed = replace(parsed, target=self.env.session.root + parsed.target.removeprefix(ROOT))
        if parsed.module in ("tox", "nox"):
            raise self._runner(parsed.module, list(parsed.args))
        if parsed.module == "pytest" and "--trace" in parsed.args:
            self.notes.append("--trace is left out: set a breakpoint at the test.")
        return Target(replace(parsed, env=self.variables), self.cwd, tuple(self.notes))

    def _enter(self, directory: str) -> None:
        """Change the directory, within the workspace."""
        directory = directory.removeprefix(ROOT + "/") if directory != ROOT else "."
        self.cwd = posixpath.normpath(posixpath.join(self.cwd, directory))
        if self.cwd.startswith(("/", "../")) or self.cwd == "..":
            raise Refused(f"{directory} is outside of the repository")
        if self.env.session.run(["test", "-d", self.cwd], timeout=LOOK_SECONDS).exit_status != 0:
            raise Refused(f"there is no directory {self.cwd}")

    def _inside(self, text: str, parsed: Entrypoint) -> str | None:
        """The command that a wrapper starts; None: there is no wrapper."""
        words = _words(text)
        if parsed.module in TRACERS and (parsed.module != "coverage" or parsed.args[:1] == ("run",)):
            wrapper = TRACERS[parsed.module]
            rest = list(parsed.args[1:] if parsed.module == "coverage" else parsed.args)
            python = [parsed.interpreter or "python", *parsed.flags]
            return shlex.join([*python, *self._after(parsed.module, wrapper, rest)])
        if parsed.kind is not Kind.COMMAND:
            return None
        if not words:
            raise Refused("it names no program")
        name = posixpath.basename(words[0])
        if name == "env":
            return self._after_env(words[1:])
        if name in _SHELLS:
            return self._in_shell(name, words[1:])
        for length in (2, 1):
            wrapper_ = WRAPPERS.get((name, *words[1:length]))
            if wrapper_ is not None:
                rest = self._after(name, wrapper_, words[length:])
                return shlex.join(["python", *rest] if name == "coverage" else rest)
        return None

    def _after(self, name: str, wrapper: Wrapper, words: list[str]) -> list[str]:
        """The command after a wrapper's options."""
        left = wrapper.words
        words = list(words)
        traces = name in TRACERS
        while words and (words[0].startswith("-") or left) and not (traces and words[0] == "-m"):
            word = words.pop(0)
            if word == "--":
                continue
            if not word.startswith("-"):
                left -= 1
            elif word in wrapper.valued and words:
                words.pop(0)
        if not words:
            raise Refused(f"{name} is given no command")
        if wrapper.note:
            self.notes.append(f"{name} is left out: it {wrapper.note}.")
        return words

    def _after_env(self, words: list[str]) -> str:
        while words and (match := _ASSIGNMENT.fullmatch(words[0])):
            self.variables[match[1]] = match[2]
            words = words[1:]
        if words[:1] in (["-S"], ["--split-string"]) and len(words) == 2:
            return words[1]
        if words and words[0].startswith("-"):
            raise self._refuse(f"env {words[0]} is not understood", [shlex.join(words[1:])])
        return shlex.join(words)

    def _in_shell(self, name: str, words: list[str]) -> str:
        """The one command that a shell is given by `-c`; a script is refused."""
        while words and re.fullmatch(r"-[a-z]*", words[0]) and not words[0].endswith("c"):
            words = words[1:]
        if len(words) == 2 and words[0].startswith("-"):
            return words[1]
        script = words[0] if words else ""
        raise self._refuse_script(script, self._read(script)) if script else Refused(f"it starts {name}, a shell")

    def _console_script(self, words: list[str]) -> Entrypoint:
        """The Python script that a program is.

        Raises:
            Refused: it is none
        """
        name = words[0]
        if name in ("make", "gmake"):
            raise self._make(words[1:])
        if name in ("tox", "nox"):
            raise self._runner(name, words[1:])
        if posixpath.basename(name) in ("python", "python3"):
            raise Refused("Python is given no program: a file, -m MODULE or -c CODE")
        python = self.env.session.python
        try:
            found = self.env.session.run(
                ["/bin/sh", "-c", _LOOK, "sh", name, posixpath.dirname(python)],
                timeout=LOOK_SECONDS,
                cwd=self.cwd,
                env=self.variables,
            )
        except OSError as error:
            raise Refused(f"it cannot be looked for: {error.strerror or error}") from None
        if found.exit_status != 0:
            raise self._refuse_missing(name, words[1:])
        path, _, head = found.output.partition("\n")
        head = head.replace("\r\n", "\n")
        interpreter, flags = _interpreter(head)
        if interpreter is None:
            if name.endswith(".py"):
                return Entrypoint("", Kind.SCRIPT, name, tuple(words[1:]))
            raise self._refuse_script(name, head)
        known = None if interpreter in ("", python) else interpreter
        if posixpath.basename(path) in _PYTEST:
            return Entrypoint("", Kind.MODULE, "pytest", tuple(words[1:]), flags=flags, interpreter=known)
        target = name if "/" in name else path
        return Entrypoint("", Kind.SCRIPT, target, tuple(words[1:]), flags=flags, interpreter=known)

    def _refuse_missing(self, name: str, args: list[str]) -> Refused:
        if name.endswith(".py"):
            return self._refuse(f"{name} is not executable, or not there", [shlex.join(["python", name, *args])])
        text = self._read(name)
        return self._refuse_script(name, text) if text else Refused(f"there is no program {name}")

    def _refuse_script(self, path: str, head: str) -> Refused:
        """A program that is not Python: for a shell script, with the command in it that is."""
        shebang = _SHEBANG.match(head)
        if shebang and posixpath.basename(shebang[1]) not in (*_SHELLS, "env"):
            return Refused(f"{path} is a program of {posixpath.basename(shebang[1])}, not of Python")
        if not shebang and not path.endswith((".sh", ".bash")):
            return Refused(f"{path} is not a Python program")
        return self._refuse(f"{path} is a shell script", self._read(path).splitlines())

    def _refuse(self, why: str, lines: Iterable[str]) -> Refused:
        """Refuse what runs commands, naming the first of them that can be debugged, a test run before others."""
        found = [one for one in map(_debuggable, lines) if 0 < len(one) <= TEXT_LIMIT]
        found.sort(key=lambda one: "pytest" not in one and "unittest" not in one)
        if not found:
            return Refused(why)
        directory = "" if self.cwd == "." else f"cd {shlex.quote(self.cwd)} && "
        return Refused(why, directory + found[0])

    def _make(self, words: list[str]) -> Refused:
        files = map(self._read, ("GNUmakefile", "makefile", "Makefile"))
        targets = [word for word in words if not word.startswith("-") and "=" not in word]
        lines = make_commands(next((text for text in files if text), ""), targets[0] if targets else None)
        return self._refuse("make starts other programs", lines)

    def _runner(self, name: str, words: list[str]) -> Refused:
        if name == "nox":
            return self._refuse("nox starts other programs", nox_commands(self._read("noxfile.py")))
        chosen = next((words[place + 1] for place, word in enumerate(words[:-1]) if word == "-e"), "")
        return self._refuse("tox starts other programs", tox_commands(self._read("tox.ini"), chosen))

    def _read(self, path: str) -> str:
        """A file's text; empty when there is none, or it must not be seen."""
        path = posixpath.normpath(posixpath.join(self.cwd, path))
        try:
            return self.env.session.read(self.env.workspace.resolve(path), 0, LARGEST_READ).decode("utf-8", "replace")
        except (OSError, ActionError):
            return ""


def _bound(text: str) -> str:
    """Head and tail of a text that is too long to be repeated."""
    if len(text) <= TEXT_LIMIT:
        return text
    half = TEXT_LIMIT // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def _words(text: str) -> list[str]:
    """The words of a command after its variables."""
    return list(itertools.dropwhile(_ASSIGNMENT.fullmatch, shlex.split(text)))


def _assignments(text: str) -> dict[str, str]:
    """The variables that are set before a command, in their order."""
    matches = map(_ASSIGNMENT.fullmatch, shlex.split(text))
    return {match[1]: match[2] for match in itertools.takewhile(bool, matches) if match}


def _interpreter(head: str) -> tuple[str | None, tuple[str, ...]]:
    """The Python interpreter of a script's first lines, and its flags; empty: the session's; None: no Python."""
    match = _LONG_SHEBANG.match(head) or _SHEBANG.match(head)
    if match is None:
        return None, ()
    words = [match[1], *(match[2].split() if match.re is _SHEBANG else ())]
    if posixpath.basename(words[0]) == "env":
        words = [word for word in words[1:] if word != "-S"]
    if not words or not _INTERPRETER.fullmatch(posixpath.basename(words[0])):
        return None, ()
    return "" if words[0] in ("python", "python3") else words[0], tuple(words[1:])


def _debuggable(line: str) -> str:
    """A line of a shell script, where it is a program that can be debugged; empty where it is none."""
    text = re.sub(r"\s*\"?\$(?:[@*]|\{@\})\"?", "", line.strip())
    text = re.sub(r"\A(?:exec|time)\s+", "", text)
    try:
        return text if text and Entrypoint.parse(text).debuggable else ""
    except UsageError:
        return ""
