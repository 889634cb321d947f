"""Asks objects of the tested code what they look like in a copy of the process: the tests do not see what that does."""

import _signal as signal  # type: ignore[import-not-found] # The module without enums: quicker to import.
import json
import os
import select
import sys
import warnings
from contextlib import suppress
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PATIENCE = 2.0
"""Seconds that a copy may take."""
LARGEST = 4 << 20
"""Bytes that it may say."""

# Bound once: tests replace them, and may still do so when their failure is described.
_fork, _pipe, _read, _write, _close, _exit = os.fork, os.pipe, os.read, os.write, os.close, os._exit
_kill, _waitpid, _open, _dup2, _listdir = os.kill, os.waitpid, os.open, os.dup2, os.listdir
_SIGNALS = signal.valid_signals() if hasattr(signal, "valid_signals") else range(1, 32)
_select, _dumps, _loads, _threads = select.select, json.dumps, json.loads, sys._current_frames


class NoCopy(Exception):
    """There can be no copy of this process now."""


class Lost(Exception):
    """A copy made nothing: why."""


def apart(make: "Callable[[], Any]") -> "Any":
    """What a function makes of JSON types, in a copy of this process that ends then.

    Raises:
        NoCopy: where another thread of Python's runs: what that thread holds would be held for ever; or where the
            machine has no room for it
        Lost: it took too long, ended before, or the function raised
    """
    if len(_threads()) > 1:
        raise NoCopy("other threads run")
    # What a handler raises would let the copy go on with the tests; and that it ends is no news to the program.
    held = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    copy = 0
    try:
        ours, theirs = _pipe()
        try:
            copy = _forked()
            if copy == 0:
                _tell(theirs, make)
            _close(theirs)
            theirs = -1
            return _heard(ours)
        finally:
            for descriptor in (ours, theirs):
                if descriptor >= 0:
                    _close(descriptor)
            if copy:
                with suppress(OSError):
                    _kill(copy, signal.SIGKILL)
                    _waitpid(copy, 0)
    except OSError as problem:  # no more processes, no memory
        raise NoCopy(str(problem)) from problem
    finally:
        if copy and signal.SIGCHLD not in held:
            signal.sigtimedwait([signal.SIGCHLD], 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _forked() -> int:
    """Fork; of threads that are not Python's, as numpy's, Python would warn."""
    if len(_listdir("/proc/self/task")) == 1:
        return _fork()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _fork()


def _tell(pipe: int, make: "Callable[[], Any]") -> None:
    """Write what a function makes, and end: nothing of the program's is finalized, nor printed twice."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])  # which ends what takes too long
        nowhere = _open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            _dup2(nowhere, descriptor)
        import gc

        gc.disable()
        try:
            told = {"made": make()}
        except BaseException as problem:  # Whatever the program's objects do, or a mistake of ours: it is told.
            told = {"why": type(problem).__name__}
        data = _dumps(told).encode("ascii")
        while data:
            data = data[_write(pipe, data) :]
    finally:
        _exit(0)


def _heard(pipe: int) -> "Any":
    """What a copy made, which it says before it closes the pipe."""
    end, data = monotonic() + PATIENCE, b""
    while True:
        left = end - monotonic()
        if left <= 0 or not _select([pipe], [], [], left)[0]:
            raise Lost("took more than {:g} s".format(PATIENCE))
        more = _read(pipe, 1 << 16)
        data += more
        if len(data) > LARGEST:
            raise Lost("made more than {} bytes".format(LARGEST))
        if not more:
            break
    try:
        told = _loads(data.decode("ascii"))
    except ValueError:
        raise Lost("ended the process") from None
    if "why" in told:
        raise Lost(told["why"])
    return told["made"]
