"""Workers and keepers, as the supervisor sees them."""

from .frames import Link

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

OURS = "# debug-gym: "
"""How the text of a program of ours begins; its name follows."""


class Child:
    """A worker or keeper, as the supervisor sees it."""

    def __init__(self, process: int, connection: "socket.socket") -> None:
        self.process = process
        self.connection = connection
        self.link = Link(connection.fileno(), connection.fileno())
        self.request = 0
        self.requests = set()  # type: set[int]
        self.what = ""
        self.blobs = 0
        self.clean = False
        self.callback: "Callable[[int], None] | None" = None
        self.deadline = None  # type: float | None
        self.late = False  # it was killed for its deadline
        self.began = 0.0
        self.run = False  # serves `run`, which has one reply
        self.kind = ""  # of programs that its zygote is for
        self.ready = False
        self.asked: "dict[str, Any] | None" = None
        self.wish: "dict[str, Any] | None" = None


def program_of(header: "dict[str, Any]") -> str:
    """What a request is to run, for a person: what is ours is called by its name."""
    words = header.get("argv", ())
    ours = [word.partition("\n")[0][len(OURS) :] for word in words if word.startswith(OURS)]
    return "the " + ours[0] if ours else (header.get("shell") or " ".join(words))[:200]
