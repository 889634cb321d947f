"""The files of a commit, of which some may be missing here, and which of these to ask a server for next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from pathlib import Path

from debug_gym_benchmarks import git


class CommitFiles:
    """The files of a commit, with the directories that they are in.

    Attributes:
        names: of the objects
    """

    def __init__(self, entries: Sequence[tuple[str, str, bytes]]) -> None:
        self._entries = entries
        self.names = frozenset(name for kind, name, _ in entries if kind == "blob")

    @classmethod
    def of(cls, repository: Path, commit: str) -> CommitFiles | None:
        """The files of a commit in a repository; None: it lacks the commit, or trees of it."""
        done = git.run(repository, ["ls-tree", "-r", "-t", "-z", "--full-tree", commit])
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
