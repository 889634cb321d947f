"""Programs to be debugged, and where they are stopped."""

from __future__ import annotations

import textwrap
from typing import Any

LOOP = textwrap.dedent(
    """\
    import sys

    def add(total, n):
        result = total + n
        return result

    def main():
        total = 0
        for n in range(5):
            total = add(total, n)
        print("total", total)
        return total

    if __name__ == "__main__":
        main()
    """
)

LOOP_TEST = "from app import main\n\n\ndef test_main():\n    found = main()\n    assert found == 11\n"
"""A test of it that fails: the total is 10."""


def dedent(text: str) -> dict[str, str]:
    """The files of a program of one file, whose text is indented."""
    return {"app.py": textwrap.dedent(text)}


def place(message: dict[str, Any]) -> str:
    stop = message["stop"]
    return f"{stop['file']}:{stop['line']} {stop['function']}"
