"""Finds what the tests import of the repository's own from another copy of it."""

import sys

from . import files
from .describe import Describer
from .given import file_of

MOST = 3
"""Packages that are named."""

_BELOW = ("", "src", "lib")


def elsewhere(describer: Describer) -> "list[list[str]]":
    """Find imported packages that the repository has too, and that were not imported from it.

    Args:
        describer: knows the repository's files

    Returns:
        for each, its name and the file that was imported
    """
    modules = [item for item in list(sys.modules.items()) if type(item[0]) is str and "." not in item[0]]
    found = [[name, file_of(module)] for name, module in sorted(modules)]
    return [[name, path] for name, path in found if is_copy(name, path, describer)][:MOST]


def is_copy(name: str, path: str, describer: Describer) -> bool:
    """Whether the repository has a module, too, that was imported from elsewhere.

    Args:
        name: of the module
        path: of its file, which may be none
        describer: knows the repository's files
    """
    if not files.is_file(path) or describer.inside(path) is not None or files.is_pythons(files.real(path)):
        return False
    own = [files.joined(files.joined(describer.root, below), name) for below in _BELOW]
    copies = [copy for one in own for copy in (one + "/__init__.py", one + ".py")]
    there = [copy for copy in copies if files.is_file(copy)]
    return bool(there) and not any(files.is_same(copy, path) for copy in there)
