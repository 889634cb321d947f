"""Chooses the modules that a clean run loads as they are before any tested code runs; `runner.given` does it there."""

from __future__ import annotations

import posixpath
from collections.abc import Container, Iterable, Mapping

from debug_gym_core.grading.links import leads_to
from debug_gym_core.grading.python_names import MODULE_SUFFIXES
from debug_gym_core.workspace.snapshot import Member


def given_modules(members: Mapping[str, Member], test_files: Iterable[str], changed: Container[str] = ()) -> list[str]:
    """The modules of the tests, and every conftest, but for those that the run takes over changed.

    Args:
        members: the pristine repository
        test_files: paths of its files with tests that count, also through links
        changed: paths that were changed, by leave of the task
    """
    conftests = (path for path in members if posixpath.basename(path) == "conftest.py")
    paths = sorted({*test_files, *conftests})
    ends = {one: leads_to(members, one) for one in paths}
    files = [one for one, end in ends.items() if end in members and members[end].kind == "file" and end not in changed]
    return [
        one for one in files if one not in changed and all(_is_plain_module(members, at) for at in (one, ends[one]))
    ]


def _is_plain_module(members: Mapping[str, Member], path: str) -> bool:
    """Whether a file is loaded as a module by its name; a package may have it too, and a name with dots nothing."""
    stem, _, suffix = posixpath.basename(path).partition(".")
    package = posixpath.join(posixpath.dirname(path), stem, "__init__")
    return suffix == "py" and not any(f"{package}{one}" in members for one in MODULE_SUFFIXES)
