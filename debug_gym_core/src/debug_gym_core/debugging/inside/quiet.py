"""Lets no warning through while the debugger compiles what the program compiles too."""

import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_IGNORED: "Any" = ("ignore", None, Warning, None, 0)
"""A filter that lets no warning through."""


class Quiet:
    """No warning is given meanwhile; a context manager.

    After `warnings.catch_warnings`, what is warned of once would be warned of again.
    """

    def __enter__(self) -> None:
        """Let no warning through."""
        self._filters: "Any" = warnings.filters
        if isinstance(self._filters, list):
            self._filters.insert(0, _IGNORED)

    def __exit__(self, *error: object) -> None:
        """Let those through again that the program wants to have."""
        if isinstance(self._filters, list) and _IGNORED in self._filters:
            self._filters.remove(_IGNORED)
