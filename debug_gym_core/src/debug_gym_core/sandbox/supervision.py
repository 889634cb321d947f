"""A shell that waits for the end of this process, and cleans up after it when it was killed.

Most of what a sandbox leaves ends by itself when its runner does. The rest (a container that was made but not started,
a directory, a control group, what a guest that was killed as well has left) would stay until the next run.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from debug_gym_core.sandbox import ownership

if TYPE_CHECKING:
    from debug_gym_core.sandbox.terminal import Terminal

PASSES = (0.5, 2.0, 8.0)
"""Seconds between the end of the process and one cleaning after the other: an engine may be slow to do what it was
asked for, and a killed guest's processes to end."""

_PATIENCE = 5.0

# Each line names a backend, or says that there is nothing to do. Nobody writes more when the runner is gone.
_SHELL = 'while read -r line; do [ "$line" = done ] && exit; set -- "$@" "$line"; done; exec "$@"'


class Supervisor:
    """Supervises this process while it has sandboxes."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._shell: subprocess.Popen[bytes] | None = None
        self._sandboxes = 0
        self._told: set[str] = set()

    def begin(self, terminal: type[Terminal]) -> None:
        """A sandbox is about to be started; `end` must follow.

        Args:
            terminal: whose `clean` is called when this process is killed
        """
        with self._lock:
            self._sandboxes += 1
            name = f"{terminal.__module__}:{terminal.__qualname__}"
            try:
                if self._shell is None:
                    self._shell = self._start()
                if name not in self._told:
                    self._tell(name)
                    self._told.add(name)
            except OSError:  # it was killed, or there can be no process: then the next run cleans up
                self._forget()

    def end(self) -> None:
        """A sandbox has ended, with everything of it."""
        with self._lock:
            self._sandboxes -= 1
            if self._sandboxes == 0 and self._shell is not None:
                try:
                    self._tell("done")
                except OSError:  # it was killed
                    pass
                finally:
                    self._forget()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["sh", "-c", _SHELL, "debug-gym-supervisor", sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # neither Ctrl-C nor a signal to the runner's process group is meant for it
            cwd="/",
        )

    def _tell(self, line: str) -> None:
        assert self._shell is not None
        os.write(self._shell.stdin.fileno(), f"{line}\n".encode())  # type: ignore[union-attr]

    def _forget(self) -> None:
        shell, self._shell, self._told = self._shell, None, set()
        if shell is not None:
            assert shell.stdin is not None
            shell.stdin.close()
            # It ends by itself, and nobody has to wait for it.
            threading.Thread(target=_see_off, args=(shell,), name="debug-gym-supervisor", daemon=True).start()

    def after_fork(self) -> None:
        """In a child of this process: the sandboxes are the parent's, whose end the shell must see."""
        if self._shell is not None:
            assert self._shell.stdin is not None
            self._shell.stdin.close()
            self._shell.returncode = 0  # no child of this process
        self._reset()


def _see_off(shell: subprocess.Popen[bytes]) -> None:
    """Take the exit status of a shell that was told to end."""
    if not ownership.wait_for_end(shell, _PATIENCE):  # it was stopped
        shell.kill()
        shell.wait()


supervisor = Supervisor()
os.register_at_fork(after_in_child=supervisor.after_fork)


def clean(names: Sequence[str]) -> None:
    """Remove what processes that were killed have left.

    Args:
        names: of terminals' classes, as `module:class`; those that cannot be imported here are left out
    """
    ownership.reap(ownership.PATCHES)
    for name in names:
        module, _, path = name.partition(":")
        try:
            found = importlib.import_module(module)
            for part in path.split("."):
                found = getattr(found, part)
            found.clean()
        except Exception as error:  # a backend's, whatever it is: the others are asked all the same
            print(f"{name}: {error}", file=sys.stderr)


if __name__ == "__main__":
    started = time.monotonic()
    for after in PASSES:
        time.sleep(max(0.0, started + after - time.monotonic()))
        clean(sys.argv[1:])
