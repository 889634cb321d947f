"""The worker: file operations, one after the other."""

import errno

from .files import Files
from .frames import Exchange, os_error
from .tree import Tree
from .walks import Walks

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from .surroundings import Surroundings


class Worker:
    """Serves the supervisor's requests about files, which it gets one at a time."""

    def __init__(self, connection: "socket.socket", surroundings: "Surroundings") -> None:
        self.host = Exchange(connection)
        self.tree = Tree(surroundings.root)
        files = Files(self.tree, self.host)
        walks = Walks(self.tree, self.host)
        self.operations = {
            "read": files.read,
            "lines": files.lines,
            "write": files.write,
            "remove": files.remove,
            "stat": files.stat,
            "realpath": files.realpath,
            "put": files.put,
            "grep": files.grep,
            "walk": walks.walk,
            "changed": walks.changed,
        }

    def run(self) -> None:
        """Serve until the supervisor goes."""
        while True:
            frame = self.host.next()
            if frame is None:
                return
            header, body = frame
            operation = self.operations.get(header["op"])
            if operation is None:  # the rest of a stream that failed
                continue
            try:
                self.tree.mend()
                reply = operation(header, body)
            except OSError as error:
                reply = os_error(error, getattr(error, "entry", None) or header.get("path")), b""
            except ValueError as error:  # a NUL in a path
                reply = os_error(OSError(errno.EINVAL, str(error)), header.get("path")), b""
            except Exception as error:  # RecursionError, MemoryError: the request's, not everybody's
                if header["op"] == "grep":  # has a worker of its own, whose end the host understands
                    raise
                reply = {"t": "error", "kind": "internal", "text": repr(error)[:500]}, b""
            fields, data = reply
            self.host.send(dict(fields, id=header["id"], t=fields.get("t", "done")), data)
