"""A bound on the whole of an HTTP exchange; the client's own is for the time between two pieces of the answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import httpx

END = "debug_gym_end"


class BoundedStream(httpx.SyncByteStream):
    """The body of an answer, until the time is over or somebody stops it."""

    def __init__(self, inner: httpx.SyncByteStream, end: float, stopped: threading.Event) -> None:
        self.inner, self.end, self.stopped = inner, end, stopped

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self.inner:
            if time.monotonic() > self.end:
                raise httpx.ReadTimeout("the answer takes too long")
            if self.stopped.is_set():
                raise httpx.ReadError("the run is being stopped")
            yield chunk

    def close(self) -> None:
        """Let the connection go."""
        self.inner.close()


def bound(timeout: float, stopped: threading.Event) -> dict[str, list[Callable[..., object]]]:
    """Hooks of an HTTP client that end an answer which comes in drops.

    Args:
        timeout: seconds from the request's beginning
        stopped: ends it at the next piece
    """

    def begin(request: httpx.Request) -> None:
        request.extensions = {**request.extensions, END: time.monotonic() + timeout}

    def answer(response: httpx.Response) -> None:
        if isinstance(response.stream, httpx.SyncByteStream):
            response.stream = BoundedStream(response.stream, response.request.extensions[END], stopped)

    return {"request": [begin], "response": [answer]}
