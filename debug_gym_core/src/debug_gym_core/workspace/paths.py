"""Where the paths that an agent names lead, and what is refused of them."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from debug_gym_core.errors import ActionError
from debug_gym_core.sandbox.terminal import ROOT
from debug_gym_core.workspace.lines import encode, shown

if TYPE_CHECKING:
    from debug_gym_core.sandbox.answers import Entry
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.workspace.rules import Rules

LONGEST = 4096
"""Characters that a path may have; no file system takes more."""


class Paths:
    """The paths of one live workspace, under its rules."""

    def __init__(self, session: Session, rules: Rules, files: Callable[[], Iterable[str]]) -> None:
        """Find out where the workspace is.

        Args:
            session: the sandbox
            rules: what is ignored and read-only
            files: tells which files there are, as far as is known, to name those that may be meant
        """
        self._session = session
        self._rules = rules
        self._files = files
        self._root = session.realpath(".")

    def locate(self, path: str) -> tuple[str, Entry | None]:
        """Where a path leads, and what is there.

        Args:
            path: need not exist

        Returns:
            the path without links, relative to the root (`.` for the root itself), and the entry; None: nothing

        Raises:
            ActionError: it leads outside, or to something that is ignored
        """
        name = self.named(path)
        with self.refusals(name):
            real = self.real(name)
            entry = self._session.stat(real)
        if entry is not None and entry.kind == "directory" and real != "." and self._rules.ignored(real, True):
            raise self._is_ignored(name)
        return real, entry

    def named(self, path: str) -> str:
        """A path relative to the root by its text alone.

        Args:
            path: relative to the root, or absolute; need not exist

        Raises:
            ActionError: it is no path, leads outside, or is ignored
            TypeError: it is not given text
        """
        if not isinstance(path, str):
            raise TypeError(f"a path is text, relative to the repository's root, not {path!r:.80}")
        if not path or "\0" in path:
            raise ActionError("the path is empty" if not path else "a path cannot hold a NUL character")
        if len(path) > LONGEST:
            raise ActionError(f"the path {shown(path[:60])}... is too long: it has {len(path)} characters")
        encode(path)
        full = posixpath.normpath(posixpath.join(ROOT, re.sub(r"/+", "/", path)))
        name = self._session.names.relative(full)
        if name is None:
            raise ActionError(f"{shown(path)} is outside the workspace {ROOT}; that is refused")
        if name != "." and self._rules.ignored(name):
            raise self._is_ignored(name)
        return name

    def checked(self, name: str, absolute: str) -> str:
        """The path, relative to the root, that a name was found to lead to.

        Args:
            name: as `named` gives it
            absolute: where it leads in the sandbox, links resolved

        Raises:
            ActionError: that is outside, or ignored
        """
        if absolute == self._root:
            return "."
        if not absolute.startswith(self._root.rstrip("/") + "/"):
            raise ActionError(f"{shown(name)} leads out of the workspace through a symbolic link; that is refused")
        real = absolute[len(self._root.rstrip("/")) + 1 :]
        if real != name and self._rules.ignored(real):
            raise self._is_ignored(name)
        return real

    def real(self, name: str) -> str:
        """The path that a name really leads to, as the sandbox knows it.

        Args:
            name: as `named` gives it

        Raises:
            ActionError: that is outside, or ignored
        """
        return self.checked(name, self._session.realpath(name))

    def _is_ignored(self, name: str) -> ActionError:
        return ActionError(f"{shown(name)} is ignored in this task: it can be neither shown nor changed")

    @contextmanager
    def refusals(self, name: str) -> Iterator[None]:
        """Turn what the sandbox's file system refuses into words for the agent.

        Args:
            name: what the words call the file

        Raises:
            ActionError: it refused something
        """
        try:
            yield
        except FileNotFoundError as error:
            raise ActionError(f"there is no file {shown(name)}{self._meant(name)}") from error
        except IsADirectoryError as error:
            raise ActionError(f"{shown(name)} is a directory, not a file") from error
        except (ConnectionError, TimeoutError):
            raise
        except OSError as error:
            raise ActionError(f"{shown(name)}: {error.strerror or error}") from error

    def _meant(self, path: str) -> str:
        """Which files somebody may have meant; else how one is named."""
        known = [p for p in self._files() if not self._rules.ignored(p)]
        same = [p for p in known if posixpath.basename(p) == posixpath.basename(path) and p != path]
        near = same or difflib.get_close_matches(path, [p for p in known[:5000] if p != path], n=3)
        if near:
            return f"; did you mean {' or '.join(map(shown, near[:3]))}?"
        code = [p for p in known if p.endswith(".py")] or known
        return f"; paths count from the repository's root, as in {shown(min(code))}" if code else ""

    def must_be_editable(self, real: str, is_dir: bool = False) -> None:
        """Refuse to change what is read-only.

        Args:
            real: relative to the root, without links
            is_dir: whether it is a directory

        Raises:
            ActionError: it is
        """
        if self._rules.readonly(real, is_dir):
            raise ActionError(f"{shown(real)} is read-only in this task: it cannot be changed")
