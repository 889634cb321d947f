"""Clones of one commit, kept in the cache: fetched once, whole or not at all, and in parts where a server gives them.

Git cannot resume a pack. So of servers that filter, the commit and its trees come first (as in a partial clone, see
https://git-scm.com/docs/partial-clone), then directories and files by the names of their objects, a batch at a time.
Each is a pack that stays, and a fetch that was broken off goes on with what is missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from debug_gym_benchmarks import cache, git
from debug_gym_benchmarks.commit_files import CommitFiles
from debug_gym_core import RequirementError, progress

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

# What servers say that do not give single commits, and what a client says of servers that give files only.
_ONLY_WHOLE = re.compile(r"unadvertised object|dumb http transport does not support")
# What servers say that filter, but give no single objects.
_NO_OBJECTS = re.compile(r"unadvertised object|not our ref")
_NOT_THERE = re.compile(r"not our ref|did not contain|couldn't find remote ref")


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
    if git.has(place, commit):
        return place
    what = f"fetch {name}"
    try:
        with cache.locked(place, lambda: progress.tell(what, f"another process fetches {name}")):
            if not git.has(place, commit):
                cache.forget(place.parent, STALE)
                with cache.making(place, _take_up) as part:
                    _Transfer(name, url, commit, part).run()
    finally:
        progress.tell(what, None)
    return place


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

    def _left(self) -> CommitFiles | None:
        """The files of the commit; None: an earlier transfer got nothing that another can go on from."""
        found = list((self._place / _PACKS).glob("*.idx"))
        for index in found:
            if git.run(self._place, ["verify-pack", str(index)]).returncode != 0:
                index.with_suffix(".pack").unlink()
                index.unlink()
        files = CommitFiles.of(self._place, self._commit) if found else None
        if found and (files is None or git.run(self._place, ["rev-list", "--quiet", self._commit]).returncode != 0):
            self._empty()
            return None
        return files

    def _trees(self) -> CommitFiles | None:
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
        files = CommitFiles.of(self._place, self._commit)
        if files is None:
            raise self._no_commit()
        return files

    def _files(self, files: CommitFiles, most: int) -> bool:
        """Fetch files, in batches that get larger or smaller until they take the time that they should.

        Returns:
            whether they have come; the server may not give single objects
        """
        listed = git.run(self._place, ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]).stdout
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
        if not git.has(self._place, self._commit):
            raise self._no_commit()
        for arguments in (
            ["rev-list", "--quiet", "--objects", self._commit],
            ["update-ref", "refs/heads/fetched", self._commit],
        ):
            done = git.run(self._place, arguments)
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
            git.without_user(
                f"{self._name} cannot be fetched from {self._url}: {reason}; say benchmark.source=DIRECTORY (or URL) of"
                " another clone of it"
            )
        )

    def _fetch(self, arguments: Sequence[str], options: Sequence[str] = ()) -> str:
        """Run `git fetch` with options of its configuration, see `_git`."""
        given = [word for option in ("fetch.unpackLimit=1", *options) for word in ("-c", option)]  # packs, no files
        return self._git([*given, "fetch", "--progress", "--no-tags", "--recurse-submodules=no", *arguments])

    def _git(self, arguments: Sequence[str]) -> str:
        """Run git in the directory, tell how far it is, and return what it complained of."""
        return git.follow(self._place, arguments, self._heard)

    def _heard(self, line: str) -> None:
        self._receiving = self._receiving or line.startswith("Receiving objects")
        come = f"{self._come[0]} of {self._come[1]} files, " if self._come else ""
        now = f"{come}{line.removeprefix('remote: ').strip()}"
        progress.tell(f"fetch {self._name}", f"fetching {self._name}: {now}")
