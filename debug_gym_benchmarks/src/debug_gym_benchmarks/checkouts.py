"""Checkouts that benchmarks are read from: a local one, or a clone of one commit in the cache."""

from __future__ import annotations

import abc
import functools
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from debug_gym_benchmarks import cache, clones, git
from debug_gym_core import BenchmarkSettings, UsageError
from debug_gym_core.places import expanded
from debug_gym_core.sandbox.terminal import above_of
from debug_gym_core.workspace.lines import shown
from debug_gym_core.workspace.snapshot import FileState

_URL = re.compile(r"[a-z][a-z0-9+.-]*://|[\w.-]+@[\w.-]+:", re.IGNORECASE)


@dataclass(frozen=True)
class Published:
    """Where files are published, and at which commit they are known.

    Attributes:
        name: what messages call it, `owner/name`
        url: what git clones
        commit: its full name
    """

    name: str
    url: str
    commit: str


class CheckoutSettings(BenchmarkSettings):
    """What the `benchmark` section says of a benchmark that is read from a checkout.

    Attributes:
        source: a checkout, or a git URL; null: the known commit is fetched
        revision: the commit
        mode: visible, as published: the tests are in the workspace; hidden: only grading has them
    """

    source: str | None = None
    revision: str | None = None
    mode: Literal["visible", "hidden"] = "visible"


def open_checkout(published: Published, source: str | None = None, revision: str | None = None) -> Checkout:
    """The files of a repository.

    A local source without a revision is taken as it is, whatever commit that is: the files of a work tree as they
    lie there, of a bare repository those of its HEAD.

    Args:
        published: where they are from when there is no source
        source: a work tree, a bare git directory, or a git URL
        revision: the commit that a work tree must be at, that is read of a bare repository, or that is fetched; None:
            the one that is known

    Raises:
        UsageError: there is no such source, or it does not have the revision
        RequirementError: the repository cannot be fetched; git is not installed
    """
    if source is not None and not _URL.match(source):
        return _local(published.name, source, revision)
    commit = revision or published.commit
    if not git.COMMIT.fullmatch(commit):
        raise UsageError(f"benchmark.revision: {revision!r} is not the full name of a commit (40 hexadecimal digits)")
    url = source or published.url
    return GitFiles(published.name, clones.fetch(published.name, url, commit), commit, url)


class Checkout(abc.ABC):
    """The files of a repository, read only.

    Attributes:
        name: the repository's, `owner/name`
        place: what messages call where the files are
    """

    name: str
    place: str

    @abc.abstractmethod
    def children(self, directory: str) -> list[str]:
        """The names in a directory, sorted.

        Raises:
            UsageError: there is no such directory
        """

    @abc.abstractmethod
    def paths(self, below: str = "") -> list[str]:
        """The paths of all files and links in a directory and below, sorted.

        Raises:
            UsageError: there is no such directory
        """

    @abc.abstractmethod
    def states(self, paths: Iterable[str]) -> dict[str, FileState]:
        """Files and links by path; those that are not there are left out."""

    def read(self, path: str) -> bytes:
        """A file's content.

        Raises:
            UsageError: there is no such file
        """
        found = self.states([path])
        if path not in found:
            raise self.lacks(path)
        return found[path].data

    def export(self, into: Path, below: str = "") -> None:
        """Write all files and links of a directory and below into a directory, under their paths below it.

        Raises:
            UsageError: there is no such directory
            OSError: they cannot be written
        """
        for path, state in self.states(self.paths(below)).items():
            cache.write(into / Path(path).relative_to(below), state)

    def lacks(self, path: str) -> UsageError:
        """The error that something is not there."""
        return UsageError(f"benchmark.source: there is no {path} in {self.place}; is that {self.name}?")

    def lacks_field(self, path: str, field: str, layout: str, known: Published) -> UsageError:
        """The error that a file does not say what it says in the layout that is known.

        Args:
            path: of the file
            field: what it should say
            layout: whose layout it is, as in `Exercism's`
            known: where the layout is that
        """
        return UsageError(
            f"benchmark.source: {path} in {self.place} has not the field {field} as {layout} layout has it;"
            f" known is commit {known.commit[:12]}"
        )


