"""Requests of the host's, and the workers and keepers that serve them, as the supervisor sees them."""

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

KEEPER_GRACE = 1.75
"""Seconds over the timeout after which a child that does not answer is itself killed."""


class Request:
    """What the host wants done by a child.

    Attributes:
        header: what it is
        frame: the same with its body, as it came
        last: whether no other child may have it, should this one be gone before it took it
    """

    def __init__(self, header: "dict[str, Any]", frame: bytes, last: bool = False) -> None:
        self.header = header
        self.frame = frame
        self.last = last
        self.id = header["id"]  # type: int
        self.timeout = header.get("timeout")  # type: float | None
        self.warm = header if header.get("warm") else None

    def server(self) -> str:
        """Who does it, for a person."""
        op = self.header["op"]
        if op == "grep":
            return "the search"
        return "the keeper of " + self._program() if op in ("run", "process") else "the file worker at " + op

    def _program(self) -> str:
        """What it runs; what is ours is called by its name."""
        words = self.header.get("argv", ())
        ours = [word.partition("\n")[0][len(OURS) :] for word in words if word.startswith(OURS)]
        return "the " + ours[0] if ours else (self.header.get("shell") or " ".join(words))[:200]


class Child:
    """A worker or keeper, as the supervisor sees it.

    Attributes:
        request: what it does, or did last
        requests: the ids of that and of those about it that it has not answered
        untouched: it was sent its request, nothing since, and has not answered
        wish: its program, should others like it be started warm
    """

    def __init__(self, process: int, connection: "socket.socket") -> None:
        self.process = process
        self.connection = connection
        self.link = Link(connection.fileno(), connection.fileno())
        self.request = None  # type: Request | None
        self.requests = set()  # type: set[int]
        self.blobs = 0
        self.clean = False
        self.callback: "Callable[[int], None] | None" = None
        self.deadline = None  # type: float | None
        self.late = False  # it was killed for its deadline
        self.began = 0.0
        self.kind = ""  # of programs that its zygote is for
        self.ready = False
        self.wish: "dict[str, Any] | None" = None
        self.untouched = False

    @property
    def busy(self) -> bool:
        """Whether it has not answered its request."""
        return self.request is not None and self.request.id in self.requests

    def begin(self, request: Request) -> None:
        """It is about to be sent a request."""
        self.request = request
        self.began = time.monotonic()
        self.deadline = None if request.timeout is None else self.began + request.timeout + KEEPER_GRACE
        self.wish = None if self.ready else request.warm

    def untaken(self) -> "Request | None":
        """Of one that is gone, what another has to do: it cannot have begun with what it never read all of."""
        request = self.request
        if request is None or request.last or not self.untouched or not self.link.broken or self.late:
            return None
        return Request(request.header, request.frame, last=True)

    def failure(self, number: int) -> bytes:
        """What is told of a request, as it died."""
        request = self.request
        assert request is not None
        if self.late and number == request.id and request.header["op"] == "run":  # it timed out, whoever ended it
            reply = {"id": number, "t": "done", "clean": False, "status": -signal.SIGKILL, "timed_out": True}
            return pack(dict(reply, seconds=time.monotonic() - self.began), LATE)
        why = "left no processor time to end it" if self.late else "the command killed it, or memory ran out"
        text = "%s died (%s)" % (request.server(), why)
        return pack({"id": number, "t": "error", "kind": "lost", "text": text})
