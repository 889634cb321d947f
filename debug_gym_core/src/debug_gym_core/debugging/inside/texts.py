"""Texts of values that are the same in each run."""

import re

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+| id='[0-9]{6,}'|(?:(?<=started)|(?<=stopped)|(?<=daemon)) [0-9]{6,}")
"""Where an object lies, the second as mocks say it; and the number of a thread."""


_NAME = type.__dict__["__name__"]


def name_of(kind: type) -> str:
    """The name of a class, without asking its metaclass, which is the program's."""
    return str(_NAME.__get__(kind))


def without_addresses(text: str) -> str:
    """A text without the addresses of objects."""
    return _ADDRESS.sub("", text)
