"""What a runner asks of the tests that pytest has found."""

import re

from .with_unittest import is_declared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]{6,16}(?=[^<>]*>)")
"""Where an object lies, in angle brackets as `repr` writes it."""


def stable_ids(items: "Iterable[Any]") -> "dict[Any, str]":
    """The ids of tests, without the addresses of objects that parameters may be named by: those differ in each run."""
    names, counts = {}, {}  # type: tuple[dict[Any, str], dict[str, int]]
    for item in items:
        names[item] = name = ADDRESS.sub("", item.nodeid)
        counts[name] = counts.get(name, 0) + 1
        if name != item.nodeid and counts[name] > 1:
            names[item] = "{}#{}".format(name, counts[name])
    return names


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
