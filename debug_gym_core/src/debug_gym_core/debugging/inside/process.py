"""What the process was before anything of the program ran, and functions bound before the program can replace them."""

import _signal as _signal_in_c  # type: ignore[import-not-found]
import fcntl
import json
import os
import resource
import signal
import struct
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, FrozenSet

    Json = Dict[str, Any]

OURS = str(__package__)
"""File name that our own code objects have: it is executed from a descriptor."""

LOADED_AT_START: "FrozenSet[str]" = globals().get("LOADED_AT_START", frozenset())
"""Modules that the interpreter had loaded before anything of ours."""

INTERRUPT_SIGNAL = signal.SIGRTMIN + 6
STACK_SIGNAL = signal.SIGRTMIN + 7
"""At which Python itself writes where it is, in a long call of C code too."""

LOST_STATUS = 98
"""Exit status of a program that finds the channel closed."""

# Bound once, so that a program that replaces them (as tests do with mocks) does not replace ours.
_exit = os._exit
_getpid = os.getpid
_read = os.read
_write = os.write
_dumps = json.dumps
_loads = json.loads
_pack = struct.pack
_unpack = struct.unpack
_current_frames = sys._current_frames
_getframe = sys._getframe
_get_ident = threading.get_ident
_main_thread = threading.main_thread
_settrace = sys.settrace
_monotonic = time.monotonic
_process_time = time.process_time
_setitimer = signal.setitimer
# Not those of the module `signal`: with them, Python 3.7 leaves a cycle that keeps the program's frames alive.
_signal = _signal_in_c.signal
_getsignal = _signal_in_c.getsignal


def high_copy(descriptor: int, room: int = 8) -> int:
    """Copy a descriptor out of the way of programs that close or reuse low numbers; children do not inherit it.

    Args:
        descriptor: what is copied
        room: how many numbers there are from the lowest on that it may get
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    highest = 16384 if limit == resource.RLIM_INFINITY else min(limit, 16384)
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(highest - room, 3))


class Messages:
    """Messages in JSON to and from the host, each with its length in four bytes before it.

    Attributes:
        descriptor: over which they go
    """

    def __init__(self, descriptor: int) -> None:
        """Take over a descriptor."""
        self.descriptor = high_copy(descriptor)
        os.close(descriptor)

    def send(self, message: "Json") -> None:
        """Send one message; a host that is gone ends the program."""
        data = _dumps(message).encode()
        view = memoryview(_pack(">I", len(data)) + data)
        try:
            while view:
                view = view[_write(self.descriptor, view) :]
        except OSError:
            _exit(LOST_STATUS)

    def receive(self) -> "Json":
        """Wait for the next message; a host that is gone ends the program."""
        (size,) = _unpack(">I", self._take(4))
        message: Json = _loads(self._take(size).decode())
        return message

    def _take(self, size: int) -> bytes:
        chunks = []
        while size:
            try:
                chunk = _read(self.descriptor, size)
            except OSError:
                chunk = b""
            if not chunk:
                _exit(LOST_STATUS)
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)
