"""Finds what the tests import of the repository's own from another copy of it."""

import os
import sys
from types import ModuleType

from .describe import Describer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

MOST = 3
"""Packages that are named."""

_BELOW = ("", "src", "lib")
_STANDARD = os.path.realpath(os.path.dirname(os.__file__)) + os.sep


def elsewhere(describer: Describer) -> "list[list[str]]":
    """Find imported packages that the repository has too, and that were not imported from it.

    Args:
        describer: knows the repository's files

    Returns:
        for each, its name and the file that was imported
    """
    found = []
    for name, module in sorted(item for item in list(sys.modules.items()) if type(item[0]) is str):
        try:
            path = _file(module) if "." not in name else None
            if path is not None and _is_copy(name, path, describer):
                found.append([name, path])
        except (OSError, ValueError):  # tested code can give a module any file
            continue
    return found[:MOST]


def _is_copy(name: str, path: str, describer: Describer) -> bool:
    """Whether the repository has a module of this name, too, that lies elsewhere."""
    if describer.inside(path) is not None or _is_standard(path):
        return False
    own = [os.path.join(describer.root, below, name) for below in _BELOW]
    copies = [copy for one in own for copy in (os.path.join(one, "__init__.py"), one + ".py")]
    there = [copy for copy in copies if os.path.isfile(copy)]
    return bool(there) and not any(os.path.samefile(copy, path) for copy in there)


def _file(module: object) -> "Union[str, None]":
    """The file of a module; None for what is none, or is no file any more."""
    path = vars(module).get("__file__") if issubclass(type(module), ModuleType) else None
    return path if type(path) is str and os.path.isfile(path) else None


def _is_standard(path: str) -> bool:
    """Whether a file is the standard library's."""
    real = os.path.realpath(path)
    return real.startswith(_STANDARD) and "-packages" + os.sep not in real
