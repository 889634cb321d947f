"""How autodoc reads our docstrings and signatures."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx


def literal_backticks(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Take what stands in backticks in a docstring literally, backslashes and all, whatever follows."""
    for number, line in enumerate(lines):
        lines[number] = re.sub(r"(?<![`:])`([^`]+)`(?!`)(?=(\w?))", _literal, line)


def plain_defaults(
    app: Sphinx, what: str, name: str, thing: object, options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Write defaults that a dataclass makes as `...`, so that the signature can be read."""
    return signature and signature.replace("<factory>", "..."), returns


def _literal(found: re.Match[str]) -> str:
    return f"``{found[1]}``" + ("\\ " if found[2] else "")


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx of it."""
    app.connect("autodoc-process-docstring", literal_backticks, priority=100)
    app.connect("autodoc-process-signature", plain_defaults)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
