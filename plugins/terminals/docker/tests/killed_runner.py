"""A process that is killed while its container stands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from debug_gym_core.testing import wait_until


def leave_no_container(settings: Mapping[str, Any], run: str, ours: Callable[[], Sequence[Any]]) -> None:
    """Have another process start a sandbox, kill it, and wait until there is no container any more.

    Args:
        settings: of the terminal
        run: what the sandbox belongs to
        ours: the containers of the run
    """
    script = f"""
import sys
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_terminal_docker import DockerTerminal
terminal = DockerTerminal(**{settings!r})
terminal.start(SandboxSpec(run={run!r}))
stream = terminal.open(["/bin/sh", "-c", "trap '' TERM HUP; echo up; exec sleep 1000"])
print(stream.read(3), flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"b'up\\n'\n"
        assert len(ours()) == 1
        runner.kill()
    wait_until(lambda: not ours(), seconds=60)
