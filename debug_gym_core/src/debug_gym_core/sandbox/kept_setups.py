"""What setup commands made, kept on this machine by what decides it: for later sandboxes, workers and runs.

Each kept setup is a directory below `directory()`, of which a `setup.json` is the last thing that is written: without
one it is unfinished, or was left by a process that was killed. A file beside it is locked while somebody makes it (then
others wait) or uses it (then it is not removed). The kernel unlocks it when they end, however they end.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core import places
from debug_gym_core.errors import DebugGymError, RequirementError, SandboxError
from debug_gym_core.sandbox import ownership

if TYPE_CHECKING:
    from debug_gym_core.sandbox.terminal import Terminal

FORMAT = 1
"""Which version of this program's ways made a setup; part of what it is known by."""

LOOK = 0.2
"""Seconds between two looks whether another process is done."""

ENVIRONMENT = "environment"
"""In a setup's directory, the virtual environment, where there is one."""

WORKSPACE = "workspace.tar"
"""In a setup's directory, what the commands made or changed in the workspace."""

_FACTS = "setup.json"
_LOCK = ".lock"


@dataclass(frozen=True)
class KeptSetup:
    """A finished setup.

    Attributes:
        key: what it is known by, see `key_of`
        terminal: name of the backend that it is for
        base: what it was made over: an image, or an interpreter, by its path
        image: the image that holds what the commands made, empty for none; see `Terminal.keep_setup`
        commands: the setup commands
        removed: paths of the workspace that they removed
        created: when it was made
        size: bytes that it takes, where it lies and in the backend
    """

    key: str
    terminal: str
    base: str
    image: str
    commands: tuple[str, ...]
    removed: tuple[str, ...]
    created: str
    size: int

    @property
    def place(self) -> Path:
        """Its directory."""
        return place_of(self.key)


def directory() -> Path:
    """Where setups are kept: `setup` in the cache."""
    return places.cache() / "setup"


