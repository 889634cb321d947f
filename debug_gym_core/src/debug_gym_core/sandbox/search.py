"""A search in the files of a sandbox, by its guest: it is waited for, and ended when nobody wants it any more."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, Literal

from debug_gym_core.errors import SandboxLost
from debug_gym_core.sandbox.answers import FoundFile, found_of
from debug_gym_core.sandbox.connection import GRACE
from debug_gym_core.sandbox.grep import Found, InvalidPattern, Query, request_of
from debug_gym_core.sandbox.replies import PIECE, CommandLost, Waiter

if TYPE_CHECKING:
    from debug_gym_core.sandbox.connection import Connection

FOUND = 1 << 28
"""Bytes of what a search finds: of lines only so many come as were asked for, but each file that has one is named."""


def search(connection: Connection, path: str, query: Query, ignored: dict[str, Any]) -> Found:
    """Search the files below a directory, or one file; see `Session.grep`.

    Args:
        connection: of the guest
        path: where
        query: what to look for
        ignored: what is passed over

    Raises:
        InvalidPattern: the pattern is no regular expression
        OSError: there is no such path, or it may not be read
        SandboxLost: the guest is gone
    """
    waiter = Waiter(FOUND, PIECE)
    started = time.monotonic()
    number = connection.submit(waiter, "grep", path=path, **request_of(query, ignored))
    files: list[FoundFile] = []
    try:
        while True:
            header, body = connection.wait(waiter, "grep", query.timeout + GRACE)
            if header["t"] == "done":
                break
            with connection.believing():
                files.append(found_of(body))
    except CommandLost:  # the search was killed, or took all memory
        stopped: Literal["time", "memory"] = "time" if time.monotonic() - started >= query.timeout else "memory"
        lines = sum(one.count for one in files if not one.binary)
        return Found(files, 0, len(files), lines, stopped=stopped)
    except KeyboardInterrupt:
        with contextlib.suppress(SandboxLost):
            connection.submit(Waiter(), "kill", of=number)
        raise
    with connection.believing():
        if "invalid" in header:
            raise InvalidPattern(header["invalid"], header["position"])
        sums = ("files", "matching_files", "matching_lines", "unreadable", "cut_lines", "stopped", "at")
        return Found(files, *(header[name] for name in sums))
