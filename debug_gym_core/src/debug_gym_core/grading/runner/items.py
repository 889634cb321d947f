"""What a runner asks of the tests that pytest has found."""

import re

from . import files
from .with_unittest import is_declared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]{6,16}(?=[^<>]*>)")
"""Where an object lies, in angle brackets as `repr` writes it."""


class Found(object):
    """A test as it was found; what it says of itself later, tested code may have told it.

    Attributes:
        item: it, which no other one is as long as this is kept
        name: its id
        code: of its function; None: it has none
    """

    __slots__ = ("code", "item", "name")

    def __init__(self, item: "Any", name: str) -> None:
        self.item = item
        self.name = name
        self.code = code_of(getattr(item, "_obj", None))


def found(items: "Iterable[Any]") -> "Sequence[Found]":
    """Tests, by ids without the addresses of objects that parameters may be named by: those differ in each run."""
    tests, counts = [], {}  # type: tuple[list[Found], dict[str, int]]
    for item in items:
        name = ADDRESS.sub("", item.nodeid)
        counts[name] = counts.get(name, 0) + 1
        more = name != item.nodeid and counts[name] > 1
        tests.append(Found(item, "{}#{}".format(name, counts[name]) if more else name))
    return tests


def root_of(config: "Any") -> str:
    """The directory that the ids of all tests begin at; empty where some may begin at what pytest is told to run.

    That is so where one of these does not lie below it.

    Args:
        config: pytest's, before any file of the repository is loaded
    """
    root = files.plain(str(getattr(config, "rootpath", None) or config.rootdir))
    known = config.known_args_namespace
    begin = [files.plain(one.partition("::")[0]) for one in getattr(known, "file_or_dir", None) or ["."]]
    named = getattr(known, "pyargs", False)
    return root if not named and all((one + "/").startswith(root.rstrip("/") + "/") for one in begin) else ""


def instance_of(item: "Any") -> "Any":
    """The instance of its class that a test runs with; None for a function."""
    return getattr(item, "instance", None) or getattr(item, "_testcase", None)


def cannot_pass(item: "Any") -> bool:
    """Whether marks of the pristine repository say that a test is skipped or expected to fail."""
    import pytest

    try:
        from _pytest import skipping

        if is_declared(getattr(item, "cls", None), getattr(item, "_obj", None)):
            return True
        if hasattr(skipping, "evaluate_skip_marks"):
            if skipping.evaluate_skip_marks(item):
                return True
            return bool(skipping.evaluate_xfail_marks(item))
        if hasattr(item, "iter_markers"):
            marks = list(item.iter_markers())
        else:  # before pytest 3.6
            marks = [mark for mark in map(item.get_marker, ("skip", "xfail")) if mark is not None]
        return any(mark.name == "skip" or (mark.name == "xfail" and not mark.args) for mark in marks)
    except (Exception, pytest.fail.Exception):  # A condition that cannot be evaluated: an error when the test runs.
        return False


def code_of(function: "Any") -> "Any":
    """The code object of a function or method."""
    return getattr(getattr(function, "__func__", function), "__code__", None)
