"""Settings of the docker terminal: how each is written, and which of them weaken the sandbox."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from debug_gym_core.components.values import Flag, Seconds, Size
from debug_gym_core.errors import UsageError
from debug_gym_core.places import expanded
from debug_gym_core.sandbox.terminal import ROOT, TerminalSettings, parse_size

OWNER = 65533
"""Who the main process is, so that the agent's commands cannot end it; read-only files belong to it too, and the
directories above them."""

UNBOUNDED = -1
LABELS = ("app", "run", "owner", "lease")

_OPEN_FILES = 4096
_TMPFS_SIZE = 64 << 20
_ULIMITS = (
    "core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack".split()  # noqa: SIM905
)
_CAPABILITIES = frozenset(
    "ALL AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH"  # noqa: SIM905
    " FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN"
    " NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT"
    " SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG"
    " WAKE_ALARM".split()
)
_USER = re.compile(r"([a-z_][a-z0-9_.-]*|[0-9]{1,9})(?::([a-z_][a-z0-9_.-]*|[0-9]{1,9}))?", re.IGNORECASE)
_SYSTEM = ("/proc", "/sys", "/dev")


class DockerSettings(TerminalSettings):
    """Settings of the docker terminal; each default is the strictest that works with every image.

    Attributes:
        pull: `missing` gets an image that is not there; `never` does not
        pull_timeout: seconds that getting an image may take
        pull_stall: seconds without progress after which getting an image is given up
        runtime: the engine's runtime, such as `runsc` (gVisor); null: its default
        user: who the commands are: a user of the image, or `UID`, `UID:GID`
        read_only: whether the image's files cannot be changed
        cap_add: capabilities of root that are not dropped, such as `NET_RAW`; with `user: root`
        no_new_privileges: whether setuid programs mean nothing
        seccomp: filter of system calls: `default`, the engine's and ours; `unconfined`, none; or the path of a profile
        memswap_limit: bound on memory and swap together, as in `6g`; null: `memory`, so no swap; -1: no bound
        shm_size: size of `/dev/shm`
        tmp_size: size of `/tmp`; null: `workspace_size`
        tmpfs: further writable directories, in memory, as in `/var/cache` or `/var/cache:256m` (64m)
        kept: directories of the image in `/testbed` that each sandbox has a copy of, as in `/testbed/.venv`
        ulimits: bounds of each process, as in `{nofile: 65536, fsize: 8g}`; -1: none. Not named: `nofile` 4096, `fsize`
            `workspace_size` (null: 2g), `core` 1, since the kernel pipes dumps to a program of the host even at 0
        init: whether the first process waits for orphans that ended
        environment: further variables of the commands; null takes out one that a config below has, in `labels` and
            `ulimits` too
        volumes: what of the host is there, as in `/data:/data:ro`; `rw` may be written; none of the two: `ro`
        labels: further labels of the container
    """

    pull: Literal["missing", "never"] = "missing"
    pull_timeout: Seconds = 1800
    pull_stall: Seconds = 120
    runtime: str | None = None
    user: str = "1000:1000"
    read_only: Flag = True
    cap_add: tuple[str, ...] = ()
    no_new_privileges: Flag = True
    seccomp: str = "default"
    memswap_limit: str | Literal[-1] | None = None
    shm_size: Size = "64m"
    tmp_size: Size | None = None
    tmpfs: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    ulimits: dict[str, int | str] = Field(default={})
    init: Flag = True
    environment: dict[str, str] = Field(default={})
    volumes: tuple[str, ...] = ()
    labels: dict[str, str] = Field(default={})

    @field_validator("user", mode="before")
    @classmethod
    def _user(cls, value: object) -> object:
        value = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        match = _USER.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError("write a user of the image, UID or UID:GID, as in 1000:1000")
        if match[1] == str(OWNER):
            raise ValueError(f"{OWNER} is kept for what the commands must not be; take another")
        return value

    @field_validator("cap_add")
    @classmethod
    def _capabilities(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(name.upper().removeprefix("CAP_") for name in value)
        for name in names:
            if name not in _CAPABILITIES:
                raise ValueError(f"there is no capability {name}; write it as in SYS_PTRACE, or ALL")
        return names

    @field_validator("seccomp")
    @classmethod
    def _profile(cls, value: str) -> str:
        if value in ("default", "unconfined"):
            return value
        path = expanded(Path(value))
        if not path.is_absolute():
            raise ValueError("write default, unconfined, or the absolute path of a profile")
        read_profile(path)
        return str(path)

    @field_validator("pids", "cpus", mode="before")
    @classmethod
    def _counts(cls, value: object) -> object:
        if isinstance(value, int | float) and value < 0.01:
            raise ValueError("write how many there may be; there is always a bound on pids, null is none on cpus")
        return value

    @field_validator("memswap_limit")
    @classmethod
    def _swap(cls, value: str | int | None, info: ValidationInfo) -> str | int | None:
        if value is None or value in ("-1", UNBOUNDED):
            return UNBOUNDED if value else None
        memory = info.data.get("memory", "1b")
        if _size(str(value)) < parse_size(memory):
            raise ValueError(f"it counts memory too: write at least {memory} (terminal.memory), null or -1")
        return value

    @field_validator("tmpfs")
    @classmethod
    def _directories(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        _refuse_twice(["/tmp", *(_tmpfs(text).path for text in value)])
        return value

    @field_validator("kept")
    @classmethod
    def _kept(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in value:
            if not path.startswith(f"{ROOT}/") or posixpath.normpath(path) != path:
                raise ValueError(f"{path} is not below {ROOT}; write it as in {ROOT}/.venv")
        return value

    @field_validator("ulimits")
    @classmethod
    def _bounds(cls, value: Mapping[str, int | str]) -> dict[str, int | str]:
        for name, bound in value.items():
            if name not in _ULIMITS:
                raise ValueError(f"there is no limit {name}; there are {', '.join(_ULIMITS)}")
            _limit(name, bound)
        return dict(value)

    @field_validator("ulimits", "environment", "labels", mode="before")
    @classmethod
    def _without_nulls(cls, value: object) -> object:
        """Leave out what is null: mappings are merged, and so one takes out what the config below has."""
        return {key: one for key, one in value.items() if one is not None} if isinstance(value, Mapping) else value

    @field_validator("environment", "labels", mode="before")
    @classmethod
    def _texts(cls, value: object) -> object:
        """Let numbers stand where YAML makes them of what is meant as text."""
        if not isinstance(value, Mapping):
            return value
        return {
            key: str(one) if isinstance(one, int | float) and not isinstance(one, bool) else one
            for key, one in value.items()
        }

    @field_validator("environment")
    @classmethod
    def _variables(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not name or "=" in name or "\0" in name + text:
                raise ValueError(f"{name!r} is no name of a variable; write them as in {{LANG: C.UTF-8}}")
        return value

    @field_validator("volumes")
    @classmethod
    def _mounts(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        directories = (_tmpfs(text).path for text in info.data.get("tmpfs", ()))
        _refuse_twice(["/tmp", *directories, *(_volume(text).target for text in value)])
        return value

    @field_validator("labels")
    @classmethod
    def _own_labels(cls, value: dict[str, str]) -> dict[str, str]:
        taken = [name for name in LABELS if name in value]
        if taken:
            raise ValueError(f"{', '.join(taken)}: by this label containers are found and removed; take another name")
        return value

    @property
    def mounts(self) -> tuple[Volume, ...]:
        """`volumes`, taken apart."""
        return tuple(map(_volume, self.volumes))

    @property
    def directories(self) -> tuple[Tmpfs, ...]:
        """`tmpfs`, taken apart."""
        return tuple(map(_tmpfs, self.tmpfs))

    @property
    def memory_and_swap(self) -> int:
        """Bytes of memory and swap together; `UNBOUNDED`: no bound on swap."""
        limit = self.memory if self.memswap_limit is None else self.memswap_limit
        return UNBOUNDED if limit == UNBOUNDED else parse_size(str(limit))

    @property
    def tmp_bytes(self) -> int:
        """How large `/tmp` may be."""
        return parse_size(self.tmp_size) if self.tmp_size else self.workspace_bytes

    @property
    def bounds(self) -> dict[str, int]:
        """What one process may use, by the limit's name."""
        given = {name: _limit(name, bound) for name, bound in self.ulimits.items()}
        return {**self._default_bounds, **given}

    @property
    def _default_bounds(self) -> dict[str, int]:
        return {"nofile": _OPEN_FILES, "fsize": self.file_bytes, "core": 1}

    def weakened(self) -> Iterator[str]:
        """What these settings take away from the default's protection, a line each."""
        yield from super().weakened()
        for name in self.cap_add:
            yield f"terminal.cap_add has {name}: root in the container has this capability"
        if not self.no_new_privileges:
            yield "terminal.no_new_privileges is false: setuid programs of the image give their owner's rights"
        if self.seccomp == "unconfined":
            yield "terminal.seccomp is unconfined: no system call is refused"
        elif self.seccomp != "default":
            yield f"terminal.seccomp is {self.seccomp}: it stands for the engine's filter of system calls and ours"
        if not self.read_only:
            yield "terminal.read_only is false: the image's files can be changed, and fill the engine's disk"
        if self.memory_and_swap != parse_size(self.memory):
            yield f"terminal.memswap_limit is {self.memswap_limit}: memory can go to the host's swap"
        for name, bound in self.bounds.items():
            usual = self._default_bounds.get(name)
            if usual is not None and (bound == UNBOUNDED or bound > usual):
                text = "no bound" if bound == UNBOUNDED else self.ulimits[name]
                yield f"terminal.ulimits.{name} is {text}: more than {usual}"
        for one in self.mounts:
            how = "can be changed" if one.writable else "can be read"
            yield f"terminal.volumes has {one.source}: this of the host {how} at {one.target}"
        if not self.init:
            yield "terminal.init is false: orphans that ended count as processes"


