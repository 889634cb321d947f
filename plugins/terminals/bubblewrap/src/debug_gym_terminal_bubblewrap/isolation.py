"""How a sandbox is cut off, and whether that works here.

An ordinary user's sandbox is a user namespace. In one that root makes, the sandbox's user is still root to the kernel,
who owns /dev/null and /proc/sys: so root makes none, and the first process becomes another user before anything else
(`DROP`). Where root may not do that, as in some containers, the user namespace is the second choice.

When the runner is killed, the guest's standard input ends, and the guest with it. An ordinary user's sandbox is killed
by the kernel as well (--die-with-parent); root's is not, for bubblewrap may not signal the user that we changed to.
"""

from __future__ import annotations

import enum
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from debug_gym_core.errors import RequirementError

USER = 1000
"""The user's and the group's number inside."""

_NESTED = (0, 8)
_TIMEOUT = 10.0

DROP = f"""
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
prctl = libc.prctl
prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
def own(directory):  # and what was made in it to mount an interpreter there
    os.chown(directory, {USER}, {USER})
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and entry.stat().st_dev == os.stat("/testbed").st_dev:
                own(entry.path)
own("/testbed")
capability = 0
while prctl(24, capability, 0, 0, 0) == 0:  # PR_CAPBSET_DROP
    capability += 1
os.setgroups([])
os.setresgid({USER}, {USER}, {USER})
os.setresuid({USER}, {USER}, {USER})
if libc.capset(struct.pack("Ii", 0x20080522, 0), bytes(24)) != 0:
    sys.exit("capset: " + os.strerror(ctypes.get_errno()))
os.environ.pop("LC_CTYPE", None)  # Python's own, set for its children
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""What the first process of root's sandbox runs, in the task's interpreter; its arguments are the real command."""

_QUICK_DROP = f"""
chown {USER}:{USER} /testbed && exec "$0" --reuid={USER} --regid={USER} --clear-groups --bounding-set=-all \\
    --inh-caps=-all --ambient-caps=-all -- "$@"
"""
"""The same by util-linux's setpriv, in a tenth of the time, where nothing is mounted in the workspace."""


def dropped(command: Sequence[str], python: str, *, quick: bool) -> list[str]:
    """A command that becomes the sandbox's user and then another command.

    Args:
        command: the other command
        python: an interpreter in the sandbox
        quick: whether nothing is mounted in the workspace
    """
    if quick and _has_setpriv():
        return ["/bin/sh", "-c", _QUICK_DROP, _SETPRIV, *command]
    return [python, "-I", "-S", "-c", DROP, *command]


_SETPRIV = "/usr/bin/setpriv"


@functools.cache
def _has_setpriv() -> bool:
    """Whether there is a setpriv that knows all that is asked of it (busybox's does not)."""
    return _try(Mode.CHANGE_USER, as_user=True) is None


class Mode(enum.Enum):
    """How the sandbox's user is made."""

    USER_NAMESPACE = "user namespace"
    CHANGE_USER = "change of user"


def options(mode: Mode, network: bool) -> list[str]:
    """The options of bubblewrap that isolate.

    Args:
        mode: how the user is made
        network: whether the host's network stays
    """
    if mode is Mode.USER_NAMESPACE:
        user = ["--unshare-user", *(["--disable-userns"] if _nested() else []), "--uid", str(USER), "--gid", str(USER)]
        capabilities = ["--cap-drop", "ALL"]
    else:
        user = []
        capabilities = ["--cap-drop", "ALL"]
        for capability in ("CHOWN", "SETGID", "SETPCAP", "SETUID"):
            capabilities += ["--cap-add", f"CAP_{capability}"]
    return [
        *user,
        *([] if network else ["--unshare-net"]),
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        *capabilities,
        "--hostname",
        "sandbox",
    ]


def mode() -> Mode | None:
    """How sandboxes are made here; None: not at all, see `unavailable`. Really tries, until it has found one."""
    try:
        return _mode()
    except RequirementError:
        return None


