"""Sandbox backends: the few methods that one has to implement, and what is asked of it.

A backend starts a sandbox, runs the guest's command in it with the standard streams connected, tells whether it is
alive, and stops it. Files, commands, PTYs and debuggers are written once, above: see `debug_gym_core.sandbox.session`.
"""

from __future__ import annotations

import abc
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from debug_gym_core.components.component import Component, Settings
from debug_gym_core.components.values import Flag, Positive, Processors, Size
from debug_gym_core.errors import RequirementError, UsageError
from debug_gym_core.sandbox.interpreter import Interpreter

ROOT = "/testbed"
"""Where the workspace lies in a sandbox; `local` has it elsewhere but shows this name."""


LARGEST = 2 << 30
"""Bytes that a workspace may have where nobody says otherwise."""


class SandboxSettings(Settings):
    """What the `terminal` section of a config says of any sandbox.

    Attributes:
        image: container image; null: the task's
        network: none, or host
        memory: bound on the memory of all processes together
        cpus: processors' worth of time; null: no bound
        pids: bound on processes and threads
        allow_unsandboxed: let an agent that a language model drives run without isolation
        setup: shell commands that prepare the sandbox, as in `pip install -e .`; run once, their result is kept
    """

    image: str | None = None
    network: Literal["none", "host"] = "none"
    memory: Size = "4g"
    cpus: Processors | None = None
    pids: Positive = 512
    allow_unsandboxed: Flag = False
    setup: tuple[str, ...] = ()


