"""Clones of one commit, kept in the cache: fetched once, whole or not at all, and in parts where a server gives them.

Git cannot resume a pack. So of servers that filter, the commit and its trees come first (as in a partial clone, see
https://git-scm.com/docs/partial-clone), then directories and files by the names of their objects, a batch at a time.
Each is a pack that stays, and a fetch that was broken off goes on with what is missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence, Set
from pathlib import Path

from debug_gym_benchmarks import cache
from debug_gym_core import RequirementError, progress

QUIET = 60.0
"""Seconds without a word of git after which a transfer is given up; it tells how far it is all the time."""

FIRST = 1000
"""Files that the first batch has."""

RESUMED = 100
"""Files that the first batch has of a fetch that was broken off: its connection is not the best."""

MOST = 10_000
"""Files that any batch has; a command line takes as many names."""

BATCH = 5.0
"""Seconds that a batch should take, roughly: as much an interruption loses."""

STALE = 30 * 24 * 3600.0
"""Seconds after which what was begun and not taken up again is removed."""

COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
"""A commit's full name."""

# What servers say that do not give single commits, and what a client says of servers that give files only.
_ONLY_WHOLE = re.compile(r"unadvertised object|dumb http transport does not support")
# What servers say that filter, but give no single objects.
_NO_OBJECTS = re.compile(r"unadvertised object|not our ref")
_NOT_THERE = re.compile(r"not our ref|did not contain|couldn't find remote ref")
_PROGRESS = re.compile(r"^(remote: )?[\w ]+: +\d+")
_USER = re.compile(r"(?<=://)[^/@\s]+@")


def fetch(name: str, url: str, commit: str) -> Path:
    """A bare git directory that has a commit; from the cache, or fetched now.

    Args:
        name: what messages call it
        url: what git clones
        commit: its full name

    Raises:
        RequirementError: it cannot be had; the text says what to do
    """
    key = hashlib.sha256(f"{url}\n{commit}".encode()).hexdigest()
    place = cache.directory() / "clones" / f"{re.sub(r'[^A-Za-z0-9.]+', '-', name)}-{key[:16]}"
    if has(place, commit):
        return place
    what = f"fetch {name}"
    try:
        with cache.locked(place, lambda: progress.tell(what, f"another process fetches {name}")):
            if not has(place, commit):
                cache.forget(place.parent, STALE)
                with cache.making(place, _take_up) as part:
                    _Transfer(name, url, commit, part).run()
    finally:
        progress.tell(what, None)
    return place


def has(git_directory: Path, commit: str) -> bool:
    """Whether a git directory is there and has a commit."""
    if not git_directory.is_dir():
        return False
    done = git(git_directory, ["rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"])
    return done.returncode == 0 and done.stdout.decode().strip() == commit


