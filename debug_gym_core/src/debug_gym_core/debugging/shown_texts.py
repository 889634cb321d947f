"""What a program and its debugger said, as it may be shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import ROOT


class ShownTexts:
    """Makes texts encodable, with plain line ends and the public path of the repository.

    Attributes:
        root: where the program says that its repository is
    """

    def __init__(self, session: Session, mask: Callable[[str], str] | None = None) -> None:
        """Know the program.

        Args:
            session: the sandbox that it runs in
            mask: makes what it prints equal from run to run, as that of pytest and unittest is in `eval`
        """
        self.root = ROOT
        self._session = session
        self._mask = mask

    def text(self, text: str) -> str:
        """A text of the debugger's."""
        text = text.replace("\r\n", "\n").encode("utf-8", "backslashreplace").decode()
        text = self._session.mask(text)
        return text if self.root in ("", ROOT) else text.replace(self.root, ROOT)

    def printed(self, text: str) -> str:
        """A text that the program printed."""
        text = self.text(text)
        return text if self._mask is None else self._mask(text)

    def json(self, value: Any) -> Any:
        """JSON types of the debugger's, with every text in them."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(one) for one in value]
        return {key: self.json(one) for key, one in value.items()} if isinstance(value, dict) else value