@functools.cache
def _mode() -> Mode:
    """The same; a failure is raised, for only what is returned is remembered: a person may mend what is missing.

    Raises:
        RequirementError: why there is none
    """
    reason: str | None = None
    for candidate in _candidates():
        reason = _try(candidate)
        if reason is None:
            return candidate
    raise RequirementError(reason or "")


def _candidates() -> list[Mode]:
    return [Mode.CHANGE_USER, Mode.USER_NAMESPACE] if _can_change_user() else [Mode.USER_NAMESPACE]


def _can_change_user() -> bool:
    """Whether this process has what changing the user, and killing it later, takes."""
    needed = sum(1 << capability for capability in (0, 5, 6, 7, 8, 21))  # CHOWN KILL SETGID SETUID SETPCAP SYS_ADMIN
    status = re.search(r"^CapEff:\s*([0-9a-f]+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    capable = os.geteuid() == 0 and status is not None and int(status[1], 16) & needed == needed
    return capable and all(_is_mapped(Path("/proc/self") / name) for name in ("uid_map", "gid_map"))


def _is_mapped(table: Path) -> bool:
    """Whether the user namespace that we are in has a user or group of the sandbox's number."""
    ranges = [list(map(int, line.split())) for line in table.read_text().splitlines()]
    return any(first <= USER < first + count for first, _, count in ranges)


def unavailable() -> str | None:
    """Why bubblewrap cannot make a sandbox here and what to do; None when it can."""
    if not sys.platform.startswith("linux"):
        return "bubblewrap needs Linux; use the docker terminal"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed; get it with: apt-get install bubblewrap"
    try:
        _mode()
    except RequirementError as error:
        return f"bubblewrap cannot make a sandbox here: {_cause()} ({error})"
    return None


def _try(candidate: Mode, *, as_user: bool = False) -> str | None:
    """Make a sandbox that does nothing, as its user when asked for; returns what went wrong."""
    links = [option for name in ("bin", "lib", "lib64") for option in ("--ro-bind-try", f"/{name}", f"/{name}")]
    system = ["--ro-bind", "/usr", "/usr", *links, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/testbed"]
    command = ["/bin/sh", "-c", _QUICK_DROP, _SETPRIV, "true"] if as_user else ["true"]
    try:
        done = subprocess.run(
            ["bwrap", *options(candidate, network=False), *system, "--", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]


def version() -> str:
    """What bubblewrap says of itself, as in `bubblewrap 0.8.0`; empty when it says nothing."""
    try:
        return _version()
    except (OSError, subprocess.TimeoutExpired):
        return ""


@functools.cache
def _version() -> str:
    """The same; a failure is raised, and so not remembered."""
    return subprocess.run(["bwrap", "--version"], capture_output=True, text=True, timeout=_TIMEOUT).stdout.strip()


def _nested() -> bool:
    """Whether this bubblewrap can forbid further user namespaces in the sandbox."""
    return tuple(map(int, re.findall(r"\d+", version())[:2])) >= _NESTED


def _cause() -> str:
    """What on this machine forbids namespaces, as far as one can see."""
    if _value("/proc/sys/user/max_user_namespaces") == "0":
        return "user namespaces are switched off; sysctl -w user.max_user_namespaces=10000 allows them"
    if os.geteuid() != 0 and _value("/proc/sys/kernel/unprivileged_userns_clone") == "0":
        return "user namespaces are kept from users; sysctl -w kernel.unprivileged_userns_clone=1 allows them"
    if os.geteuid() != 0 and _value("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            "AppArmor keeps user namespaces from programs without a profile; give bwrap one, or "
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 allows them"
        )
    if _in_chroot():
        return "this is a chroot, in which the kernel makes no user namespace; use a container or pivot_root"
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return (
            "the container or chroot around us forbids it; start the container with --security-opt seccomp=unconfined "
            "--security-opt systempaths=unconfined"
        )
    return "the kernel refuses"


def _value(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _in_chroot() -> bool:
    """Whether our root is not the root of a mount namespace: then no mount has it as its place."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return False
    return not any(line.split(" ")[4] == "/" for line in lines)
