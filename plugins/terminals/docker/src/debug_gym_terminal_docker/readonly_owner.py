"""Read-only files in a container: another user's, in directories of that user whose entries only their owners rename.

The workspace is that user's from the start, open to all, with the sticky bit. What is read-only and the directories
above it are made anew by that user, and everything else is moved into these directories by the agent's user, whose it
stays. Neither has, or needs, any capability, so that nothing of the image ever runs with one.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.sandbox.terminal import ROOT, Protected
from debug_gym_terminal_docker import engine
from debug_gym_terminal_docker.stream import ExecStream, bounded

if TYPE_CHECKING:
    from docker import APIClient

ANSWER_TIMEOUT = 60.0
"""Seconds that one part of the work may take: the contents of what is read-only are copied."""

_COMMON = """
import json, os, stat, sys
def encode(path):
    return path.encode("utf-8", "surrogateescape")
def tell(value):
    os.write(1, json.dumps(value).encode("ascii") + b"\\n")
def hear():
    return json.loads(sys.stdin.readline())
root, aside = b"/testbed/", b"/testbed/.debug-gym-aside/"
def remove(path):
    if stat.S_ISDIR(os.lstat(path).st_mode):
        for name in os.listdir(path):
            remove(os.path.join(path, name))
        os.rmdir(path)
    else:
        os.unlink(path)
"""

# The agent's user: puts aside what is to be made anew and lets everybody read it; then takes back what stays its own.
# Answers with what is there of the directories above, the read-only directories, files and links.
_MOVER = (
    _COMMON
    + """
def has(path, kind):
    try:
        return kind(os.lstat(path).st_mode)
    except OSError:
        return False
def open_up(path):
    mode = os.lstat(path).st_mode
    if stat.S_ISDIR(mode):
        os.chmod(path, mode & 0o777 | 0o755)
        for name in os.listdir(path):
            open_up(os.path.join(path, name))
    elif stat.S_ISREG(mode):
        os.chmod(path, mode & 0o777 | 0o444)
above, directories, files, links = hear()
kinds = stat.S_ISDIR, stat.S_ISDIR, stat.S_ISREG, stat.S_ISLNK
present = set()
found = []
for paths, kind in zip((above, directories, files, links), kinds):
    kept = []
    for path in paths:
        parent = path.rpartition("/")[0]
        if (not parent or parent in present) and has(root + encode(path), kind):
            kept.append(path)
            if paths is above:
                present.add(path)
    found.append(kept)
tops = sorted({path.partition("/")[0] for paths in found for path in paths})
os.mkdir(aside)
for top in tops:
    os.rename(root + encode(top), aside + encode(top))
for path in found[0]:
    os.chmod(aside + encode(path), 0o755)
for path in found[1] + found[2]:
    open_up(aside + encode(path))
tell(found)
if hear():
    anew = {encode(path) for paths in found for path in paths}
    for path in map(encode, found[0]):
        for name in os.listdir(aside + path):
            inner = path + b"/" + name
            if inner not in anew:
                os.rename(aside + inner, root + inner)
else:
    for top in tops:
        os.rename(aside + encode(top), root + encode(top))
remove(aside)
tell(None)
"""
)

# The owner: makes them, keeping times and the permission to execute; undoes what it did when something fails.
_MAKER = (
    _COMMON
    + """
def copy(source, target):
    status = os.lstat(source)
    times = status.st_mtime_ns, status.st_mtime_ns
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(source), target)
    elif stat.S_ISDIR(status.st_mode):
        os.mkdir(target)
        for name in os.listdir(source):
            copy(os.path.join(source, name), os.path.join(target, name))
        os.chmod(target, 0o755)
        os.utime(target, ns=times)
    elif stat.S_ISREG(status.st_mode):
        with open(source, "rb") as old, open(target, "xb") as new:
            while new.write(old.read(1 << 20)):
                pass
        os.chmod(target, 0o755 if status.st_mode & 0o100 else 0o644)
        os.utime(target, ns=times)
above, directories, files, links = hear()
tops = sorted({path.partition("/")[0] for paths in (above, directories, files, links) for path in paths})
try:
    for path in map(encode, above):
        os.mkdir(root + path)
        os.chmod(root + path, 0o1777)
    for path in map(encode, directories + files + links):
        copy(aside + path, root + path)
except OSError as error:
    for top in tops:
        if os.path.lexists(root + encode(top)):
            remove(root + encode(top))
    tell(str(error))
else:
    tell(None)
"""
)


def protect(client: APIClient, container: str, python: str, paths: Protected, user: str, owner: str) -> list[str]:
    """Make paths of a container's workspace another user's; nothing of the agent's may have run in it.

    Args:
        client: the engine
        container: its id
        python: of the image
        paths: what is read-only
        user: who the agent's commands are
        owner: who the workspace's directory belongs to, and nothing else that runs

    Returns:
        what could not be protected, a line each

    Raises:
        SandboxError: it failed halfway, or took longer than `ANSWER_TIMEOUT`
    """
    above = dict.fromkeys(
        directory
        for path in sorted((*paths.directories, *paths.files, *paths.links))
        for directory in paths.above(path)
    )
    with ExitStack() as stack:
        mover = _Talk(stack, client, container, [python, "-I", "-S", "-c", _MOVER], user)
        maker = _Talk(stack, client, container, [python, "-I", "-S", "-c", _MAKER], owner)
        mover.tell([list(above), list(paths.directories), list(paths.files), list(paths.links)])
        maker.tell(mover.hear())
        failure = maker.hear()
        mover.tell(failure is None)
        mover.hear()
    return [f"read-only: changes are undone after each step ({failure})"] if failure else []


class _Talk:
    """A program in the container that takes and gives JSON, a line a value."""

    def __init__(self, stack: ExitStack, client: APIClient, container: str, command: list[str], user: str) -> None:
        self._errors = bytearray()
        with engine.explained("read-only files could not be protected"):
            started = client.exec_create(container, command, stdin=True, user=user, workdir=ROOT)
            self._stream = ExecStream(client.exec_start(started["Id"], socket=True), self._errors.extend)
        stack.callback(self._stream.close)
        self._lines = self._read()

    def tell(self, value: Any) -> None:
        """Send a value."""
        with bounded(self._stream, ANSWER_TIMEOUT) as late:
            try:
                self._stream.write(json.dumps(value).encode("ascii") + b"\n")
            except OSError as error:
                if late.is_set():
                    raise self._failure(late) from error
                raise SandboxLost(f"the container is gone: {error}") from error

    def hear(self) -> Any:
        """Wait for a value."""
        with bounded(self._stream, ANSWER_TIMEOUT) as late:
            line = next(self._lines, None)
        if line is None:
            raise self._failure(late)
        return json.loads(line)

    def _failure(self, late: threading.Event) -> SandboxError:
        words = self._errors.decode("utf-8", "replace").strip().splitlines()
        nothing = f"no answer within {ANSWER_TIMEOUT:g} s" if late.is_set() else "no answer"
        return SandboxError(f"docker: read-only files could not be protected: {words[-1] if words else nothing}")

    def _read(self) -> Iterator[bytes]:
        rest = b""
        while data := self._stream.read(1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