def git(directory: Path, arguments: Sequence[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git in a directory that has a repository, or is one; it reads what is there and asks nobody.

    Args:
        directory: where
        arguments: of git
        stdin: what it reads

    Raises:
        RequirementError: git is not installed
    """
    bare = ["--git-dir=."] if (directory / "HEAD").is_file() else []
    with _installed():
        return subprocess.run(
            ["git", *bare, *arguments], cwd=directory, input=stdin, capture_output=True, env=environment()
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


_GITS_PLACES = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"})


@contextlib.contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise RequirementError("git is not installed; checkouts of benchmarks need it (apt install git)") from None


def without_user(text: str) -> str:
    """A text with URLs that name no user or password."""
    return _USER.sub("", text)


def _take_up(left: Path, part: Path) -> None:
    """Move the packs that an interrupted transfer has got whole; locks and halves of files stay behind."""
    (part / _PACKS).mkdir(parents=True, exist_ok=True)
    for index in (left / _PACKS).glob("pack-*.idx"):
        with contextlib.suppress(FileNotFoundError):  # without its pack it is of no use
            for ending in (".pack", ".idx"):
                index.with_suffix(ending).rename(part / _PACKS / index.with_suffix(ending).name)
    with contextlib.suppress(FileNotFoundError):  # the first commit of a history has none
        (left / _SHALLOW).rename(part / _SHALLOW)


_PACKS = Path("objects", "pack")
_SHALLOW = "shallow"
_SOURCE = "debug-gym"
"""What git calls the repository that it fetches from in part."""


class _Transfer:
    """The fetching of one commit into a directory, which is empty or has what an earlier one got."""

    def __init__(self, name: str, url: str, commit: str, place: Path) -> None:
        self._name, self._url, self._commit, self._place = name, url, commit, place
        self._come: tuple[int, int] | None = None  # files that are there, and that are to be; None: nothing is of use
        self._receiving = False

    def run(self) -> None:
        """Fetch the commit alone where the server gives single commits, else everything; see that all is there."""
        try:
            self._init()
            files, most = self._left(), RESUMED
            if files is None:
                files, most = self._trees(), FIRST
            if files is None:
                self._check(self._fetch([self._url, "+refs/*:refs/whole/*"]))
            elif not self._files(files, most):
                self._empty()
                self._check(self._fetch(["--depth=1", self._url, self._commit]))
            self._finish()
        finally:
            if self._come is None:
                shutil.rmtree(self._place, ignore_errors=True)

    def _left(self) -> _Files | None:
        """The files of the commit; None: an earlier transfer got nothing that another can go on from."""
        found = list((self._place / _PACKS).glob("*.idx"))
        for index in found:
            if git(self._place, ["verify-pack", str(index)]).returncode != 0:
                index.with_suffix(".pack").unlink()
                index.unlink()
        files = _Files.of(self._place, self._commit) if found else None
        if found and (files is None or git(self._place, ["rev-list", "--quiet", self._commit]).returncode != 0):
            self._empty()
            return None
        return files

    def _trees(self) -> _Files | None:
        """Fetch the commit and its trees; a server that does not filter gives the files with them.

        Returns:
            the files of the commit; None: the server gives no single commits
        """
        remote = {"url": self._url, "promisor": "true", "partialclonefilter": "blob:none"}
        options = [f"remote.{_SOURCE}.{key}={value}" for key, value in remote.items()]
        said = self._fetch(["--depth=1", "--filter=blob:none", _SOURCE, self._commit], options)
        if _ONLY_WHOLE.search(said):
            return None
        if not _NOT_THERE.search(said):
            self._check(said)
        for promise in (self._place / _PACKS).glob("*.promisor"):  # from now on, git does not ask for what is missing
            promise.unlink()
        self._init()
        files = _Files.of(self._place, self._commit)
        if files is None:
            raise self._no_commit()
        return files

    def _files(self, files: _Files, most: int) -> bool:
        """Fetch files, in batches that get larger or smaller until they take the time that they should.

        Returns:
            whether they have come; the server may not give single objects
        """
        listed = git(self._place, ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]).stdout
        missing = files.names.difference(listed.decode().split())
        while True:
            self._come = len(files.names) - len(missing), len(files.names)
            if not missing:
                return True
            began = time.monotonic()
            wanted, coming = files.batch(missing, most)
            said = self._fetch([self._url, *wanted])
            if _NO_OBJECTS.search(said):
                return False
            self._check(said)
            missing -= coming
            took = time.monotonic() - began
            most = min(most * 2, MOST) if took < BATCH / 2 else max(most // 2, 1) if took > BATCH * 2 else most

    def _finish(self) -> None:
        """See that nothing is missing, and give the commit a name."""
        if not has(self._place, self._commit):
            raise self._no_commit()
        for arguments in (
            ["rev-list", "--quiet", "--objects", self._commit],
            ["update-ref", "refs/heads/fetched", self._commit],
        ):
            done = git(self._place, arguments)
            if done.returncode != 0:
                self._come = None
                raise self._failed(done.stderr.decode(errors="replace"))
        self._come = self._come or (0, 0)

    def _no_commit(self) -> RequirementError:
        self._receiving = False
        return self._failed(f"it has no commit {self._commit}")

    def _empty(self) -> None:
        """Begin anew."""
        self._come = None
        shutil.rmtree(self._place / "objects")
        (self._place / _SHALLOW).unlink(missing_ok=True)
        self._init()

    def _init(self) -> None:
        """Make a repository, or give one its first configuration again."""
        (self._place / "config").unlink(missing_ok=True)
        self._check(self._git(["init", "--quiet", "--bare", "--template=", "."]))

    def _check(self, said: str) -> None:
        if said:
            raise self._failed(said)

    def _failed(self, why: str) -> RequirementError:
        lines = [line.strip() for line in why.splitlines() if line.strip()]
        fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
        reason = re.sub(
            r"^(fatal|error): ", "", fatal[0] if fatal else lines[-1] if lines else "git gave no reason"
        ).rstrip(".")
        if self._come is not None:
            reason += f"; {self._come[0]} of {self._come[1]} files are kept, the next try goes on from there"
        elif self._receiving:
            reason += "; nothing of what came is kept, the next try begins anew"
        return RequirementError(
            without_user(
                f"{self._name} cannot be fetched from {self._url}: {reason}; say benchmark.source=DIRECTORY (or URL) of"
                " another clone of it"
            )
        )

    def _fetch(self, arguments: Sequence[str], options: Sequence[str] = ()) -> str:
        """Run `git fetch` with options of its configuration, see `_git`."""
        given = [word for option in ("fetch.unpackLimit=1", *options) for word in ("-c", option)]  # packs, no files
        return self._git([*given, "fetch", "--progress", "--no-tags", "--recurse-submodules=no", *arguments])

    def _git(self, arguments: Sequence[str]) -> str:
        """Run git in the directory and tell how far it is.

        Returns:
            what it complained of; empty when it succeeded
        """
        with _installed():
            process = subprocess.Popen(
                ["git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", *arguments],
                cwd=self._place,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment(),
                start_new_session=True,  # one group to end, without a terminal that ssh could ask on
            )
        try:
            complaint = self._listen(process)
            return complaint or "git gave no reason" if process.wait() != 0 else ""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its helpers too, which may hold the connection
            process.wait()
            if process.stderr is not None:
                process.stderr.close()

    def _listen(self, process: subprocess.Popen[bytes]) -> str:
        assert process.stderr is not None
        lines: list[str] = []
        rest = ""
        while True:
            ready, _, _ = select.select([process.stderr], [], [], QUIET)
            if not ready:
                raise self._failed(f"nothing came for {QUIET:.0f} s")
            data = os.read(process.stderr.fileno(), 1 << 16)
            if not data:
                return "\n".join([*lines, rest])
            *new, rest = re.split(r"[\r\n]", rest + data.decode(errors="replace"))
            for line in new:
                if _PROGRESS.match(line):
                    self._receiving = self._receiving or line.startswith("Receiving objects")
                    come = f"{self._come[0]} of {self._come[1]} files, " if self._come else ""
                    now = f"{come}{line.removeprefix('remote: ').strip()}"
                    progress.tell(f"fetch {self._name}", f"fetching {self._name}: {now}")
                else:
                    lines = [*lines[-20:], line]


class _Files:
    """The files of a commit, with the directories that they are in.

    Attributes:
        names: of the objects
    """

    def __init__(self, entries: Sequence[tuple[str, str, bytes]]) -> None:
        self._entries = entries
        self.names = frozenset(name for kind, name, _ in entries if kind == "blob")

    @classmethod
    def of(cls, repository: Path, commit: str) -> _Files | None:
        """The files of a commit in a repository; None: it lacks the commit, or trees of it."""
        done = git(repository, ["ls-tree", "-r", "-t", "-z", "--full-tree", commit])
        if done.returncode != 0:
            return None
        parted = [line.partition(b"\t") for line in done.stdout.split(b"\0")[:-1]]
        about = [(of.decode().split(), path) for of, _, path in parted]
        return cls([(kind, name, path) for (_, kind, name), path in about])  # a directory before what is in it

    def batch(self, missing: Set[str], most: int) -> tuple[list[str], set[str]]:
        """What to ask for next.

        A directory that lacks all its files is asked for as one: a server finds what is like a file by its path, and
        takes twice as long for files that are asked for by their names.

        Args:
            missing: names of files
            most: how many files to ask for

        Returns:
            names of directories and files, and those of the files that come with them
        """
        lacks: dict[bytes, set[str]] = {}
        has: set[bytes] = set()
        for kind, name, path in self._entries:
            for above in _above(path) if kind == "blob" else ():
                if name in missing:
                    lacks.setdefault(above, set()).add(name)
                else:
                    has.add(above)
        wanted: dict[str, None] = {}
        coming: set[str] = set()
        inside = None
        for kind, name, path in self._entries:
            if inside is not None and path.startswith(inside):
                continue
            files = {name} & missing if kind == "blob" else lacks.get(path, set()) if path not in has else set()
            if files and len(files) <= most < len(files | coming):
                break
            if files - coming and len(files | coming) <= most:
                wanted[name] = None
                coming |= files
                inside = path + b"/"
        return list(wanted), coming


def _above(path: bytes) -> Iterator[bytes]:
    """The directories that a path is in."""
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path