class WorkTree(Checkout):
    """Files as they lie in a directory."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.place = str(directory)
        self._directory = directory

    def children(self, directory: str) -> list[str]:
        """See `Checkout`."""
        return sorted(path.name for path in self._inside(directory).iterdir() if path.name != ".git")

    def paths(self, below: str = "") -> list[str]:
        """See `Checkout`."""
        self._inside(below)
        found = []
        for top, directories, files in os.walk(self._directory / below):
            links = [name for name in directories if (Path(top) / name).is_symlink()]
            directories[:] = [name for name in directories if name not in (".git", "__pycache__", *links)]
            found += [str((Path(top) / name).relative_to(self._directory)) for name in (*files, *links)]
        return sorted(found)

    def states(self, paths: Iterable[str]) -> dict[str, FileState]:
        """See `Checkout`."""
        there = {path: self._directory / path for path in paths}
        return {
            path: cache.read(file)
            for path, file in there.items()
            if self._has(file.parent) and (file.is_symlink() or file.is_file())
        }

    def _inside(self, directory: str) -> Path:
        """A directory of it, and not one outside that a link leads to.

        Raises:
            UsageError: there is no such directory
        """
        found = self._directory / directory
        if not (found.is_dir() and self._has(found)):
            raise self.lacks(directory)
        return found

    def _has(self, directory: Path) -> bool:
        """Whether a directory lies in it, links resolved: they may lead to anything of the machine."""
        return Path(os.path.realpath(directory)).is_relative_to(os.path.realpath(self._directory))


class GitFiles(Checkout):
    """The files of a commit, read from a git directory."""

    def __init__(self, name: str, directory: Path, commit: str, place: str) -> None:
        self.name = name
        self.place = f"commit {commit[:12]} of {git.without_user(place)}"
        self.commit = commit
        self._directory = directory

    def children(self, directory: str) -> list[str]:
        """See `Checkout`."""
        return sorted({path.removeprefix(f"{directory}/").partition("/")[0] for path in self.paths(directory)})

    def paths(self, below: str = "") -> list[str]:
        """See `Checkout`."""
        found = [path for path in self._entries if not below or path.startswith(f"{below}/")]
        if not found:
            raise self.lacks(below)
        return sorted(found)

    def states(self, paths: Iterable[str]) -> dict[str, FileState]:
        """See `Checkout`."""
        found = {path: self._entries[path] for path in paths if path in self._entries}
        contents = self._contents([name for _, name in found.values()])
        return {
            path: FileState(data, 0o755 if mode == "100755" else 0o644, "link" if mode == "120000" else "file")
            for (path, (mode, _)), data in zip(found.items(), contents, strict=True)
        }

    @functools.cached_property
    def _entries(self) -> dict[str, tuple[str, str]]:
        """Mode and name of each file and link, by path."""
        entries = {}
        for line in self._git(["ls-tree", "-r", "-z", "--full-tree", self.commit]).split(b"\0")[:-1]:
            about, _, path = line.partition(b"\t")
            mode, kind, name = about.decode().split()
            if kind == "blob":  # and not another repository
                entries[os.fsdecode(path)] = (mode, name)
        for file in entries:
            if not cache.is_plain(file) or any(above in entries for above in above_of(file)):
                raise UsageError(
                    f"benchmark.source: {self.place} has a file {shown(file)}, which would lead out of its directory;"
                    " that is refused"
                )
        return entries

    def _contents(self, names: list[str]) -> list[bytes]:
        output = self._git(["cat-file", "--batch"], "".join(f"{name}\n" for name in names).encode())
        found, position = [], 0
        for name in names:
            header = output[position : output.find(b"\n", position)]
            if not header.startswith(name.encode()) or not header.split()[-1].isdigit():
                raise UsageError(f"{self._directory} is damaged ({header.decode(errors='replace')}); remove it")
            start = position + len(header) + 1
            size = int(header.split()[-1])
            found.append(output[start : start + size])
            position = start + size + 1
        return found

    def _git(self, arguments: list[str], stdin: bytes = b"") -> bytes:
        done = git.run(self._directory, arguments, stdin)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise UsageError(f"{self._directory} cannot be read by git: {said[-1] if said else 'no reason given'}")
        return done.stdout


def _local(name: str, source: str, revision: str | None) -> Checkout:
    """A work tree or a bare git directory."""
    directory = expanded(Path(source)).absolute()
    if not directory.is_dir():
        raise UsageError(
            f"benchmark.source: there is no directory {directory}; say a checkout of {name}, a bare git directory or a"
            " git URL"
        )
    if (directory / "HEAD").is_file() and (directory / "objects").is_dir():
        return GitFiles(name, directory, _commit(directory, revision or "HEAD"), str(directory))
    if revision is not None:
        wanted, there = _commit(directory, revision), _commit(directory, "HEAD")
        if wanted != there:
            raise UsageError(
                f"benchmark.revision: {directory} is at {there[:12]}, not at {revision}; check it out there"
                f" (git checkout {revision}), or leave benchmark.revision out"
            )
    return WorkTree(name, directory)


def _commit(directory: Path, revision: str) -> str:
    """The full name of a commit in a local repository."""
    done = git.run(directory, ["rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"])
    found = done.stdout.decode().strip()
    if done.returncode != 0 or not git.COMMIT.fullmatch(found):
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = f" ({said[-1]})" if said else ""
        raise UsageError(f"benchmark.revision: {directory} has no commit {revision}{why}")
    return found
