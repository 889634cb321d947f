"""Where the standard library and installed distributions lie."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def installed_places(root: str) -> "list[str]":
    """The entries of `sys.path` where the standard library and installed distributions lie."""
    given = [] if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", "").split(os.pathsep)
    library = os.path.dirname(os.__file__)
    prefix = os.path.realpath(sys.prefix)
    places = []
    for entry in sys.path:
        name = os.path.basename(entry)
        real = os.path.realpath(entry)
        if entry in given or not os.path.isdir(entry) or (is_inside(real, root) and not is_inside(real, prefix)):
            continue
        if entry == library or name in ("lib-dynload", "site-packages", "dist-packages"):
            places.append(entry)
    return places


def is_inside(path: str, directory: str) -> bool:
    """Whether a path is, or lies below, a directory; both without links."""
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def is_built_in(key: str, spec: "Any") -> bool:
    """Whether a module is part of the interpreter: no other can take its name."""
    return key in sys.builtin_module_names or (spec is not None and spec.origin == "built-in")
