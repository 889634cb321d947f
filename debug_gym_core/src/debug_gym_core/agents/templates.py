"""Jinja's sandbox, which says in the template's own lines what Python refuses of what Jinja makes of it."""

from __future__ import annotations

import re
from types import CodeType

import jinja2
import jinja2.sandbox

_OWN_NAME = re.compile(r"\bl_\d+_")
"""What Jinja writes before a name of a template."""


class Environment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """Templates that may come from others; Jinja's settings are its keyword arguments."""

    def _compile(self, source: str, filename: str) -> CodeType:
        """Compile what Jinja made of a template, by the hook that it has for this.

        Args:
            source: a Python module
            filename: of the template, for errors

        Raises:
            TemplateSyntaxError: Python refuses it: a parameter that is there twice, or blocks too deep
        """
        try:
            return super()._compile(source, filename)
        except SyntaxError as error:
            said = _OWN_NAME.sub("", error.msg)
            raise jinja2.TemplateSyntaxError(said, _line(source, error.lineno or 1), filename, filename) from error


def _line(source: str, number: int) -> int:
    """The template's line that a line of the Python was made of, by the table `TEMPLATE=PYTHON&...` in the last."""
    lines = ((int(line), int(first)) for line, first in re.findall(r"(\d+)=(\d+)", source.rpartition("\n")[2]))
    return max((line for line, first in lines if first <= number), default=1)
