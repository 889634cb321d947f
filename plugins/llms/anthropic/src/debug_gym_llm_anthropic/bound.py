"""A bound on the whole of an HTTP exchange; the client's own is for the time between two pieces of the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import httpx

END = "debug_gym_end"


class BoundedStream(httpx.SyncByteStream):
    """The body of an answer, until the time is over or nobody waits for it any more."""

    def __init__(self, inner: httpx.SyncByteStream, end: float, given_up: Callable[[], bool]) -> None:
        self.inner, self.end, self.given_up = inner, end, given_up

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self.inner:
            if time.monotonic() > self.end:
                raise httpx.ReadTimeout("the answer takes too long")
            if self.given_up():
                raise httpx.ReadError("the run is being stopped")
            yield chunk

    def close(self) -> None:
        """Let the connection go."""
        self.inner.close()


def bound(timeout: float, given_up: Callable[[], bool]) -> dict[str, list[Callable[..., object]]]:
    """Hooks of an HTTP client that end an answer which comes in drops.

    Args:
        timeout: seconds from the request's beginning
        given_up: whether it ends at the next piece
    """

    def begin(request: httpx.Request) -> None:
        request.extensions = {**request.extensions, END: time.monotonic() + timeout}

    def answer(response: httpx.Response) -> None:
        if isinstance(response.stream, httpx.SyncByteStream):
            response.stream = BoundedStream(response.stream, response.request.extensions[END], given_up)

    return {"request": [begin], "response": [answer]}
