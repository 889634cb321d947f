"""What the host said at the start."""

import os

from .frames import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_PATH = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Surroundings:
    """What the host said at the start; forked processes have it from the supervisor."""

    def __init__(self, header: "dict[str, Any]") -> None:
        self.root = to_bytes(header["root"])
        self.environment = dict(os.environb)
        path = self.environment.get(b"PATH") or DEFAULT_PATH
        if header.get("bin") and path.split(b":")[0] != to_bytes(header["bin"]):
            path = to_bytes(header["bin"]) + b":" + path
        self.environment[b"PATH"] = path
        self.environment.setdefault(b"HOME", b"/tmp")
        if self.environment.get(b"LC_CTYPE") in (b"C.UTF-8", b"C.utf8", b"UTF-8"):
            del self.environment[b"LC_CTYPE"]  # Python's own doing (PEP 538), which LANG makes unnecessary
        for name, value in header["env"].items():
            self.environment[to_bytes(name)] = to_bytes(value)
        self.shell = self._find_shell()
        self.blobs = {}  # type: dict[str, bytes]

    def environment_with(self, changes: "dict[str, str | None] | None") -> "dict[bytes, bytes]":
        """The variables of a command."""
        environment = dict(self.environment)
        for name, value in (changes or {}).items():
            if value is None:
                environment.pop(to_bytes(name), None)
            else:
                environment[to_bytes(name)] = to_bytes(value)
        return environment

    def _find_shell(self) -> bytes:
        for directory in [*self.environment[b"PATH"].split(b":"), b"/bin", b"/usr/bin"]:
            path = os.path.join(directory, b"bash")
            if directory and os.access(path, os.X_OK):
                return path
        return b"/bin/sh"
