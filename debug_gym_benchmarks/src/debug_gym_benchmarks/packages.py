"""Others' packages: imported when they are first used, and their errors in a line."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from debug_gym_core.errors import RequirementError


def package(name: str, *, extra: str, why: str, instead: str = "") -> Any:
    """A package that is imported when first used.

    Args:
        name: of the package
        extra: which extra of ours brings it
        why: it is needed, as a clause
        instead: what to do without it, with what leads over to that

    Raises:
        RequirementError: it is missing
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise RequirementError(_needed(name, extra, why, instead)) from None


def lacking(name: str, *, extra: str, why: str, instead: str = "") -> str | None:
    """What `package` would raise, in words, found out without an import; None: the package is there.

    Args:
        name: as for `package`
        extra: likewise
        why: likewise
        instead: likewise
    """
    return _needed(name, extra, why, instead) if importlib.util.find_spec(name) is None else None


def _needed(name: str, extra: str, why: str, instead: str) -> str:
    return f"{why}, which needs the package {name}: pip install 'debug-gym-benchmarks[{extra}]'{instead}"


def first_line(error: BaseException) -> str:
    """The first line of an error's text."""
    return next((line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()), type(error).__name__)[
        :300
    ]
