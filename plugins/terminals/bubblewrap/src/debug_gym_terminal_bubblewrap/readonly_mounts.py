"""Read-only files in a running sandbox: mounts that are made from outside, where nothing inside can undo them.

A file is bound onto itself read-only: it can neither be written nor removed, renamed or replaced. A directory above it
is bound onto itself as it is: it could else be renamed, and another one put in its place. All is done by one short
process that joins the sandbox's mount namespace (setns(2), ioctl_ns(2), mount_namespaces(7)).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from debug_gym_core.sandbox.terminal import ROOT, Protected
from debug_gym_core.workspace.lines import encode

MOUNTS = 300
"""Mounts that are made for one sandbox at most."""

_TIMEOUT = 20.0

# Reads a letter and a path, as many as there are, each with a NUL behind it: `p` pins a directory, `d` and `f` make a
# directory and a file read-only. Writes why one could not be done. What takes long to import, as json, is not used;
# and nothing is imported once the namespaces are joined.
_MOUNTER = """
import ctypes, os, stat, sys
NS_GET_USERNS, CLONE_NEWNS, CLONE_NEWUSER = 0xB701, 0x00020000, 0x10000000
RDONLY, NOSUID, NODEV, REMOUNT, BIND, REC = 1, 2, 4, 32, 4096, 16384
libc = ctypes.CDLL(None, use_errno=True)
libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
def check(status):
    if status != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
todo = sys.stdin.buffer.read().split(b"\\0")[:-1]
failures = []
namespace = int(sys.argv[1])
user = libc.ioctl(namespace, ctypes.c_ulong(NS_GET_USERNS))
check(min(user, 0))
theirs, ours = os.fstat(user), os.stat("/proc/self/ns/user")
if (theirs.st_dev, theirs.st_ino) != (ours.st_dev, ours.st_ino):
    check(libc.setns(user, CLONE_NEWUSER))
check(libc.setns(namespace, CLONE_NEWNS))
for one in todo:
    kind, path = one[:1], one[1:]
    try:
        mode = os.lstat(path).st_mode
        if not (stat.S_ISREG(mode) if kind == b"f" else stat.S_ISDIR(mode)):
            raise OSError(20, "it was replaced")
        check(libc.mount(path, path, None, BIND | REC, None))
        if kind != b"p":
            check(libc.mount(None, path, None, REMOUNT | BIND | RDONLY | NOSUID | NODEV, None))
    except OSError as error:
        failures.append(error.strerror)
os.write(1, failures[0].encode() if failures else b"")
"""


def protect(namespace: int, paths: Protected) -> list[str]:
    """Make paths of a sandbox's workspace read-only; nothing of the agent's may have run in it.

    Args:
        namespace: descriptor of the sandbox's mount namespace
        paths: what is read-only

    Returns:
        what could not be protected, a line each
    """
    wanted = list(_plan(paths))
    todo = wanted[:MOUNTS]
    said = []
    if len(wanted) > len(todo):
        kinds = [kind for kind, _ in wanted[MOUNTS:]]
        counted = (kinds.count("d"), "directory", "directories"), (kinds.count("f"), "file", "files")
        what = " and ".join(_counted(*one) for one in counted if one[0])
        said.append(
            f"read-only: more than {MOUNTS} mounts would be needed; changes of {what} are undone after each step"
        )
    if paths.links:
        links = _counted(len(paths.links), "symbolic link", "symbolic links")
        said.append(f"read-only: changes of {links} are undone after each step")
    if not todo:
        return said
    asked = b"".join(kind.encode() + encode(f"{ROOT}/{path}") + b"\0" for kind, path in todo)
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _MOUNTER, str(namespace)],
            input=asked,
            pass_fds=(namespace,),
            capture_output=True,
            timeout=_TIMEOUT,
            env={},
            cwd="/",
        )
        failure = _last(done.stdout if done.returncode == 0 else done.stderr or b"it was killed")
    except (OSError, subprocess.TimeoutExpired) as error:
        failure = str(error)
    if failure:
        said.append(f"read-only: the kernel refuses mounts ({failure}); changes are undone after each step")
    return said


def _plan(paths: Protected) -> Iterator[tuple[str, str]]:
    """The mounts in the order in which they are made, directories first: each stands for many files."""
    pinned: set[str] = set()
    for kind, members in (("d", paths.directories), ("f", paths.files)):
        for path in members:
            for above in paths.above(path):
                if above not in pinned:
                    pinned.add(above)
                    yield "p", above
            yield kind, path


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _last(text: bytes) -> str:
    """The last line of what a program wrote."""
    return (text.decode("utf-8", "replace").strip().splitlines() or [""])[-1]
