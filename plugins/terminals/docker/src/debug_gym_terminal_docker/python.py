"""The Python of an image: looked for once an image."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from debug_gym_core.errors import RequirementError, SandboxError, UsageError
from debug_gym_terminal_docker.settings import OWNER
from debug_gym_terminal_docker.stream import output

if TYPE_CHECKING:
    from docker import APIClient

SEARCH_TIMEOUT = 60.0
"""Seconds that looking for it may take: it starts the image's programs."""

_MARK = "debug-gym-python:"
_NO_USER = ("unable to find user", "unable to find group", "no matching entries in")

# Prints the first Python that is new enough, and whether it can load a filter of system calls.
_SEARCH = """
[ "$#" -gt 0 ] || set -- python3 python /usr/local/bin/python3 /usr/bin/python3 /opt/*/bin/python /opt/*/*/bin/python
for name in "$@"; do
    found=$(command -v "$name") || continue
    "$found" -E -s -c '
import os, sys
if sys.version_info[:2] < (3, 6):
    sys.exit(1)
import json
try:
    import ctypes
except ImportError:
    ctypes = None
print("MARK" + json.dumps([sys.argv[1], os.uname()[4], ctypes is not None, os.getuid()]))
' "$found" 2>/dev/null && exit 0
done
exit 2
""".replace("MARK", _MARK)


@dataclass(frozen=True)
class Python:
    """A Python in an image.

    Attributes:
        executable: its path
        machine: the processor that it is for
        filters: whether it can load a filter of system calls (it has ctypes)
        uid: the number of the user that was asked for
    """

    executable: str
    machine: str
    filters: bool
    uid: int


_found: dict[tuple[str, str | None, str], Python] = {}
_finding = threading.Lock()


def find(client: APIClient, container: str, image: str, wanted: str | None, user: str) -> Python:
    """Find the Python in a running container.

    Args:
        client: the engine
        container: its id
        image: id of its image
        wanted: `env.python`: a command or a path in the image; None: the first one that is new enough
        user: who looks for it

    Raises:
        RequirementError: there is none, or the wanted one is not there or too old
        UsageError: the image has no such user, or it is one that commands must not be
        SandboxError: looking for it took longer than `SEARCH_TIMEOUT`, or the engine failed
    """
    key = (image, wanted, user)
    with _finding:
        if key in _found:
            return _found[key]
    words = ["/bin/sh", "-c", _SEARCH, "debug-gym", *([wanted] if wanted else [])]
    try:
        said = output(client, container, words, user, SEARCH_TIMEOUT).decode("utf-8", "replace")
    except SandboxError as error:  # Podman refuses the command; Docker's answer is what it seems to have written
        if not any(words in str(error) for words in _NO_USER):
            raise
        said = str(error)
    if _MARK not in said:
        if any(words in said for words in _NO_USER):
            raise UsageError(f"terminal.user: the image has no user {user}; write one of its users, or UID:GID")
        if wanted is not None:
            raise RequirementError(f"the image has no Python >= 3.6 that is called {wanted} (env.python)")
        raise RequirementError("the image has no Python >= 3.6; take another image, or name one with env.python")
    executable, machine, filters, uid = json.loads(said.rpartition(_MARK)[2])
    if uid == OWNER:
        raise UsageError(
            f"terminal.user: {user} is the number {uid}, which is kept for other things; take another user"
        )
    with _finding:
        return _found.setdefault(key, Python(executable, machine, filters, uid))
