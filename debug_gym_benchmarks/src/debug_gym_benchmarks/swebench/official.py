"""What the package `swebench` says of an instance: how its tests are run, and how their log is read.

The package is imported when a task is loaded or judged, and not before: that takes seconds.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from debug_gym_core import UsageError
from debug_gym_core.errors import RequirementError

Kind = Literal["pytest", "sympy", "django", "other"]

START = ">>>>> Start Test Output"
END = ">>>>> End Test Output"

_NEEDED = (
    "the tests of SWE-bench are run and read by the package swebench (4.1): "
    "pip install 'debug-gym-benchmarks[swebench]'"
)
_IN_ENVIRONMENT = ("source ", "conda activate ", "cd ", "export ")
_PYTEST = {"pytest", "py.test"}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True)
class Evaluation:
    """How an instance is evaluated.

    Attributes:
        script: the official evaluation script
        parser: name of the official log parser
        kind: what runs the tests
        entrypoint: the test command of the script, for the agent
        debug_entrypoint: the same as one Python process, for a debugger; None: the entrypoint is
        tests_its_runner: whether what the agent works on is what runs the tests
    """

    script: str
    parser: str
    kind: Kind
    entrypoint: str
    debug_entrypoint: str | None
    tests_its_runner: bool = False

    def lines(self) -> tuple[list[str], list[str], list[str]]:
        """The script's lines before, between and after the markers around the tests, without the markers."""
        lines = self.script.splitlines()
        start, end = (next(place for place, line in enumerate(lines) if mark in line) for mark in (START, END))
        return lines[:start], lines[start + 1 : end], lines[end + 1 :]

    def tests_only(self) -> str:
        """A script that runs the tests on the files as they are."""
        before, tests, _ = self.lines()
        ready = [line for line in before if line.startswith(_IN_ENVIRONMENT)]
        return "\n".join(["set -uxo pipefail", *ready, f": '{START}'", *tests, f": '{END}'", ""])


def evaluation(row: Mapping[str, Any], where: str) -> Evaluation:
    """How the instance of a row is evaluated: as the row says itself, else as the package knows it.

    Args:
        row: as published, its fields checked
        where: names file and row

    Raises:
        UsageError: the row does not say, and the package does not know its repository or version
        RequirementError: the package is not installed
    """
    own = [name for name in ("eval_script", "log_parser") if row.get(name)]
    if len(own) == 1:
        missing = "log_parser" if own == ["eval_script"] else "eval_script"
        raise UsageError(f"{where}: there is a field {own[0]!r}, but no field {missing!r}")
    if own:
        script, name = row["eval_script"], row["log_parser"]
    else:
        script, name = _script(row, where), _parser_of(row["repo"])
    if not (START in script and END in script):
        raise UsageError(f"{where}: the field 'eval_script' lacks the line {START!r} or {END!r}")
    if not hasattr(_parsers(), name):
        raise UsageError(f"{where}: the field 'log_parser' is {name!r}, which the package swebench does not have")
    draft = Evaluation(script, name, "other", "", None)
    command = next((line.strip() for line in reversed(draft.lines()[1]) if line.strip()), "")
    entrypoint, debug_entrypoint = _entrypoints(command, own_directives(command))
    its_runner = row["repo"] == "pytest-dev/pytest"
    return Evaluation(script, name, _kind(name, command), entrypoint, debug_entrypoint, its_runner)


def files_of(patch: str) -> tuple[str, ...]:
    """The files that a patch changes, makes or deletes, in order."""
    headers = re.findall(r"^diff --git a/(.*?) b/(.*)$", patch, re.MULTILINE)
    return tuple(dict.fromkeys(name for pair in headers for name in pair))


def parse(parser: str, log: str) -> dict[str, str]:
    """The status of each test that a log states, as the official parser reads it; of several, the last.

    Raises:
        ValueError: the parser fails at what is there
    """
    function: Callable[[str, Any], dict[str, str]] = getattr(_parsers(), parser)
    try:
        return function(log, None)  # the specification is not read by the parsers for Python
    except IndexError as error:  # some take words of a line that need not be there
        raise ValueError(f"the official parser {parser} fails: {error}") from error


def own_directives(command: str) -> list[str]:
    """The words of a test command that name files of tests."""
    return [word for word in _words(command)[1:] if word.endswith(".py")]


def _script(row: Mapping[str, Any], where: str) -> str:
    """The evaluation script that the package makes; nothing is asked of the network, as `make_test_spec` would."""
    constants, scripts = _package("harness.constants.python"), _package("harness.test_spec.python")
    known = constants.MAP_REPO_VERSION_TO_SPECS_PY
    repository, version = row["repo"], row.get("version")
    if version is None:
        raise UsageError(f"{where}: there is no field 'version', and no 'eval_script' in its place")
    if repository not in known:
        raise UsageError(f"{where}: the field 'repo' is {repository!r}, which the package swebench does not know")
    if version not in known[repository]:
        raise UsageError(f"{where}: the field 'version' is {version!r}, which swebench has not of {repository}")
    lines: Sequence[str] = scripts.make_eval_script_list_py(
        row, known[repository][version], "testbed", "/testbed", row["base_commit"], row["test_patch"]
    )
    return "\n".join(["#!/bin/bash", "set -uxo pipefail", *lines, ""])


def _parser_of(repository: str) -> str:
    """The name under which the package has a repository's log parser."""
    return str(_parsers().MAP_REPO_TO_PARSER_PY[repository].__name__)


def _kind(parser: str, command: str) -> Kind:
    if "sympy" in parser:
        return "sympy"
    if "django" in parser:
        return "django"
    return "pytest" if any(word in _PYTEST or word == "tox" for word in _words(command)) else "other"


def _entrypoints(command: str, files: Sequence[str]) -> tuple[str, str | None]:
    """The test command for the agent and for a debugger.

    `pytest` is understood as it is; a script of the repository (`bin/test`, `./tests/runtests.py`) is named as
    Python's, so that it counts as what runs the tests; what `tox` runs is pytest.
    """
    words = _words(command)
    if not words:
        return command or "true", None
    variables = shlex.split(command)[: -len(words)]
    assignments = "".join(
        f"{name}={shlex.quote(value)} " for name, _, value in (one.partition("=") for one in variables)
    )
    if words[0] in _PYTEST:
        return f"{assignments}{shlex.join(words)}", None
    if words[0] == "tox":
        return command, f"{assignments}{shlex.join(['python', '-m', 'pytest', '-rA', *files])}"
    if "/" in words[0]:
        return f"{assignments}{shlex.join(['python', *words])}", None
    return command, None


def _words(command: str) -> list[str]:
    """The words of a command after the variables that it sets."""
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    while words and _ASSIGNMENT.match(words[0]):
        words.pop(0)
    return words


def unavailable() -> str | None:
    """Say that the package is missing; None: it is here."""
    return _NEEDED if importlib.util.find_spec("swebench") is None else None


def _parsers() -> Any:
    return _package("harness.log_parsers.python")


@functools.cache
def _package(module: str) -> Any:
    """A module of the package."""
    try:
        return importlib.import_module(f"swebench.{module}")
    except ModuleNotFoundError as error:
        if error.name is not None and not error.name.startswith("swebench"):
            raise
        raise RequirementError(_NEEDED) from None
