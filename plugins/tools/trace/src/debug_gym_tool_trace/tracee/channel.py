"""Messages to the host, and functions bound before the program can replace them, as tests do with mocks."""

import _signal as _signal_in_c  # type: ignore[import-not-found]
import fcntl
import json
import os
import re
import resource
import signal
import struct
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, FrozenSet, Optional

    Json = Dict[str, Any]

OURS = str(__package__)
"""File name that our code objects have: it is executed from a descriptor."""

LOADED_AT_START: "FrozenSet[str]" = globals().get("LOADED_AT_START", frozenset())
"""Modules that the interpreter had loaded before anything of ours."""

INTERRUPT_SIGNAL = signal.SIGRTMIN + 6
"""Asks for what was seen so far."""

LOST_STATUS = 98
"""Exit status of a program that finds the channel closed."""

_exit = os._exit
_getpid = os.getpid
_read = os.read
_write = os.write
_dumps = json.dumps
_loads = json.loads
_pack = struct.pack
_unpack = struct.unpack
_get_ident = threading.get_ident
_main_ident = threading.main_thread().ident
_allocate_lock = threading.Lock
_settrace = sys.settrace
_getframe = sys._getframe
_monotonic = time.monotonic
_process_time = time.process_time
_setitimer = signal.setitimer
_signal = _signal_in_c.signal
_getsignal = _signal_in_c.getsignal
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def without_addresses(text: str) -> str:
    """A text that is the same in each run."""
    return _ADDRESS.sub("", text)


class Channel:
    """Messages to and from the host, which only the process sends that was started by it."""

    def __init__(self, descriptor: int) -> None:
        """Take over a descriptor, out of the way of programs that close or reuse low numbers."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        highest = 16384 if limit == resource.RLIM_INFINITY else min(limit, 16384)
        self._descriptor = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(highest - 8, 3))
        os.close(descriptor)
        self._lock = _allocate_lock()
        self._sender: "Optional[int]" = None
        self._later: "Optional[Callable[[], None]]" = None
        self._process = _getpid()

    def send(self, message: "Json") -> None:
        """Send one message; a host that is gone ends the program."""
        if _getpid() != self._process:
            return
        data = _dumps(message).encode()
        with self._lock:
            self._sender = _get_ident()
            view = memoryview(_pack(">I", len(data)) + data)
            try:
                while view:
                    view = view[_write(self._descriptor, view) :]
            except OSError:
                _exit(LOST_STATUS)
            self._sender = None
        later, self._later = self._later, None
        if later is not None:
            later()

    def from_handler(self, say: "Callable[[], None]") -> None:
        """Call what sends a message: now, or when the message that a signal's handler interrupted is sent."""
        if self._sender == _get_ident():
            self._later = say
        else:
            say()

    def receive(self) -> "Json":
        """Wait for the host's message; a host that is gone ends the program."""
        (size,) = _unpack(">I", self._take(4))
        message: "Json" = _loads(self._take(size).decode())
        return message

    def _take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                chunk = _read(self._descriptor, size - len(data))
            except OSError:
                chunk = b""
            if not chunk:
                _exit(LOST_STATUS)
            data += chunk
        return data
