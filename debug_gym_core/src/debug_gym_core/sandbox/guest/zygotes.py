"""A keeper's interpreter with modules loaded, from which programs are forked (see the package `zygote`)."""

import contextlib
import errno
import json
import os
import select
import socket

from .frames import to_bytes, to_text
from .spawn import prefer_as_victim, settle, spawn
from .system import memory_file
from .terminals import open_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .surroundings import Surroundings

FORK_PATIENCE = 3.0  # seconds that a zygote has to fork a program
START_PATIENCE = 8.0  # seconds that a program waits for one which is started for it; the host waits for twice as many


class Zygote:
    """A keeper's end of it.

    Attributes:
        process: of the one that is ready, 0: none is yet
    """

    def __init__(self, request: "dict[str, Any]", surroundings: "Surroundings") -> None:
        """Make ready to start one for programs like the one that was asked for."""
        self.request = request
        self.surroundings = surroundings
        self.code = request["blobs"]["code"]
        self.process = 0
        self.connection, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.streams = open_terminal(24, 80) if request.get("pty") else os.pipe()

    def start(self, subreaper: bool) -> None:
        """Start it.

        Args:
            subreaper: whether what it forks becomes ours

        Raises:
            OSError: it cannot be started
            ValueError: likewise
        """
        request, warm = self.request, self.request["warm"]
        argv = request["argv"][: request["argv"].index("-c")]
        passed = [self.theirs.detach()]
        passed += [memory_file(self.surroundings.blobs[digest]) for digest in (warm["code"], self.code)]
        piped = not request.get("pty") or request.get("stdin")
        given = os.open(os.devnull, os.O_RDONLY) if piped else self.streams[1], self.streams[1]
        try:
            if not (subreaper and os.path.exists("/proc/self/stat")):
                raise OSError(errno.ENOSYS, "what is forked cannot be kept track of")
            command = [*argv, "-c", warm["boot"], *map(str, passed)]
            environment = self.surroundings.environment_with(request.get("env"))
            arguments = [to_bytes(part) for part in command]
            # A terminal is not its controlling one: that would be gone with the first of the processes that it becomes.
            process = spawn(arguments, environment, self.surroundings.root, given, passed, False)
            prefer_as_victim(process, 900)
            config = {"root": to_text(self.surroundings.root), "imports": warm["imports"], "limit": warm["limit"]}
            config["workspace"] = not request.get("at_once")
            config["code"] = request["argv"][request["argv"].index("-c") + 1]
            self.connection.send(json.dumps(config).encode("ascii"))
        finally:
            for descriptor in {*passed, *given} - {*self.streams}:
                os.close(descriptor)

    def speaks(self, patience: float) -> bool:
        """Whether it says something, or is gone, in so many seconds."""
        return bool(select.select([self.connection], [], [], patience)[0])

    def receive(self, patience: float) -> "dict[str, Any]":
        """What it says; nothing when it does not in `patience` seconds, or is gone."""
        data = b""
        if self.speaks(patience):
            with contextlib.suppress(OSError):
                data = self.connection.recv(1 << 16)
        told = json.loads(data.decode("utf-8")) if data else {}  # type: dict[str, Any]
        return told

    def printed(self) -> bool:
        """Whether it printed anything before it was ready: a program that is forked would not."""
        return bool(select.select([self.streams[0]], [], [], 0)[0])

    def start_program(
        self, request: "dict[str, Any]", cwd: bytes, streams: "tuple[int, int]", passed: "dict[str, int]", pty: bool
    ) -> "tuple[int, str]":
        """Have it fork a program; returns its process id, or 0 and what has become of the zygote.

        Args:
            request: what the program is
            cwd: its directory
            streams: its input and output
            passed: descriptors that it is given, by what stands for their numbers in its arguments
            pty: whether the streams are a PTY
        """
        cut = request["argv"].index("-c")
        fields = {
            "interpreter": request["argv"][:cut],
            "code": request["argv"][cut + 1],
            "arguments": request["argv"][cut + 2 :],
            "places": list(passed),
            "same": (request.get("blobs") or {}).get("code") == self.code,
            "terminal": pty,
            "cwd": to_text(cwd),
        }
        held, go = os.pipe()
        try:
            process, state = self._fork(fields, [*streams, held, *passed.values()])
            if process:
                settle(process)
                os.write(go, b"1")
            return process, state
        finally:
            os.close(held)
            os.close(go)

    def _fork(self, fields: "dict[str, Any]", descriptors: "list[int]") -> "tuple[int, str]":
        import array

        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        try:
            self.connection.sendmsg([json.dumps(fields).encode("ascii")], [rights])
        except OSError:
            return 0, "lost"
        told = self.receive(FORK_PATIENCE)
        if told.get("pid", 0) > 0:
            return told["pid"], ""
        return 0, "stale" if told.get("stale") else "lost"

    def close(self) -> None:
        """Give it up."""
        self.connection.close()
        for descriptor in self.streams:
            os.close(descriptor)
