"""What a person is told while something takes long: a line that the next one replaces.

Who does the work tells; the command line shows it. Without a command line nobody listens, and nothing is said. Who
waits may want it no more, as when a run is stopped: who does the work asks, now and then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

Listener = Callable[[str, str | None], None]
"""Takes what is under way, and a line that says how far it is; None: it has ended, and the last line stays."""

_default: list[Listener] = []
_listeners: list[Listener] = []
_wanted: ContextVar[Callable[[], bool]] = ContextVar("wanted")


def tell(what: str, line: str | None) -> None:
    """Tell how far something is.

    Args:
        what: names it, the same each time
        line: what to show; None: it has ended
    """
    for listener in (_listeners or _default)[-1:]:
        listener(what, line)


def listen(listener: Listener) -> None:
    """Be told, instead of whoever was told before, unless somebody is `listening`."""
    _default[:] = [listener]


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Be told while the `with` block runs."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def is_wanted() -> bool:
    """Whether what this thread is doing is still waited for; if not, it is to be given up with some error."""
    ask = _wanted.get(None)
    return ask is None or ask()


@contextlib.contextmanager
def wanted_while(ask: Callable[[], bool]) -> Iterator[None]:
    """What this thread does in the `with` block is wanted as long as `ask` says so."""
    token = _wanted.set(ask)
    try:
        yield
    finally:
        _wanted.reset(token)
