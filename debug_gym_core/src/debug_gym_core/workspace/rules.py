"""Which files of a task an agent may see and change: `.debugignore`, `.debugreadonly`, patterns of the config.

The syntax and meaning are exactly `.gitignore`'s: files in any directory, the nearest one first, the last matching
pattern of a file decides, `!` takes back, and nothing below an ignored directory can be taken back.
https://git-scm.com/docs/gitignore
"""

from __future__ import annotations

import posixpath
import re
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from debug_gym_core.sandbox.patterns import Patterns

if TYPE_CHECKING:
    from debug_gym_core.workspace.snapshot import Snapshot

IGNORE_FILE = ".debugignore"
READONLY_FILE = ".debugreadonly"

CACHES = (
    ".git",
    "__pycache__/",
    "*.py[co]",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".hypothesis/",
    ".tox/",
    ".nox/",
)
"""What programs leave behind: never listed, shown, edited or part of a patch."""


class _Layer:
    """Pattern files of one name in all directories, and patterns that come from outside."""

    def __init__(self, files: Mapping[str, Patterns], outside: Patterns) -> None:
        self._files = files
        self._outside = outside
        self._directories: dict[str, bool] = {"": False}
        self._lock = threading.Lock()

    def covers(self, path: str, is_dir: bool) -> bool:
        """Whether an entry, or a directory above it, is matched."""
        parent = posixpath.dirname(path)
        if not path or self._covers_directory(parent):
            return bool(path)
        return self._says(path, is_dir)

    def portable(self) -> dict[str, Any]:
        """All patterns as JSON types: `outside`, and `files` by directory."""
        return {"outside": list(self._outside), "files": {name: list(lines) for name, lines in self._files.items()}}

    def _covers_directory(self, path: str) -> bool:
        ahead = []  # directories can be deeper than the stack
        while (known := self._directories.get(path)) is None:
            ahead.append(path)
            path, below = posixpath.dirname(path), path
            if path == below:
                raise ValueError(f"{path} is no path below the repository")
        for directory in reversed(ahead):
            known = known or self._says(directory, True)
            with self._lock:
                if len(self._directories) > 100_000:
                    self._directories = {"": False}
                self._directories[directory] = known
        return known

    def _says(self, path: str, is_dir: bool) -> bool:
        """The verdict on one entry: what comes from outside first, then the nearest file."""
        verdict = self._outside.match(path, is_dir)
        directory = path
        while verdict is None and directory and self._files:
            directory = posixpath.dirname(directory)
            patterns = self._files.get(directory)
            if patterns is not None:
                verdict = patterns.match(path[len(directory) + 1 if directory else 0 :], is_dir)
        return bool(verdict)


class Rules:
    """Which entries of a workspace are ignored and which are read-only.

    The rules are those of the pristine repository: what an agent does to its rule files changes nothing.
    """

    def __init__(
        self,
        ignore_files: Mapping[str, bytes] | None = None,
        readonly_files: Mapping[str, bytes] | None = None,
        *,
        ignore: Iterable[str] = (),
        readonly: Iterable[str] = (),
    ) -> None:
        """Compile all patterns.

        Args:
            ignore_files: content of each `.debugignore` by its directory (empty for the root)
            readonly_files: content of each `.debugreadonly`
            ignore: patterns of the task and the config; they come before those of files
            readonly: likewise

        Raises:
            UsageError: one of `ignore` or `readonly` is no pattern
        """
        self._ignored = _Layer(_compile(ignore_files), Patterns((*CACHES, *ignore), lenient=False))
        own = (IGNORE_FILE, READONLY_FILE)
        self._readonly = _Layer(_compile(readonly_files), Patterns((*own, *readonly), lenient=False))

    @classmethod
    def of(cls, snapshot: Snapshot, ignore: Iterable[str] = (), readonly: Iterable[str] = ()) -> Rules:
        """The rules of a pristine repository; virtual environments that its snapshot left out are ignored.

        Args:
            snapshot: where the rule files are read from
            ignore: patterns of the task and the config
            readonly: likewise

        Raises:
            UsageError: one of `ignore` or `readonly` is no pattern
        """
        files: dict[str, dict[str, bytes]] = {IGNORE_FILE: {}, READONLY_FILE: {}}
        for path, member in snapshot.members.items():
            directory, name = posixpath.split(path)
            if name in files and member.kind == "file":
                files[name][directory] = snapshot.read(path)
        environments = [_literal(path) for path in snapshot.environments]
        return cls(files[IGNORE_FILE], files[READONLY_FILE], ignore=(*environments, *ignore), readonly=readonly)

    def ignored(self, path: str, is_dir: bool = False) -> bool:
        """Whether no tool may show, list or change an entry.

        Args:
            path: relative to the root, normalised; need not exist
            is_dir: whether it is a directory
        """
        return self._ignored.covers(path, is_dir)

    def ignore_patterns(self) -> dict[str, Any]:
        """What is ignored, as JSON types, for the guest, which then need not go below an ignored directory."""
        return self._ignored.portable()

    def readonly(self, path: str, is_dir: bool = False) -> bool:
        """Whether an entry may be shown but not changed.

        Args:
            path: relative to the root, normalised; need not exist
            is_dir: whether it is a directory
        """
        return self._readonly.covers(path, is_dir)


def _literal(directory: str) -> str:
    """The pattern of one directory and nothing else."""
    return "/" + re.sub(r"([][*?!#\\ ])", r"\\\1", directory) + "/"


def _compile(files: Mapping[str, bytes] | None) -> dict[str, Patterns]:
    """Read pattern files as git does: UTF-8 with or without BOM, any line ends."""
    compiled = {}
    for directory, data in (files or {}).items():
        text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
        compiled["" if directory == "." else directory] = Patterns(line.removesuffix("\r") for line in text.split("\n"))
    return compiled
