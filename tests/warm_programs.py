"""Programs that start warm or cold, and the zygotes that warm ones are forked from."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from debug_gym_core.sandbox import shipping
from debug_gym_core.sandbox.process import Process
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.warm import BOOT as ZYGOTES_BOOT
from debug_gym_core.sandbox.warm import Warm

BOOT = f"""\
{shipping.BOOT}
with open(int(sys.argv[2]), "rb") as file:
    codes = unpack(file.read())
exec(codes["main"], {{"__name__": "program"}})
"""
MARK = ZYGOTES_BOOT.partition("\n")[0]
"""In the command line of a zygote and of its forks."""
SAY = """\
import sys
first_modules = sorted(name for name in sys.modules if not name.startswith("encodings"))
def say(value, channel=int(sys.argv[1])):
    import json, os
    data = json.dumps(value).encode()
    os.write(channel, len(data).to_bytes(4, "big") + data)
"""
SHELF = 'next(one for one in sys.meta_path if type(one).__name__ == "Shelf")'
"""What a warm program has in store."""
WARM = Warm(("json", "pytest", "asyncio", "unittest.mock", "concurrent.futures", "fancy", "noisy", "threads"))
AT_ONCE = Warm(("json", "decimal"), at_once=True)


def blob(source: str) -> bytes:
    """A program of one module."""
    return shipping.pack({"main": source.encode()}).blob()


class Programs:
    """Programs of one interpreter in one sandbox."""

    def __init__(self, session: Session, python: str) -> None:
        self.session = session
        self.python = python
        self.flags: list[str] = []
        self.env: Mapping[str, str | None] = {}
        self.pty = False
        self.warm: Warm | None = WARM

    def start(self, source: str, timeout: float = 60) -> Process:
        return self.session.process(
            [self.python, *self.flags, "-c", BOOT, "{channel}", "{blob:code}"],
            blobs={"code": blob(SAY + source)},
            env=self.env,
            pty=self.pty,
            warm=self.warm,
            timeout=timeout,
        )

    def run(self, source: str) -> tuple[Any, bool]:
        """What a program says first, and whether it was warm."""
        with self.start(source) as process:
            message = process.receive(30)
            process.wait(30)
        return (None if message is None else json.loads(message)), process.warm

    def heat(self) -> None:
        """Wait for a zygote."""
        end = time.monotonic() + 60
        while not self.run("say(0)")[1]:
            assert time.monotonic() < end, "there is no zygote"
            time.sleep(0.05)

    def both(self, source: str) -> tuple[Any, Any]:
        """What a cold and a warm program say."""
        warm, self.warm = self.warm, None
        cold = self.run(source)
        self.warm = warm
        self.heat()
        hot = self.run(source)
        assert (cold[1], hot[1]) == (False, True)
        return cold[0], hot[0]


def zygotes(guest: int) -> list[int]:
    """Processes below the guest that run the zygote's program."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_text()
            process = int(directory.name)
            if MARK in command and guest in list(ancestors(process)):
                found.append(process)
        except OSError:
            continue
    return found


def ancestors(process: int) -> Iterator[int]:
    while process > 1:
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        yield process
