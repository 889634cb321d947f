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

    def __init__(self, root: str, source: Path | None, realpath: Callable[[str], str]) -> None:
        """Know the names; whether the link is there is asked when a text or a path has the name.

        Args:
            root: the workspace's real directory in the sandbox
            source: where the repository lies on the host; None: nowhere
            realpath: where a path of the sandbox leads
        """
        self._root = root
        self._realpath = realpath
        # Once with links on the host resolved, once as it was given: programs may have either.
        names = {} if source is None else dict.fromkeys((os.path.realpath(source), str(source.absolute())))
        self._originals = [name for name in names if name not in ("/", ROOT, root)]

    def mask(self, text: str) -> str:
        """Show the workspace under its public name.

        Args:
            text: what a program printed; of a path with `../` to the original place, what is below the workspace stays
        """
        for name in self._originals:
            if name[1:] in text and self._leads_here(name):
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
        try:
            return self._realpath(name) == self._root
        except (OSError, SandboxError):
            return False


@functools.lru_cache(maxsize=16)
def _pattern(name: str) -> re.Pattern[str]:
    """The name where it is a path's beginning; `short` where pytest gives the path of a file below its directory.

    That is what begins a line and ends in a line's number, and what leads out of that directory by `../`.
    """
    short = r"^[ \t]*/(?=\S+:\d+: )|(?<![\w./-])(?:\.\./)+"
    end = r"(?:(?P<below>/)|(?![\w-]|\.\w))"
    return re.compile(rf"(?:(?P<short>{short})|(?<![\w.-])/){re.escape(name[1:])}{end}", re.MULTILINE)


def _public(match: re.Match[str]) -> str:
    if match["short"] is None:
        return f"{ROOT}{match['below'] or ''}"
    indent = match["short"].rstrip("./")
    return indent + ("" if match["below"] else ".")
