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


def dedent(text: str) -> dict[str, str]:
    return {"app.py": textwrap.dedent(text)}


def place(message: dict[str, Any]) -> str:
    stop = message["stop"]
    return f"{stop['file']}:{stop['line']} {stop['function']}"
