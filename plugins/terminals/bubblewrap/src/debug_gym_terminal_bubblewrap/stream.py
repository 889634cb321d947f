"""The byte stream to the guest: two pipes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import threading
import weakref
from collections.abc import Callable

_PIPE_SIZE = 1 << 20
_open: weakref.WeakSet[PipeStream] = weakref.WeakSet()


class PipeStream:
    """A `debug_gym_core.sandbox.terminal.Stream` over the guest's standard input and output."""

    def __init__(
        self, stdin: int, stdout: int, process: int, begin: Callable[[], None], end: Callable[[], None]
    ) -> None:
        """Take over the descriptors.

        Args:
            stdin: where the guest reads from; written here
            stdout: where the guest writes to; read here
            process: number of bubblewrap's process, our child; when it has ended the sandbox counts as ended, though it
                may have been killed and the guest be there
            begin: called once, when the guest has said something and before that is told
            end: ends the guest's command; returns when both pipes are closed on its side

        Raises:
            OSError: it cannot take them over
        """
        self._stdin = stdin
        self._stdout = stdout
        self._begin: Callable[[], None] | None = begin
        self._end = end
        self._wake = os.eventfd(0, os.EFD_CLOEXEC)
        try:
            self._process = os.pidfd_open(process)
        except OSError:
            os.close(self._wake)
            raise
        self._closed = False
        self._closing = threading.Lock()
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        for descriptor in (stdin, stdout):
            with contextlib.suppress(OSError):  # more than the user may have in pipes
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        _open.add(self)

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes, at least one; empty at the end; blocks."""
        with self._reading:
            if self._closed:
                return b""
            poll = select.poll()
            poll.register(self._stdout, select.POLLIN)
            poll.register(self._wake, select.POLLIN)
            poll.register(self._process, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._wake in ready or self._stdout not in ready:
                return b""
            if self._begin is not None:
                begin, self._begin = self._begin, None
                begin()
            return os.read(self._stdout, size)

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data`; blocks; raises OSError when the other side is gone."""
        rest = memoryview(data).cast("B")
        with self._writing:
            if self._closed:
                raise BrokenPipeError("the stream is closed")
            while rest:
                rest = rest[os.write(self._stdin, rest) :]

    def close(self) -> None:
        """End the stream and the guest's command; a blocked `read` returns. May be called twice."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            os.eventfd_write(self._wake, 1)
            self._end()
            _open.discard(self)
            with self._reading, self._writing:
                for descriptor in (self._stdin, self._stdout, self._wake, self._process):
                    os.close(descriptor)

    def forget(self) -> None:
        """Close the descriptors and nothing else, in a child of this process: the guest must see its input end."""
        self._closed = True
        for descriptor in (self._stdin, self._stdout, self._wake, self._process):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _forget() -> None:
    for stream in list(_open):
        stream.forget()
    _open.clear()


os.register_at_fork(after_in_child=_forget)
