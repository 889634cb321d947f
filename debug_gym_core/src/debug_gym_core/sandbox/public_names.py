"""Under which names programs know the workspace: its public one, its real one, and where the repository lay before."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from pathlib import Path

from debug_gym_core.errors import SandboxError
from debug_gym_core.sandbox.terminal import ROOT


class PublicNames:
    """The names of the workspace in one sandbox, of which `/testbed` is what everybody is shown.

    An editable install knows the repository by its place on the host, from where a link leads to the workspace: its
    modules have that place in their tracebacks.
    """

    def __init__(
        self, root: str, source: Path | None, realpath: Callable[[str], str], commands: Callable[[], int]
    ) -> None:
        """Know the names; whether the link is there is asked when a text or a path has the name.

        Args:
            root: the workspace's real directory in the sandbox
            source: where the repository lies on the host; None: nowhere
            realpath: where a path of the sandbox leads
            commands: how many were started so far; only another one can put something else in the link's place
        """
        self._root = root
        self._realpath = realpath
        self._commands = commands
        self._known: dict[str, tuple[int, bool]] = {}
        # Once with links on the host resolved, once as it was given: programs may have either.
        names = {} if source is None else dict.fromkeys((os.path.realpath(source), str(source.absolute())))
        self._originals = [name for name in names if name not in ("/", ROOT, root)]

    def mask(self, text: str) -> str:
        """Show the workspace under its public name.

        The original place is masked where a line of a Python file below it is named. Elsewhere it may be a value.

        Args:
            text: what a program printed
        """
        for name in self._originals:
            if name[1:] in text and _pattern(name).search(text) and self._leads_here(name):
                text = _pattern(name).sub(_public, text)
        if self._root == ROOT:
            return text
        above = self._root.removesuffix(ROOT)  # `local` has HOME and TMPDIR beside the workspace
        text = text.replace(self._root, ROOT)
        return text.replace(f"{above}/", "/") if above != self._root else text

    def relative(self, path: str) -> str | None:
        """A path below the workspace, by its text alone; None: it is not.

        Args:
            path: absolute and normalised
        """
        for name in (ROOT, self._root, *self._originals):
            if (path == name or path.startswith(f"{name}/")) and (name in (ROOT, self._root) or self._leads_here(name)):
                return path[len(name) + 1 :] or "."
        return None

    def _leads_here(self, name: str) -> bool:
        """Whether the link is there: a backend may have none, and a program may have put another in its place."""
        commands = self._commands()
        asked, leads = self._known.get(name, (-1, False))
        if asked != commands:
            try:
                leads = self._realpath(name) == self._root
            except (OSError, SandboxError):
                return False
            self._known[name] = commands, leads
        return leads


@functools.lru_cache(maxsize=16)
def _pattern(name: str) -> re.Pattern[str]:
    """The name where it begins the path of a Python file's line; `short` where pytest begins a line with one.

    That may be a way out of its directory by `../`, but not to a name right below the root: `../src` is more often a
    neighbour of the program's directory.
    """
    outwards = r"|(?:\.\./)+" if name.count("/") > 1 else ""
    of_pytest = rf"^(?P<indent>[ \t]*)(?P<short>/{outwards}){re.escape(name[1:])}/(?=[^\s:]{{1,4096}}\.py:\d)"
    anywhere = rf"(?<![\w.-]){re.escape(name)}/(?=[^\s\"':()]{{1,4096}}\.py(?:\", line \d|:\d|\(\d))"
    return re.compile(f"{of_pytest}|{anywhere}", re.MULTILINE)


def _public(match: re.Match[str]) -> str:
    return f"{ROOT}/" if match["short"] is None else match["indent"]
