"""Which modules a clean run loads as they are before any tested code runs; `runner.given` does it."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from debug_gym_core.workspace.snapshot import Member


@dataclass(frozen=True)
class Given:
    """Modules by their paths in the repository.

    Attributes:
        tests: those of tests that count, and what configures pytest: as pytest compiles them
        helpers: other modules of the tests: as Python does
    """

    tests: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, members: Mapping[str, Member], tests: Collection[str], directories: Iterable[str], changed: Iterable[str]
    ) -> Given:
        """Find them in a pristine repository.

        Args:
            members: what it holds
            tests: files with tests that count, and that configure pytest
            directories: in which all belongs to the tests
            changed: what is not as it was
        """
        places, left_out = tuple(f"{one}/" for one in directories), frozenset(changed)
        modules = [
            path
            for path, member in sorted(members.items())
            if member.kind == "file"
            and path.endswith(".py")
            and path not in left_out
            # Of a name that no module can have, or that a package has too, there is another way to load it.
            and posixpath.basename(path).count(".") == 1
            and path.removesuffix(".py") not in members
        ]
        helpers = [path for path in modules if path.startswith(places) and path not in tests]
        return cls(tuple(path for path in modules if path in tests), tuple(helpers))