@dataclass(frozen=True)
class Volume:
    """A directory or file of the host that is in the container too."""

    source: str
    target: str
    writable: bool


@dataclass(frozen=True)
class Tmpfs:
    """A directory in memory, and how many bytes it holds."""

    path: str
    size: int


def read_profile(path: Path) -> str:
    """A seccomp profile, as the engine takes it.

    Raises:
        ValueError: it cannot be read, or is no JSON object
    """
    try:
        profile = json.loads(path.read_text())
    except (OSError, UnicodeError) as error:
        raise ValueError(f"the profile cannot be read ({getattr(error, 'strerror', None) or error})") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"the profile is no JSON ({error})") from error
    if not isinstance(profile, dict) or "defaultAction" not in profile:
        raise ValueError('the profile has no "defaultAction"; it is written as Docker\'s are')
    return json.dumps(profile, separators=(",", ":"))


def _size(text: str, key: str | None = None) -> int:
    try:
        return parse_size(text)
    except UsageError as error:
        raise ValueError(f"{key}: {error}" if key else str(error)) from None


def _limit(name: str, bound: int | str) -> int:
    if isinstance(bound, str) and bound.strip() != "-1":
        return 0 if bound.strip() == "0" else _size(bound, name)
    if int(bound) < UNBOUNDED:
        raise ValueError(f"{name}: write a number, a size as in 512m, or -1 for no bound")
    return int(bound)