def key_of(facts: Mapping[str, Any]) -> str:
    """What a setup is known by: equal for equal facts, whatever process asks.

    Args:
        facts: all that decides the result, as JSON types
    """
    text = json.dumps({**facts, "format": FORMAT}, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def place_of(key: str) -> Path:
    """The directory of a setup."""
    return directory() / key[:32]


def now() -> str:
    """The time, for `KeptSetup.created`."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def hold(
    key: str,
    make: Callable[[Path], KeptSetup],
    there: Callable[[KeptSetup], bool],
    *,
    waits: Callable[[], None],
    given_up: Callable[[], bool],
) -> tuple[KeptSetup, Use]:
    """Get a setup, made now if it is not there; of several processes that want it one makes it.

    Args:
        key: what it is known by
        make: makes it in an empty directory; whatever it raises, nothing is kept
        there: whether what the backend kept of it is still there
        waits: called once when another process is making it
        given_up: whether to stop waiting

    Returns:
        the setup, and its use, which ends with `Use.end` or with the process

    Raises:
        RequirementError: nothing can be written where setups are kept
        SandboxError: it was gone as soon as it was made; or waiting was given up
    """
    place = place_of(key)
    made = False
    with explained():
        place.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    while True:
        use = Use.wait(place, fcntl.LOCK_SH, waits, given_up)
        try:
            kept = _read(place)
            if kept is not None and kept.key == key and there(kept):
                return kept, use
        except BaseException:
            use.end()
            raise
        use.end()
        if made:
            raise SandboxError(f"the setup in {place} was gone as soon as it was made; is something removing it?")
        use = Use.wait(place, fcntl.LOCK_EX, waits, given_up)
        try:
            kept = _read(place)
            if kept is None or kept.key != key or not there(kept):
                _make(place, make)
                made = True
        except BaseException:
            use.end(remove=True)
            raise
        use.end()


def _make(place: Path, make: Callable[[Path], KeptSetup]) -> None:
    """Make a setup in the place of one that is unfinished or of no use."""
    try:
        with explained():
            _discard(place)
            place.mkdir(mode=0o755)
        kept = make(place)
        with explained():
            temporary = place / f"{_FACTS}.new"
            with temporary.open("w", encoding="utf-8", errors="surrogateescape") as file:
                json.dump(asdict(kept), file, indent=2)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(place / _FACTS)
    except BaseException:
        _discard(place)
        raise


def _discard(place: Path) -> None:
    """Remove a setup's directory: its name at once, as what a killed process left running may still write in it."""
    aside = place.with_name(f"{place.name}.{os.getpid()}.{time.monotonic_ns()}")
    with contextlib.suppress(FileNotFoundError):
        place.rename(aside)
        ownership.remove_tree(aside)


class Use:
    """The use of a place, or the right to change it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        """Keep a locked file; see `wait`."""
        self._path = path
        self._descriptor = descriptor
        self._owner = os.getpid()
        self._dropped = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def attempt(cls, place: Path, how: int) -> Use | None:
        """Lock a place if nobody has it in another way.

        Args:
            place: of a setup
            how: `fcntl.LOCK_SH` to use it, `fcntl.LOCK_EX` to change it

        Raises:
            OSError: the file cannot be made
        """
        path = place.with_name(place.name + _LOCK)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, how | fcntl.LOCK_NB)
                about = path.stat() if path.exists() else None
            except BlockingIOError:
                os.close(descriptor)
                return None
            except BaseException:
                os.close(descriptor)
                raise
            if about is not None and about.st_ino == os.fstat(descriptor).st_ino:
                return cls(path, descriptor)
            os.close(descriptor)  # whoever had it has removed it

    @classmethod
    def wait(cls, place: Path, how: int, waits: Callable[[], None], given_up: Callable[[], bool]) -> Use:
        """Lock a place as soon as nobody has it in another way; see `attempt` and `hold`."""
        told = False
        while True:
            with explained():
                use = cls.attempt(place, how)
            if use is not None:
                return use
            if given_up():
                raise SandboxError("waiting for another process to set up was given up")
            if not told:
                waits()
                told = True
            time.sleep(LOOK)

    def end(self, *, remove: bool = False) -> None:
        """Give it free; may be called twice.

        Args:
            remove: remove the locked file as well, for a place that is gone
        """
        if self._descriptor >= 0:
            if remove:
                self._path.unlink(missing_ok=True)
            if os.getpid() == self._owner:  # forks of ours may have it open too
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self._dropped()
            self._descriptor = -1


def all_kept() -> list[KeptSetup]:
    """The finished setups, oldest first."""
    return sorted(filter(None, map(_read, _places())), key=lambda kept: kept.created)


def reap() -> list[Path]:
    """Remove what processes that were killed while they set up have left; returns which directories."""
    removed = []
    for place in _places():
        if _read(place) is None and (use := Use.attempt(place, fcntl.LOCK_EX)) is not None:
            try:
                if _read(place) is None and place.is_dir():
                    _discard(place)
                    removed.append(place)
            finally:
                use.end(remove=True)
    return removed


def remove_all(terminals: Mapping[str, type[Terminal]]) -> tuple[list[str], list[str]]:
    """Remove all kept setups that nobody uses.

    Args:
        terminals: backends by name, to remove what they keep

    Returns:
        what was removed, and what could not be, a line each
    """
    removed, failed = [], []
    for kept in all_kept():
        name = f"setup {kept.place.name}"
        use = Use.attempt(kept.place, fcntl.LOCK_EX)
        if use is None:
            failed.append(f"{name} is in use")
            continue
        try:
            if kept.image:
                if kept.terminal not in terminals:
                    raise RequirementError(f"the terminal {kept.terminal} is not installed")
                terminals[kept.terminal].remove_image(kept.image)
            (kept.place / _FACTS).unlink(missing_ok=True)  # first, so that nobody takes the rest for finished
            _discard(kept.place)
            use.end(remove=True)
            removed.append(f"{name} ({'; '.join(kept.commands)})")
        except (DebugGymError, OSError) as error:
            failed.append(f"{name}: {error}")
        finally:
            use.end()
    return removed, failed


def summary(kept: Sequence[KeptSetup]) -> tuple[int, int]:
    """How many setups there are, and how many bytes they take."""
    return len(kept), sum(one.size for one in kept)


def _places() -> Iterable[Path]:
    with contextlib.suppress(OSError):
        yield from sorted(path for path in directory().iterdir() if path.is_dir() and not path.is_symlink())


def _read(place: Path) -> KeptSetup | None:
    """A finished setup; None when there is none, or one of another format."""
    try:
        facts = json.loads((place / _FACTS).read_text(encoding="utf-8", errors="surrogateescape"))
        return KeptSetup(**{**facts, "commands": tuple(facts["commands"]), "removed": tuple(facts["removed"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn what the file system refuses, where setups are kept, into a `RequirementError` that helps."""
    try:
        yield
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        raise RequirementError(
            f"terminal.setup: what it makes is kept in {directory()}: {error.strerror or error}; make room there, or"
            " set XDG_CACHE_HOME to another directory"
        ) from error
