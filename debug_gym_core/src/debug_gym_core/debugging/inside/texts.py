"""Texts of values that are the same in each run."""

import re

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+| id='[0-9]{6,}'")
"""Where an object lies; the latter as mocks say it."""


def without_addresses(text: str) -> str:
    """A text without the addresses of objects."""
    return _ADDRESS.sub("", text)
