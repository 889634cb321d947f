"""Sandbox backends: the few methods that one has to implement, and what is asked of it.

A backend starts a sandbox, runs the guest's command in it with the standard streams connected, tells whether it is
alive, and stops it. Files, commands, PTYs and debuggers are written once, above: see `debug_gym_core.session`.
"""

from __future__ import annotations

import abc
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from debug_gym_core.component import Component, Settings
from debug_gym_core.errors import UsageError
from debug_gym_core.interpreter import Interpreter

ROOT = "/testbed"
"""Where the workspace lies in a sandbox; `local` has it elsewhere but shows this name."""


class TerminalSettings(Settings):
    """The `terminal` section of a config; a backend adds fields of its own by subclassing.

    Attributes:
        image: image of a container backend; null: the task's
        network: `none`, or `host` where the backend can
        memory: bound on the memory of all processes together, as in `512m` or `4g`
        cpus: how many processors' worth of time; null: no bound
        pids: how many processes and threads
        workspace_size: bound on the workspace's size; `/tmp` has the same
        allow_unsandboxed: let an agent that an LLM drives run without isolation
        setup: shell commands that prepare the sandbox
    """

    image: str | None = None
    network: Literal["none", "host"] = "none"
    memory: str = "4g"
    cpus: float | None = None
    pids: int = 512
    workspace_size: str = "2g"
    allow_unsandboxed: bool = False
    setup: tuple[str, ...] = ()


@dataclass(frozen=True)
class SandboxSpec:
    """What a sandbox must offer to one task.

    Attributes:
        run: id of the run, for labels
        interpreter: Python of the host that must be there read-only at its own path, prefix and base prefix too; None:
            the image's own
        python: the Python of an image (`env.python`), for backends that run images; None: found there
        source: where the repository lies on the host: a symbolic link from there to the workspace keeps editable
            installs and absolute paths right; None: nowhere
        hidden: directories of the host that must not be seen even if they lie below an exposed prefix
        environment: variables of every command; nothing of the host's environment is passed on
    """

    run: str
    interpreter: Interpreter | None = None
    python: str | None = None
    source: Path | None = None
    hidden: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def parse_size(text: str) -> int:
    """Read a size such as `512m` or `4g`.

    Args:
        text: a whole number, and `b`, `k`, `m` or `g` for bytes and powers of 1024 (none: bytes)

    Returns:
        bytes

    Raises:
        UsageError: it is none
    """
    match = re.fullmatch(r"([1-9][0-9]*)([bkmg]?)", text.strip().lower())
    if match is None:
        raise UsageError(f"{text!r} is no size; write it as in 512m or 4g")
    return int(match[1]) << {"": 0, "b": 0, "k": 10, "m": 20, "g": 30}[match[2]]


class Stream(Protocol):
    """A byte stream to the guest: its standard input and output."""

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes, at least one; empty at the end; blocks."""

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data`; blocks; raises OSError when the other side is gone."""

    def close(self) -> None:
        """End the stream and the guest's command; a blocked `read` returns. May be called twice."""


class Terminal(Component, abc.ABC):
    """A sandbox backend.

    One instance is one sandbox: `start`, then `open` as often as a guest has to be started, then `stop`.

    Attributes:
        isolates: whether the user's machine is protected from what runs inside
        runs_images: whether the interpreter and its packages are an image's and not the host's
        root: the workspace's directory in the sandbox: empty, writable, bounded in size after `start`
        python: command of a Python >= 3.6 that can run the guest; set by `start`
    """

    isolates: ClassVar[bool]
    runs_images: ClassVar[bool] = False
    Settings: ClassVar[type[Settings]] = TerminalSettings
    settings: TerminalSettings
    root: str = ROOT
    python: str = "python3"

    @classmethod
    @abc.abstractmethod
    def unavailable(cls) -> str | None:
        """Why the backend cannot work on this machine and what to install, in one line; None when it can.

        Quick (well under a second) and free of side effects; the caller may ask once a process.
        """

    @abc.abstractmethod
    def start(self, spec: SandboxSpec) -> None:
        """Start the sandbox, with nothing of the task in it yet but the interpreter.

        Raises:
            RequirementError: something is missing: the image, the daemon, a kernel feature
            SandboxError: the sandbox did not start
        """

    @abc.abstractmethod
    def open(self, argv: Sequence[str]) -> Stream:
        """Run the guest's command inside with its standard input and output connected.

        Standard error goes to a bounded log of the backend's (`log`).

        Raises:
            SandboxLost: the sandbox is gone
        """

    @abc.abstractmethod
    def alive(self) -> bool:
        """Whether the sandbox still stands, so that `open` may work again over the same files."""

    @abc.abstractmethod
    def stop(self) -> None:
        """End every process of the sandbox and remove all that it left on the host; may be called twice."""

    @classmethod
    def clean(cls) -> Sequence[str]:
        """Remove what runs that were killed have left on this machine; what a live run owns stays.

        Returns:
            what was removed, a line each
        """
        return ()

    def log(self) -> str:
        """The last lines that the guest or the backend wrote to standard error, for error messages."""
        return ""

    def notes(self) -> Sequence[str]:
        """What this backend could not do on this machine, a line each, for the run's record."""
        return ()


@dataclass(frozen=True)
class RunResult:
    """What a command did.

    Attributes:
        exit_status: the exit status, or minus the signal's number
        output: standard output and error as they came, undecodable bytes escaped; head and tail when it was long
        output_cut: bytes left out of the middle of `output`
        timed_out: whether it was ended for reaching its timeout
        seconds: wall-clock time
    """

    exit_status: int
    output: str
    output_cut: int
    timed_out: bool
    seconds: float
