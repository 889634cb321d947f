"""Git, as benchmarks run it: it asks nobody for anything, and a transfer is followed."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from debug_gym_core import RequirementError

QUIET = 60.0
"""Seconds without a word of git after which a transfer is given up; it tells how far it is all the time."""

COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
"""A commit's full name."""

_GITS_PLACES = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"})
_NO_PROGRAMS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_PROGRESS = re.compile(r"^(remote: )?[\w ]+: +\d+")
_USER = re.compile(r"(?<=://)[^/@\s]+@")


def has(git_directory: Path, commit: str) -> bool:
    """Whether a git directory is there and has a commit."""
    if not git_directory.is_dir():
        return False
    done = run(git_directory, ["rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"])
    return done.returncode == 0 and done.stdout.decode().strip() == commit


def run(directory: Path, arguments: Sequence[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git in a directory that has a repository, or is one; it reads what is there and asks nobody.

    The repository's own settings can name a program that is to be asked which files changed, others that are told of
    changes, and others again that are to fetch an object that is not there: none of them is started.

    Args:
        directory: where
        arguments: of git
        stdin: what it reads

    Raises:
        RequirementError: git is not installed
    """
    bare = ["--git-dir=."] if (directory / "HEAD").is_file() else []
    alone = {**environment(), "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
    with _installed():
        return subprocess.run(
            ["git", *_NO_PROGRAMS, *bare, *arguments], cwd=directory, input=stdin, capture_output=True, env=alone
        )


def environment() -> dict[str, str]:
    """The variables for git: it asks for no password, speaks English, and takes no directory from ours."""
    kept = {key: value for key, value in os.environ.items() if key not in _GITS_PLACES}
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "GCM_INTERACTIVE": "never",
        "GIT_SSH_COMMAND": os.environ.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes"),
    }


@contextlib.contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise RequirementError("git is not installed; checkouts of benchmarks need it (apt install git)") from None


def without_user(text: str) -> str:
    """A text with URLs that name no user or password."""
    return _USER.sub("", text)


def follow(directory: Path, arguments: Sequence[str], heard: Callable[[str], None]) -> str:
    """Run git in a directory and hand on what it says of how far it is; with all its helpers it ends with the call.

    Args:
        directory: where
        arguments: of git
        heard: gets each line about how far it is

    Returns:
        what it complained of; empty when it succeeded

    Raises:
        RequirementError: git is not installed
    """
    with _installed():
        process = subprocess.Popen(
            ["git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", *arguments],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(),
            start_new_session=True,  # one group to end, without a terminal that ssh could ask on
        )
    try:
        complaint = _listen(process, heard)
        if complaint is None:
            return f"nothing came for {QUIET:.0f} s"
        return complaint or "git gave no reason" if process.wait() != 0 else ""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its helpers too, which may hold the connection
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def _listen(process: subprocess.Popen[bytes], heard: Callable[[str], None]) -> str | None:
    """The last lines that are not about progress; None: it says nothing any more."""
    assert process.stderr is not None
    lines: list[str] = []
    rest = ""
    while True:
        ready, _, _ = select.select([process.stderr], [], [], QUIET)
        if not ready:
            return None
        data = os.read(process.stderr.fileno(), 1 << 16)
        if not data:
            return "\n".join([*lines, rest])
        *new, rest = re.split(r"[\r\n]", rest + data.decode(errors="replace"))
        for line in new:
            if _PROGRESS.match(line):
                heard(line)
            else:
                lines = [*lines[-20:], line]