class TerminalSettings(SandboxSettings):
    """The settings of a backend, which adds fields of its own by subclassing.

    Attributes:
        workspace_size: bound on the workspace's size; null: 2g, at most half of `memory`; `/tmp` has the same; a file
            for each 4 KiB, 65,536 at least
    """

    workspace_size: Size | None = None

    @property
    def workspace_bytes(self) -> int:
        """How large the workspace, and `/tmp`, may be.

        Files that are in memory take of its bound, and where that is reached first, processes are killed, which frees
        no file: who fills one of the two has to be told that it is full.
        """
        return self.file_bytes if self.workspace_size else min(LARGEST, parse_size(self.memory) // 2)

    @property
    def file_bytes(self) -> int:
        """How large one file may be."""
        return parse_size(self.workspace_size) if self.workspace_size else LARGEST

    def weakened(self) -> Iterator[str]:
        """What these settings take away from the default's protection, a line each, for the run's record.

        A backend with settings of its own that do so adds its lines to these.
        """
        if self.network != "none":
            yield f"terminal.network is {self.network}: the sandbox can reach the network"


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
        protects: whether `Terminal.protect` will be called
        builds: whether setup commands will run in this sandbox, for `Terminal.keep_setup` to be called: a backend that
            runs images must let them change the image's files
        writable: a directory of the host, that of `interpreter`, that setup commands may write to at its own path
        image: what `keep_setup` returned, in place of the settings' image; None: that one
        masked: absolute directories of the image that must be empty, for backends that run images
    """

    run: str
    interpreter: Interpreter | None = None
    python: str | None = None
    source: Path | None = None
    hidden: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    protects: bool = False
    builds: bool = False
    writable: Path | None = None
    image: str | None = None
    masked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Protected:
    """What no program in a sandbox may change: paths relative to the workspace, in order, directories first.

    Attributes:
        directories: read-only with all that is in them; none lies in another
        files: read-only files that lie in none of `directories`
        links: likewise symbolic links
    """

    directories: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.directories or self.files or self.links)

    @staticmethod
    def above(path: str) -> list[str]:
        """The directories above a path, outermost first, without the workspace itself.

        What they hold may change, but if one of them were renamed, another could take its place and its name.
        """
        return above_of(path)


def above_of(path: str) -> list[str]:
    """The directories above a path in the workspace, outermost first, without the workspace itself."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


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


def files_in(size: int) -> int:
    """How many files and directories there may be in a workspace, or a /tmp, of a size.

    Args:
        size: bytes

    Returns:
        one for each 4 KiB, 65,536 at least
    """
    return max(size >> 12, 1 << 16)


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
        keeps_setup: whether the result of setup commands can be kept for other sandboxes; if not, the commands run in
            each sandbox. A backend that shows the host's interpreter (`SandboxSpec.interpreter`) need only honour
            `SandboxSpec.writable`; one that runs images implements `identify_image`, `keep_setup`, `has_image` and
            `remove_image`, and honours `SandboxSpec.builds` and `.image`
        root: the workspace's directory in the sandbox: empty, writable, bounded in size after `start`
        python: command of a Python >= 3.6 that can run the guest; set by `start`
        interpreter: the interpreter that `start` made to stand in for the one of the `SandboxSpec`; None: it made none
        image_id: id of the very image that `start` used, whose content never changes; None: not known. What was found
            in it is not looked for again
    """

    isolates: ClassVar[bool]
    runs_images: ClassVar[bool] = False
    keeps_setup: ClassVar[bool] = False
    Settings: ClassVar[type[Settings]] = TerminalSettings
    settings: TerminalSettings
    root: str = ROOT
    python: str = "python3"
    interpreter: Interpreter | None = None
    image_id: str | None = None

    @classmethod
    @abc.abstractmethod
    def unavailable(cls) -> str | None:
        """Why the backend cannot work on this machine and what to install, in one line; None when it can.

        Quick (well under a second) and free of side effects; the caller may ask until it can, and then no more.
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

    def protect(self, paths: Protected) -> None:
        """Make the system itself refuse changes of read-only files.

        Called once, after the repository was put and set up and before anything of an agent's runs; the guest is there
        and idle. A change that is not refused is found and undone after the step, so nothing need be done here, and
        what cannot be is no error: `notes` says so.

        Args:
            paths: what is read-only, as it was put; setting up may have changed or removed it

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
    def about(cls) -> Sequence[str]:
        """Facts for `debug-gym doctor`, a few words each: the version of what the backend uses, how it isolates.

        Asked only when `unavailable` has said None; as quick and free of side effects.
        """
        return ()

    @classmethod
    def limits(cls) -> Sequence[str]:
        """What the backend cannot do on this machine, a line each, for `debug-gym doctor`; as quick as `about`."""
        return ()

    @classmethod
    def clean(cls) -> Sequence[str]:
        """Remove what runs that were killed have left on this machine; what a live run owns stays.

        Returns:
            what was removed, a line each
        """
        return ()

    def identify_image(self) -> str:
        """What the content of the settings' image is known by; got from elsewhere if it is not here. Before `start`.

        Raises:
            RequirementError: there is no such image
        """
        return ""

    def image_archive(self, directory: str) -> Iterator[bytes]:
        """A tar of a directory of the settings' image, in blocks; its entries begin with the directory's last name.

        A backend that `runs_images` implements it for tasks whose repository lies in their image. Before `start`.

        Args:
            directory: absolute

        Raises:
            RequirementError: there is no such image, or no such directory in it
            SandboxError: it cannot be read
        """
        raise RequirementError(f"terminal {self.name} takes no repository out of an image; docker does")

    def keep_setup(self, name: str) -> tuple[str, int]:
        """Keep what setup commands changed outside of the workspace and of `SandboxSpec.writable`.

        Called once, after they have run and before `stop`; nothing of theirs runs any more, the guest is idle.

        Args:
            name: letters and digits, to call the result by

        Returns:
            the image that later sandboxes are given as `SandboxSpec.image`, empty for none; how many bytes it takes

        Raises:
            SandboxError: it cannot be kept
        """
        return "", 0

    @classmethod
    def has_image(cls, image: str) -> bool:
        """Whether an image is here; quick.

        Args:
            image: its name, or what `keep_setup` returned

        Raises:
            SandboxError: nobody can tell
        """
        return True

    @classmethod
    def remove_image(cls, image: str) -> None:
        """Remove an image that `keep_setup` made; nothing happens when it is gone.

        Args:
            image: what `keep_setup` returned

        Raises:
            DebugGymError: it cannot be removed
        """

    def out_of_memory(self) -> int:
        """How many processes were killed so far for the bound on memory; 0 too where the backend cannot tell."""
        return 0

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
        output: standard output and error as they came, undecodable bytes escaped; head and tail when it was long. Where
            the command was killed for want of memory, the last line says so
        output_cut: bytes left out of the middle of `output`
        timed_out: whether it was ended for reaching its timeout
        seconds: wall-clock time
    """

    exit_status: int
    output: str
    output_cut: int
    timed_out: bool
    seconds: float
