# ruff: noqa: E402 (see `imports`)
"""A zygote: an interpreter with modules loaded, from which programs are forked instead of started.

Started by a keeper (see `guest`) as `python FLAGS -c BOOT CONTROL CODE PROGRAM` with the environment, flags and
kind of standard streams of the programs that it is for. It imports what they will need and what is installed, never
code of the workspace; then it forks a program at each request. A program runs in a grandchild whose parent has ended,
so that it becomes the keeper's own child, as one that was started would be.

A program must not notice. What was loaded is therefore kept apart: the program begins with the `sys.modules` of a fresh
interpreter, and a module is handed out, with all that importing it had imported, when the program imports it and would
find that very file. Each import is made in a fork that replaces its parent only if nothing else came of it: a thread,
output, a warning, a changed environment or signal handler, an open descriptor.

Where the programs' code says how far all of them do the same, that much of it runs here, once.

Standard library only, Python 3.6 to 3.13.
"""

from .noting import Imports

imports = Imports()
"""Comes before all other imports, wherever sorting would put them: what is imported for what is known from here on."""

import gc
import json
import os
import socket
import sys
import time

from .nursery import Nursery
from .serving import Prepared, serve
from .shelf import Shelf
from .stamps import files_of, places_of, stamps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    Space = dict[str, Any]

PREPARED = "debug_gym_code"
"""A program that has this name in its text finds under it, in `__main__`, the code objects of its blob `code`."""
READY = "debug_gym_ready"
"""One that has this name finds a function: it calls it when it has done what does not depend on who starts it."""


def main(
    control: int, program: int, space: "Space", first: "Space", modules: "frozenset[str]", implicit: bool
) -> "CodeType":
    """Load modules, then fork programs; returns, in each fork or before them all, the code that they are to run.

    Args:
        control: descriptor of the keeper's socket
        program: descriptor of the code that programs will be given
        space: the namespace of `__main__`
        first: what was in it at the beginning
        modules: names of the modules that the interpreter itself had loaded
        implicit: whether the current directory was first in `sys.path`
    """
    began = time.time()
    collects = gc.isenabled()
    gc.disable()  # of what importing makes, hardly anything is garbage
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, control)
    connection.set_inheritable(False)
    prepared = Prepared(program)
    path = [""] * implicit + sys.path
    config = json.loads(connection.recv(1 << 18).decode())
    nursery = Nursery(config, imports)
    directories = stamps(places_of(nursery.places))
    if not nursery.prepare():
        connection.send(b'{"unfit":true}')
        os._exit(0)
    shelf = Shelf(modules, imports.edges)
    stamp = stamps(files_of(list(sys.modules.values())))
    if any(one is not None and one[0] > began * 1e9 for one in stamp.values()):
        os._exit(0)  # changed while it was loaded
    stamp.update(directories)
    shelf.clear_the_table()
    shelf.remember(config["imports"], stamp)
    text = config["code"]  # type: str
    codes = {text: compile(text, "<string>", "exec", dont_inherit=True)}
    # For each page on which a fork frees something the kernel makes a copy: it is freed before, or not at all. Our own
    # modules, which nothing else refers to, are among it.
    shelf.kept = (nursery, directories, stamp, path, globals())
    more = shelf, stamp, prepared, codes, collects, config["workspace"]  # type: tuple[Any, ...]
    same_imports = all(entry in stamp for entry in sys.path)  # elsewhere a file might turn up that comes first
    space.clear()
    space.update(first)
    sys.path[:] = path
    sys.meta_path.insert(0, shelf)
    if READY in text and same_imports:
        if PREPARED in text:
            space[PREPARED] = prepared.codes
        space[READY] = lambda: serve(connection, *more)
        return codes[text]
    request = serve(connection, *more)
    if request["same"] and PREPARED in request["code"]:
        space[PREPARED] = prepared.codes
    return codes[request["code"]]
