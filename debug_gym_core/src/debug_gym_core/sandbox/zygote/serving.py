"""Forks programs at the keeper's requests."""

import gc
import json
import os
import socket
import sys
from importlib.util import MAGIC_NUMBER

from .beginning import begin, reseed
from .stamps import Stamped, files_of, stamps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from .shelf import Shelf

NAME = "<debug-gym>"
"""The file that code of ours seems to come from."""


class Prepared(object):
    """The code that programs are given, as blob `code`, ready to be run.

    Attributes:
        codes: the program's, by module
        blob: a descriptor of it, compiled for this interpreter; -1: the one that is passed is so already
    """

    def __init__(self, program: int) -> None:
        import marshal

        self.blob = -1
        with os.fdopen(program, "rb") as file:
            data = file.read()
        size = int.from_bytes(data[4:8], "big")
        if data[:4] == MAGIC_NUMBER:
            self.codes = marshal.loads(data[8 : 8 + size])  # type: dict[str, CodeType]
            return
        sources = marshal.loads(data[8 + size :])
        self.codes = {name: compile(sources[name], NAME, "exec", dont_inherit=True) for name in sources}
        compiled = marshal.dumps(self.codes)
        if hasattr(os, "memfd_create"):
            self.blob = os.memfd_create("blob")
        else:
            import tempfile

            with tempfile.TemporaryFile() as temporary:
                self.blob = os.dup(temporary.fileno())
        with os.fdopen(os.dup(self.blob), "wb") as out:
            out.write(MAGIC_NUMBER + len(compiled).to_bytes(4, "big") + compiled + data[8 + size :])


def serve(
    connection: socket.socket,
    shelf: "Shelf",
    stamp: "dict[str, Any]",
    prepared: Prepared,
    codes: "dict[str, CodeType]",
    collects: bool,
    thorough: bool,
) -> "dict[str, Any]":
    """Fork a program at each request, until the keeper goes; returns, in each fork, the request.

    Args:
        connection: to the keeper
        shelf: what was loaded
        stamp: of what was loaded from, and where something might be installed
        prepared: the programs' code
        codes: what programs are told to run by `-c`, compiled
        collects: whether they begin with the collection of garbage switched on
        thorough: whether there is time to free what is garbage by now
    """
    stamp.update(stamps(files_of(list(sys.modules.values()))))  # what the programs' own code loaded, if it ran
    stamped = Stamped(stamp)
    if thorough:
        gc.collect()
    if hasattr(gc, "freeze"):
        gc.freeze()  # nobody looks through all of it, only because there is so much, as soon as that is done again
    if collects:
        gc.enable()
    sys.path_importer_cache.clear()
    connection.send(b'{"ready":%d}' % os.getpid())
    while True:
        data, ancillary = connection.recvmsg(1 << 18, socket.CMSG_SPACE(16 * 4), socket.MSG_CMSG_CLOEXEC)[:2]
        if not data:
            os._exit(0)
        raw = b"".join(content for _, _, content in ancillary)
        descriptors = [int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, len(raw), 4)]
        request = json.loads(data.decode())  # type: dict[str, Any]
        if stamped.has_changed() or len(os.listdir("/proc/self/task")) != 1:
            connection.send(b'{"stale":true}')
            os._exit(0)
        text = request["code"]
        if text not in codes:
            codes[text] = compile(text, "<string>", "exec", dont_inherit=True)
        process = fork_orphan()
        if process == 0:
            os.close(connection.detach())
            if hasattr(gc, "unfreeze"):
                gc.unfreeze()
            begin(request, descriptors, prepared.blob)
            reseed(shelf.modules)
            return request
        for descriptor in descriptors:
            os.close(descriptor)
        connection.send(b'{"pid":%d}' % process)


def fork_orphan() -> int:
    """Fork a process that is not our child but, its parent being gone, the keeper's; returns 0 in it, -1 for none."""
    read_end, write_end = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.close(read_end)
        try:
            process = os.fork()
        except OSError:
            os._exit(1)
        if process:
            os.write(write_end, b"%d" % process)
            os._exit(0)
        os.close(write_end)
        return 0
    os.close(write_end)
    told = os.read(read_end, 32)
    os.close(read_end)
    os.waitpid(middle, 0)
    return int(told or b"-1")
