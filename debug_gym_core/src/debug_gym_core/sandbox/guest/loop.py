"""Waiting for many things at once."""

import os
import selectors
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE
LONGEST = 1e6
"""Seconds of one wait, eleven days: what the kernel takes."""


class Loop:
    """A selector with callbacks, which also wakes when a child process changes."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_read, False)
        os.set_blocking(self.wake_write, False)
        self.child_changed = True
        signal.signal(signal.SIGCHLD, ignore_signal)
        signal.set_wakeup_fd(self.wake_write)
        self.watch(self.wake_read, READ, self._woken)

    def _woken(self, _events: int) -> None:
        try:
            while os.read(self.wake_read, 4096):
                pass
        except BlockingIOError:
            pass
        self.child_changed = True

    def watch(self, descriptor: int, events: int, callback: "Callable[[int], None] | None" = None) -> None:
        """Call `callback` on events of a descriptor; no events: no more; no callback: the one it has."""
        known = self.selector.get_map().get(descriptor)
        if known is None:
            if events:
                self.selector.register(descriptor, events, callback)
        elif not events:
            self.selector.unregister(descriptor)
        elif known.events != events or (callback is not None and known.data != callback):
            self.selector.modify(descriptor, events, callback or known.data)

    def turn(self, timeout: "float | None") -> bool:
        """Wait once and call back; False: nothing happened in so many seconds."""
        happened = self.selector.select(timeout if timeout is None else min(timeout, LONGEST))
        for key, events in happened:
            if self.selector.get_map().get(key.fd) is key:
                key.data(events)
        return bool(happened)

    def close_after_fork(self) -> None:
        """Give up the descriptors in a forked child; the parent's are not touched."""
        signal.set_wakeup_fd(-1)
        self.selector.close()
        os.close(self.wake_read)
        os.close(self.wake_write)


def ignore_signal(_number: int, _frame: object) -> None:
    """A handler that does nothing: unlike SIG_IGN it leaves children to be waited for and is reset by exec."""