def _tmpfs(text: str) -> Tmpfs:
    path, colon, size = text.partition(":")
    if not _is_place(path):
        raise ValueError(f"{text!r}: write PATH or PATH:SIZE, as in /var/cache:256m; not in {ROOT}, /proc, /sys, /dev")
    return Tmpfs(path, _size(size, text) if colon else _TMPFS_SIZE)


def _volume(text: str) -> Volume:
    source, target, mode, *more = [*text.split(":"), "ro"] if text.count(":") == 1 else [*text.split(":"), "", ""]
    source = str(expanded(Path(source))) if source.startswith("~") else source
    if not source.startswith("/") or not _is_place(target) or mode not in ("ro", "rw") or any(more):
        raise ValueError(
            f"{text!r}: write HOST:CONTAINER:ro or :rw, both absolute, as in /data:/data:ro; not in {ROOT}, /proc,"
            " /sys, /dev"
        )
    return Volume(source, target, mode == "rw")


def _refuse_twice(places: list[str]) -> None:
    for path in places:
        if places.count(path) > 1:
            raise ValueError(f"something is mounted at {path} already (/tmp: tmp_size says how large it is)")


def _is_place(path: str) -> bool:
    """Whether something may be mounted at a path of the container: not where other things are."""
    if not path.startswith("/") or path != str(Path(path)) or ".." in Path(path).parts or path == "/":
        return False
    return not any(path == place or path.startswith(f"{place}/") for place in (ROOT, *_SYSTEM))
