"""Names that only look as if `tempfile` had drawn them: somebody wrote them, in a file of the repository.

The files are searched once a run has ended, and only where it showed such a name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from debug_gym_core.errors import SandboxError
from debug_gym_core.grading.masking import DRAWN, DrawnNames
from debug_gym_core.sandbox.grep import Query
from debug_gym_core.sandbox.session import Session
from debug_gym_core.workspace.rules import Rules

SECONDS = 5.0
"""For which the files are searched at most."""

MOST = 1000
"""Names that are looked for, and lines that are looked at which have one."""

CHARACTERS = 1_000_000
"""Of these lines."""

PASSED_OVER = (".venv/", "venv/", "site-packages/", "node_modules/")
"""What is not of the repository, besides caches."""

Shown = TypeVar("Shown")


def numbered(show: Callable[[DrawnNames], Shown], session: Session, since: int | None) -> Shown:
    """What a run showed, with the names numbered that `tempfile` drew, and those left as they are that were written.

    Args:
        show: masks it, the same way each time
        session: where the repository is
        since: when the run began, in nanoseconds; what has changed from then on may hold what was drawn. None: nobody
            reads what is shown, no file is searched
    """
    names = DrawnNames()
    shown = show(names)
    written = _written(session, names.met, since) if names.met and since is not None else frozenset()
    return show(DrawnNames(written)) if written else shown


def _written(session: Session, names: Sequence[str], since: int) -> frozenset[str]:
    """Which names stand in files that have not changed, as far as they can be searched in time."""
    names = names[:MOST]
    start = names[0] if len(names) == 1 else "tmp"  # plain text first: files and lines without it take no time
    pattern = f"{start}(?:{'|'.join(name[len(start) :] for name in names)})"
    query = Query(pattern, lines=MOST, characters=CHARACTERS, width=CHARACTERS, timeout=SECONDS)
    known: set[str] = set()
    try:
        for file in session.grep(".", query, Rules(ignore=PASSED_OVER).ignore_patterns()).files:
            here = {name for line in file.lines for name in DRAWN.findall(line.text)}.intersection(names) - known
            if here and (entry := session.stat(file.path)) is not None and entry.mtime_ns < since:
                known |= here
    except (OSError, SandboxError):
        return frozenset()
    return frozenset(known)
