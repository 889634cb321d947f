"""What must be installed for an interpreter of the host, and what must not."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from debug_gym_core.errors import RequirementError, UsageError
from debug_gym_core.sandbox.interpreter import Interpreter


def missing(interpreter: Interpreter, requires: Iterable[str]) -> list[str]:
    """Which of some distributions an interpreter does not have.

    Args:
        interpreter: the interpreter
        requires: names of distributions, or requirements such as `pytest>=7`

    Returns:
        those that are not installed, or in a version that does not do, as they were asked for

    Raises:
        UsageError: a requirement cannot be read
    """
    lacking = []
    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise UsageError(f"{text!r} is no requirement: {error}".splitlines()[0]) from error
        version = interpreter.packages.get(canonicalize_name(requirement.name))
        if version is None or (version and not requirement.specifier.contains(version, prereleases=True)):
            lacking.append(text)
    return lacking


def require(interpreter: Interpreter, requires: Iterable[str]) -> None:
    """Insist that an interpreter has some distributions.

    Args:
        interpreter: the interpreter
        requires: as for `missing`

    Raises:
        RequirementError: some are missing; says how to get them
    """
    lacking = missing(interpreter, requires)
    if lacking:
        wanted = " ".join(f"'{text}'" if re.search(r"[<>!=~;\[ ]", text) else text for text in lacking)
        them = "it" if len(lacking) == 1 else "them"
        raise RequirementError(
            f"the interpreter {interpreter.executable} has no {', '.join(lacking)}; get {them} with: "
            f"{interpreter.executable} -m pip install {wanted} (or uv pip install -p {interpreter.executable} {wanted})"
        )


def refuse(interpreter: Interpreter, conflicts: Iterable[str]) -> None:
    """Insist that an interpreter does not have some distributions, which may hold the fix.

    Args:
        interpreter: the interpreter
        conflicts: names of distributions

    Raises:
        RequirementError: one is there; says what to do
    """
    for name in conflicts:
        if canonicalize_name(name) in interpreter.packages:
            raise RequirementError(
                f"the interpreter {interpreter.executable} has {name} installed, a release of what is worked on, which"
                f" may hold the fix; name another one (env.python), or run: {interpreter.executable} -m pip uninstall"
                f" {name}"
            )
