"""Warm starts: what a sandbox is told so that it can fork programs from an interpreter that has modules loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from debug_gym_core.sandbox import shipping

BOOT = f"""\
# debug-gym: zygote
first=dict(globals())
import sys
modules=frozenset(sys.modules)
implicit=sys.path[:1]==['']
if implicit:del sys.path[0]
import os
{shipping.BOOT}
with os.fdopen(int(sys.argv[2]),'rb') as file:codes=unpack(file.read())
exec(enter(codes).main(int(sys.argv[1]),int(sys.argv[3]),globals(),first,modules,implicit),globals())
"""
"""Started by `python -c` in place of the program; forks go on with the program's own code."""


PREPARED = "debug_gym_code"
"""Where CODE that says so finds, among its globals, what `unpack` makes of its blob `code`: it need not do so then."""


READY = "debug_gym_ready"
"""Where CODE that says so finds, among its globals, a function that it calls when it has done what is the same at each
start: programs are forked there. Before, it must not ask for its arguments, descriptors, directory or process."""


@dataclass(frozen=True)
class Warm:
    """How a program may be started warm: as a fork of an interpreter with modules loaded.

    The program is `python FLAGS -c CODE ARGUMENTS` with a channel and, as blob `code`, a parcel (see `shipping`). Any
    start is cold for which warm and cold might differ. CODE may save itself some work, see `PREPARED` and `READY`.

    Attributes:
        imports: names of modules that the program imports, besides those that the workspace's files import
        after: when to load them all once a program was started: at its first message, or at its end
        at_once: the first start is a fork too, of an interpreter that has loaded `imports` and nothing that the
            workspace's files import; for a program that imports them all at its beginning, and is started again
    """

    imports: tuple[str, ...]
    after: Literal["message", "exit"] = "exit"
    at_once: bool = False


ZYGOTE = "debug_gym_core.sandbox.zygote"

WARM_LIMIT = 512 << 20
"""Bytes of memory that an interpreter kept for warm starts may hold, and a quarter of the sandbox's at most."""


def zygote_blob() -> bytes:
    """The zygote's code."""
    return shipping.parcel(ZYGOTE).blob()


def request_of(warm: Warm, code: str, memory: int) -> dict[str, Any]:
    """What the guest's `process` request says of a warm start.

    Args:
        warm: how the program may be started
        code: digest of the zygote's blob, which the guest has
        memory: bytes that the sandbox has
    """
    limit = min(memory // 4, WARM_LIMIT)
    fields = {"boot": BOOT, "code": code, "imports": warm.imports, "after": warm.after, "limit": limit}
    return {**fields, "at_once": warm.at_once}
