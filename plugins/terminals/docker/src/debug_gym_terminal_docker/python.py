"""The Python of an image: looked for once an image."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from debug_gym_core.errors import RequirementError
from debug_gym_terminal_docker.container import USER

if TYPE_CHECKING:
    from docker import APIClient

_MARK = "debug-gym-python:"

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
print("MARK" + json.dumps([sys.argv[1], os.uname()[4], ctypes is not None]))
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
    """

    executable: str
    machine: str
    filters: bool


_found: dict[tuple[str, str | None], Python] = {}
_finding = threading.Lock()


def find(client: APIClient, container: str, image: str, wanted: str | None) -> Python:
    """Find the Python in a running container.

    Args:
        client: the engine
        container: its id
        image: id of its image
        wanted: `env.python`: a command or a path in the image; None: the first one that is new enough

    Raises:
        RequirementError: there is none, or the wanted one is not there or too old
    """
    key = (image, wanted)
    with _finding:
        if key in _found:
            return _found[key]
    words = ["/bin/sh", "-c", _SEARCH, "debug-gym", *([wanted] if wanted else [])]
    execution = client.exec_create(container, words, user=USER, workdir="/", stdin=False)
    output = client.exec_start(execution["Id"])
    if _MARK.encode() not in output:
        if wanted is not None:
            raise RequirementError(f"the image has no Python >= 3.6 that is called {wanted} (env.python)")
        raise RequirementError("the image has no Python >= 3.6; take another image, or name one with env.python")
    executable, machine, filters = json.loads(output.decode().rpartition(_MARK)[2])
    with _finding:
        return _found.setdefault(key, Python(executable, machine, filters))
