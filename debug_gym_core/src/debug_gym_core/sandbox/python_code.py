"""Python source as the host reads it."""

from __future__ import annotations

import ast
import gc
import threading
import warnings

_ALONE = threading.Lock()


def parse(source: str | bytes) -> ast.Module:
    """The tree of a module, from any thread, and without warnings of it.

    Python 3.11 counts the depth of the tree that it builds in one place for all threads, and gives up with a
    SystemError when another one parses meanwhile (CPython issue 106905). Which warnings are ignored is kept in one
    place for all threads, too.

    Raises:
        SyntaxError: it is not Python of this version, or nested too deeply for it.
        ValueError: it has a null byte.
    """
    try:
        with _ALONE, warnings.catch_warnings(action="ignore"):
            try:
                return ast.parse(source)
            except SystemError:  # of a thread that asks nobody
                return _parse_at_once(source)
    except (RecursionError, MemoryError) as error:  # the parser's stack was too small
        raise SyntaxError("nested too deeply") from error


def _parse_at_once(source: str | bytes) -> ast.Module:
    """Parse without another thread's turn in between: only collecting garbage gives it one."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if collects:
            gc.enable()
