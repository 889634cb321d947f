"""Workers and keepers, as the supervisor sees them."""

import signal
import time

from .frames import Link, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

OURS = "# debug-gym: "
"""How the text of a program of ours begins; its name follows."""

LATE = b"(What it printed is lost: it took all processor time.)\n"


class Child:
    """A worker or keeper, as the supervisor sees it.

    Attributes:
        again: its request, until it answers or more is sent to it; None: another must not be given the same
    """

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
        self.again: "tuple[dict[str, Any], bytes] | None" = None

    def untaken(self) -> "tuple[dict[str, Any], bytes] | None":
        """Of one that is gone, the request that it cannot have begun with: it never read all of it."""
        return self.again if self.link.broken and not self.late else None

    def failure(self, request: int) -> bytes:
        """What is told of a request, as it died."""
        if self.late and self.run and request == self.request:  # the command has timed out, whoever ended it
            reply = {"id": request, "t": "done", "clean": False, "status": -signal.SIGKILL, "timed_out": True}
            return pack(dict(reply, seconds=time.monotonic() - self.began), LATE)
        why = "left no processor time to end it" if self.late else "the command killed it, or memory ran out"
        text = "%s died (%s)" % (self.what, why)
        return pack({"id": request, "t": "error", "kind": "lost", "text": text})


def program_of(header: "dict[str, Any]") -> str:
    """What a request is to run, for a person: what is ours is called by its name."""
    words = header.get("argv", ())
    ours = [word.partition("\n")[0][len(OURS) :] for word in words if word.startswith(OURS)]
    return "the " + ours[0] if ours else (header.get("shell") or " ".join(words))[:200]
