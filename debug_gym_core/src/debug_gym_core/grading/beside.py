"""What a run of twins has to know of a repository beside the modules with tests."""

from __future__ import annotations

import contextlib
import posixpath
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from debug_gym_core.sandbox.session import Session
from debug_gym_core.workspace.snapshot import Snapshot

HELPERS = 100
"""Modules that help tests at most; a directory of tests with more holds whole programs."""

HELPER_SIZE = 1 << 20
"""Bytes of all of them at most."""

READ = 1000
"""Files beside these in which it is looked for what they say."""

_SAID = re.compile(rb"""['"](?:[\w.]*\.)?([A-Za-z_]\w*)['"]""", re.ASCII)


@dataclass(frozen=True)
class Beside:
    """What stands beside the modules with tests.

    Attributes:
        helpers: texts of modules that help the tests, by path: what they assert, they assert for these
        shadowed: names of modules that the repository has itself: what of Python's has one of them may not be Python's
        said: names that other files of the tests say in a text: they may be replaced there
    """

    helpers: Mapping[str, bytes]
    shadowed: Collection[str]
    said: Collection[str]

    @classmethod
    def of(cls, snapshot: Snapshot, trusted: Sequence[str], tests: Mapping[str, bytes]) -> Beside:
        """What there is in a repository.

        Args:
            snapshot: the pristine repository
            trusted: its files that belong to the tests; directories end in `/`
            tests: the texts of the modules with tests, by path
        """
        helpers = _helpers(snapshot, trusted, tests)
        return cls(helpers, _modules(snapshot), _said(snapshot, trusted, {*tests, *helpers}))

    def reread(self, session: Session) -> Beside:
        """The same with the helpers that lie in a sandbox: others may have been put in their places, or none.

        Args:
            session: the sandbox

        Raises:
            SandboxLost: the sandbox went away
        """
        helpers = {}
        for path in self.helpers:
            with contextlib.suppress(OSError):
                helpers[path] = session.read(path)
        return replace(self, helpers=helpers)


def _helpers(snapshot: Snapshot, trusted: Sequence[str], tests: Mapping[str, bytes]) -> dict[str, bytes]:
    """The modules that these name; of too many to be helpers, those that say what equals what, or anything."""
    directories = tuple(one for one in trusted if one.endswith("/"))
    left = {
        path: posixpath.basename(path).removesuffix(".py").encode()
        for path, member in snapshot.members.items()
        if member.kind == "file" and path.endswith(".py") and path not in tests
        if path.startswith(directories) or path in trusted
    }
    named, texts, found = {b"__init__", b"conftest"}, list(tests.values()), dict[str, bytes]()
    while texts:  # helpers have helpers
        named.update(word for text in texts for word in re.findall(rb"\w+", text))
        more = {path: snapshot.read(path) for path, name in left.items() if name in named and path not in found}
        if found and not _are_helpers(found | more):
            break
        found, texts = found | more, list(more.values())
    if _are_helpers(found):
        return found
    return {path: text for path, text in found.items() if b"def __eq__" in text or b"ANY" in text}


def _are_helpers(texts: Mapping[str, bytes]) -> bool:
    """Whether modules are no more than help tests."""
    return len(texts) <= HELPERS and sum(map(len, texts.values())) <= HELPER_SIZE


def _modules(snapshot: Snapshot) -> frozenset[str]:
    """The names of Python's modules that modules and packages in a repository have as well."""
    parts = {part for path in snapshot.members if path.endswith(".py") for part in path.removesuffix(".py").split("/")}
    return frozenset(part for part in parts if part in sys.stdlib_module_names)


def _said(snapshot: Snapshot, trusted: Sequence[str], known: Collection[str]) -> frozenset[str]:
    """The names that files of the tests say in a text, but for those that are known."""
    directories, files = tuple(one for one in trusted if one.endswith("/")), frozenset(trusted)
    paths = [one for one in snapshot.members if one.endswith(".py") and (one in files or one.startswith(directories))]
    left = [one for one in paths if one not in known and snapshot.members[one].kind == "file"][:READ]
    return frozenset(name.decode() for path in left for name in _SAID.findall(snapshot.read(path)))
