"""The tracee on a socketpair, without guest, sandbox or host side."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from debug_gym_core.debugging.boot import BOOT, blob
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_tool_trace.render import render
from debug_gym_tool_trace.running import TRACEE
from debug_gym_tool_trace.seen import Call

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}


@dataclass
class Followed:
    """What was told of a call, and how the program ended."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    status: int = 0
    printed: str = ""

    @property
    def refused(self) -> str:
        return str(self.messages[0].get("why", ""))

    @property
    def last(self) -> dict[str, Any]:
        """The last that was told, the end of the program and what came after it apart."""
        return next(one for one in reversed(self.messages) if one["t"] == "story")

    @property
    def story(self) -> Call:
        assert self.last["story"] is not None, self.printed
        return Call.model_validate(self.last["story"])

    @property
    def text(self) -> str:
        return render(self.story).text

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


Follow = Callable[..., Followed]


def follow(python: str, root: Path, target: str, entrypoint: str = "python app.py", **settings: Any) -> Followed:
    """Run a program and follow a call to the program's end.

    Args:
        python: the interpreter
        root: where its files are
        target: file:function
        entrypoint: what to run
        settings: `files` to write before, `call`, `depth`, `backend`, `ignored`; `interrupt_when`: text that the
            program prints before it is asked for what was seen, and killed when it has told; `may_fail`: whether it
            may say why the call was not followed to its end
    """
    may_fail = settings.pop("may_fail", False)
    for name, text in settings.pop("files", {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    file, _, function = target.partition(":")
    parsed = Entrypoint.parse(entrypoint)
    interrupt_when, asks = settings.pop("interrupt_when", None), True
    ours, theirs = socket.socketpair()
    config = {
        "kind": parsed.kind.value,
        "target": parsed.target,
        "args": list(parsed.args),
        "root": str(root),
        "ignored": [],
        "file": file,
        "function": function,
        "call": 1,
        "depth": 0,
        **settings,
    }
    found = Followed()
    with tempfile.TemporaryFile() as code, tempfile.TemporaryFile() as output:
        code.write(blob(TRACEE))
        code.seek(0)
        process = subprocess.Popen(
            [python, *parsed.flags, "-c", BOOT, str(theirs.fileno()), str(code.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=root,
            env={**ENVIRONMENT, **parsed.env},
            pass_fds=[theirs.fileno(), code.fileno()],
        )
        theirs.close()
        ours.settimeout(30)
        try:
            data = json.dumps(config).encode()
            ours.sendall(struct.pack(">I", len(data)) + data)
            while True:
                printed = interrupt_when is not None and interrupt_when.encode() in os.pread(output.fileno(), 100000, 0)
                if printed and asks and found.messages:
                    asks = False
                    process.send_signal(found.messages[0]["signals"]["interrupt"])
                if not select.select([ours], [], [], 30 if interrupt_when is None else 0.5 if printed else 0.01)[0]:
                    asks = True  # again: just before a system call, Python does not hear it
                    continue
                message = _message(ours)
                if message is None:
                    break
                found.messages.append(message)
                if message.get("now") is not None:
                    process.send_signal(signal.SIGKILL)
                    break
        finally:
            ours.close()
            found.status = process.wait(30)
            output.seek(0)
            found.printed = output.read().decode()
    failed = [one["problem"] for one in found.messages if one.get("problem")]
    assert not failed or may_fail, failed[0]
    return found


def _message(channel: socket.socket) -> dict[str, Any] | None:
    try:
        head = channel.recv(4, socket.MSG_WAITALL)
        if len(head) < 4:
            return None
        (size,) = struct.unpack(">I", head)
        found: dict[str, Any] = json.loads(channel.recv(size, socket.MSG_WAITALL))
    except ConnectionResetError:
        return None
    return found
