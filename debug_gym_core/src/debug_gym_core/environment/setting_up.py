"""Setting up: the commands of `terminal.setup` run once, in a build step, and what they made is put into each sandbox.

What they change is of two kinds: files outside of the workspace (installed packages), which a virtual environment on
the host or an image holds, and files of the workspace (built extensions, metadata of an editable install), which are
kept as an archive. Either kind is the state that an episode starts from: nothing of it counts as an agent's change.
"""

from __future__ import annotations

import contextlib
import io
import posixpath
import re
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core.errors import RequirementError, SandboxError
from debug_gym_core.sandbox import kept_setups, virtual_environment
from debug_gym_core.sandbox.kept_setups import KeptSetup, Use
from debug_gym_core.workspace.snapshot import BLOCK, MTIME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from debug_gym_core.sandbox.answers import Entry
    from debug_gym_core.sandbox.interpreter import Interpreter
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.sandbox.terminal import Terminal
    from debug_gym_core.workspace.snapshot import Snapshot

TIMEOUT = 1800.0
"""Seconds that one command may take."""

ENVIRONMENT = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
}
"""Variables of setup commands besides those of every command."""

IMAGE_ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_CACHE_DIR": "/tmp/pip",
    "PIP_BREAK_SYSTEM_PACKAGES": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
}
"""Likewise, where they change an image, which nobody else uses."""

_CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")
_SHOWN = 1000
"""Characters of the end of a failing command's output that are shown."""
_NO_NETWORK = re.compile(
    r"name resolution|Network is unreachable|Could not resolve|NewConnectionError|No matching distribution|"
    r"Could not find a version|dns error|Temporary failure",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Prepared:
    """What sandboxes start from.

    Attributes:
        kept: where it lies
        use: holds it; ended when no sandbox will start from it any more
        interpreter: the virtual environment's interpreter; None where an image has the packages
    """

    kept: KeptSetup
    use: Use
    interpreter: Interpreter | None

    def put(self, session: Session) -> None:
        """Make a workspace with the pristine repository in it what the commands made of it.

        Raises:
            SandboxError: it cannot be
        """
        try:
            for path in self.kept.removed:
                session.remove(path)
            with (self.kept.place / kept_setups.WORKSPACE).open("rb") as archive:
                session.put(iter(lambda: archive.read(BLOCK), b""))
        except SandboxError:
            raise
        except OSError as error:
            raise SandboxError(f"what terminal.setup made cannot be put into the workspace: {error}") from error


class Build:
    """Makes, or finds, what setup commands make of one repository in one kind of sandbox."""

    def __init__(
        self,
        terminal: Callable[[], Terminal],
        start: Callable[[Terminal, Mapping[str, Any]], contextlib.AbstractContextManager[Session]],
        snapshot: Snapshot,
        *,
        interpreter: Interpreter | None,
        python: str | None,
        about: str,
        tell: Callable[[str], None],
        given_up: Callable[[], bool],
    ) -> None:
        """Start nothing yet.

        Args:
            terminal: makes a backend with the task's settings
            start: starts one, with fields of its `SandboxSpec` that differ from every other sandbox's
            snapshot: the pristine repository
            interpreter: of the host; None where an image has it
            python: `env.python`
            about: the task, for a person
            tell: is told in a line what takes long
            given_up: whether nobody waits for it any more
        """
        self._terminal, self._start, self._snapshot = terminal, start, snapshot
        self._interpreter, self._python = interpreter, python
        self._about, self._tell, self._given_up = about, tell, given_up

    def prepare(self) -> Prepared:
        """Run the commands, unless their result is kept already.

        Raises:
            RequirementError: a command failed, something is missing, or nothing can be kept on this machine
            SandboxError: the sandbox did not start, or was lost
        """
        terminal = self._terminal()
        about = terminal.identify_image() if self._interpreter is None else _about(self._interpreter)
        key = kept_setups.key_of(
            {
                "terminal": terminal.name,
                "base": about,
                "commands": terminal.settings.setup,
                "network": terminal.settings.network,
                "python": self._python,
                "repository": self._snapshot.digest,
            }
        )
        kept, use = kept_setups.hold(
            key,
            lambda place: self._make(terminal, key, place),
            lambda kept: not kept.image or type(terminal).has_image(kept.image),
            waits=lambda: self._tell(f"another debug-gym is setting up {self._about}: waiting for it"),
            given_up=self._given_up,
        )
        try:
            return Prepared(kept, use, self._environment(kept.place))
        except BaseException:
            use.end()
            raise

    def _environment(self, place: Path) -> Interpreter | None:
        """The interpreter of a kept setup."""
        if self._interpreter is None:
            return None
        made = virtual_environment.of(place / kept_setups.ENVIRONMENT, self._interpreter)
        return virtual_environment.with_packages(made)

    def _make(self, terminal: Terminal, key: str, place: Path) -> KeptSetup:
        """Run the commands and keep what they made."""
        kept_setups.reap()
        commands = tuple(terminal.settings.setup)
        count = f"{len(commands)} command{'' if len(commands) == 1 else 's'}"
        self._tell(f"setting up {self._about}: {count} (once, the result is kept for later runs)")
        created = kept_setups.now()
        environment, archive = place / kept_setups.ENVIRONMENT, place / kept_setups.WORKSPACE
        fields: dict[str, Any] = {"builds": True}
        if self._interpreter is not None:
            with kept_setups.explained():
                interpreter = virtual_environment.create(environment, self._interpreter)
            fields |= {"interpreter": interpreter, "writable": environment}
        with self._start(terminal, fields) as session:
            before = _entries(session)
            run_all(session, commands)
            with kept_setups.explained():
                removed = _capture(session, before, archive)
            image, size = terminal.keep_setup(key)
        with kept_setups.explained():
            size += archive.stat().st_size
            if self._interpreter is not None:
                virtual_environment.finish(environment, self._interpreter)
                size += virtual_environment.size(environment)
        base = terminal.settings.image if self._interpreter is None else str(self._interpreter.executable)
        return KeptSetup(key, terminal.name, base or "", image, commands, removed, created, size)


def run_all(session: Session, commands: Sequence[str]) -> None:
    """Run setup commands in order.

    Args:
        session: a sandbox with the pristine repository in it
        commands: as the config has them

    Raises:
        RequirementError: one failed
        SandboxError: the sandbox was lost
    """
    interpreter = session.spec.interpreter
    variables = {**ENVIRONMENT, **(IMAGE_ENVIRONMENT if interpreter is None else {})}
    if interpreter is not None and interpreter.programs:
        variables |= virtual_environment.variables(interpreter)
        if "pip" not in interpreter.packages and any(re.search(r"\bpip3?\b", command) for command in commands):
            # Not every environment has pip. Where Python has none to bring, the command itself says so.
            session.run([session.python, "-m", "ensurepip"], timeout=TIMEOUT, env=variables)
    for command in commands:
        try:
            result = session.run(command, timeout=TIMEOUT, env=variables)
        except OSError as error:
            raise RequirementError(f"terminal.setup: {command[:200]!r} cannot be started: {error}") from error
        if result.exit_status != 0:
            lines = [line.strip() for line in result.output.splitlines() if line.strip()]
            said = " / ".join(lines)[-_SHOWN:]
            how = f"was ended after {TIMEOUT:g} s" if result.timed_out else f"ended with status {result.exit_status}"
            hint = ""
            if session.terminal.settings.network == "none" and _NO_NETWORK.search(result.output):
                hint = " (it has no network; terminal.network: host gives it the host's)"
            raise RequirementError(f"terminal.setup: {command!r} {how}{hint}: {said or 'it printed nothing'}")


def _about(interpreter: Interpreter) -> Mapping[str, Any]:
    """What of an interpreter decides what is installed for it, as JSON types."""
    config = interpreter.prefix / "pyvenv.cfg"
    return {
        "executable": str(interpreter.executable),
        "prefixes": [str(interpreter.prefix), str(interpreter.base_prefix)],
        "version": interpreter.version,
        "magic": interpreter.magic,
        "packages": interpreter.packages,
        "editable": [str(path) for path in interpreter.editable],
        "site": [str(path) for path in interpreter.site],
        "config": config.read_text(encoding="utf-8", errors="replace") if config.is_file() else "",
    }


def _entries(session: Session) -> dict[str, Entry]:
    """What is in the workspace, caches left out.

    Raises:
        SandboxError: it cannot be walked
    """
    try:
        entries = list(session.walk(prune=_CACHES, open_up=True))
    except OSError as error:
        raise SandboxError(f"the workspace cannot be walked: {error}") from error
    return {one.path: one for one in entries if posixpath.basename(one.path) not in _CACHES}


def _capture(session: Session, before: Mapping[str, Entry], archive: Path) -> tuple[str, ...]:
    """Write what is new or different in the workspace as a tar.

    Args:
        session: where
        before: what was there
        archive: the file to write

    Returns:
        what is gone, or is now of another kind: to be removed before the archive is unpacked

    Raises:
        RequirementError: a file cannot be read
        SandboxError: the sandbox failed
        OSError: the archive cannot be written
    """
    after = _entries(session)
    gone = [path for path, entry in before.items() if path not in after or after[path].kind != entry.kind]
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
        for path, entry in sorted(after.items()):
            known = before.get(path)
            if known is not None and known.kind == entry.kind and _same(known, entry):
                continue
            member = tarfile.TarInfo(path)
            # Not the pristine time, so that what is not the repository's own is told from it.
            member.mode, member.mtime = entry.mode, MTIME + 1
            if entry.kind == "directory":
                member.type = tarfile.DIRTYPE
                tar.addfile(member)
            elif entry.kind == "link":
                member.type, member.linkname = tarfile.SYMTYPE, entry.target or ""
                tar.addfile(member)
            elif entry.kind == "file":
                member.size = entry.size
                with io.BufferedReader(_Remote(session, path), BLOCK) as content:
                    tar.addfile(member, content)
    return tuple(path for path in gone if posixpath.dirname(path) not in gone)


def _same(before: Entry, after: Entry) -> bool:
    """Whether an entry was not touched, as far as it matters: of a directory only its permissions do."""
    return before.mode == after.mode if after.kind == "directory" else before.stamp == after.stamp


class _Remote(io.RawIOBase):
    """A file of a sandbox, to be read in order."""

    def __init__(self, session: Session, path: str) -> None:
        self._session, self._path, self._offset = session, path, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what comes next."""
        try:
            data = self._session.read(self._path, self._offset, len(buffer))
        except (ConnectionError, TimeoutError):
            raise
        except OSError as error:
            raise RequirementError(
                f"terminal.setup: what the commands made cannot be kept: {self._path}: {error.strerror or error}"
            ) from error
        buffer[: len(data)] = data
        self._offset += len(data)
        return len(data)
