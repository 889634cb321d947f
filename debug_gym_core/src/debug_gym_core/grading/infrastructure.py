"""Test infrastructure: what of an agent's changes the clean grading does not take over.

Whoever may change how tests are found, configured or reported needs to fix nothing. So the clean grading takes over an
agent's changes except those to

- read-only and ignored files,
- the task's tests: files with tests that count, files with test names (but for those that there were and that pytest
  finds no test in, such as `jinja2/tests.py`, where they lie beside none), directories named `test` or `tests` that
  hold tests that count, and what is no Python in pristine directories such as `test_data`; of a module that holds
  tests as doctests alone, changes to these doctests (see `doctests`),
- pytest's configuration: `conftest.py`, `pytest.ini` and its kin; of `tox.ini`, `setup.cfg` and `pyproject.toml` only
  pytest's sections,
- what Python runs by itself at its start (`sitecustomize.py`, `*.pth`), compiled files, installed metadata (which may
  name pytest plugins),
- new modules that shadow the standard library, pytest, what pytest needs, its plugins, or what is installed,
- a new `__init__.py` that makes a package of a directory with test files, or of one that it is in,
- files and links in place of directories that are imported from,
- files that the entrypoint, pytest's configuration or the repository's own distribution (unless that is one for pytest,
  or the gold patch changes them) names as plugins, configuration or scripts, and the Makefile where it is `make`,
- where links lead that are any of these by their names (what is a test's by its place alone may lead to the product),
  of a directory what is loaded by itself.

A task's `allowed` patterns (with .gitignore's syntax) take files out of this, except read-only and ignored ones.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pathspec import GitIgnoreSpec

from debug_gym_core.grading import pytest_sections
from debug_gym_core.grading.build_files import build_files, named_files
from debug_gym_core.grading.counted_files import CountedFiles
from debug_gym_core.grading.entry_points import OWN_PLUGIN
from debug_gym_core.grading.links import above, leads_to, way
from debug_gym_core.grading.pytest_sections import shared_name
from debug_gym_core.grading.pytest_settings import PytestSettings
from debug_gym_core.grading.python_names import MODULE_SUFFIXES, loaded_of, module_name, runs_itself
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import FileState, Snapshot

TEST_DATA = re.compile(r"tests?([-_.]?(data|files?|fixtures?|cases|resources|inputs?))?", re.IGNORECASE)
"""Names of directories whose files tests read, unless they are packages."""

PYTEST_FILES = frozenset({"conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"})

# fmt: off
MACHINERY = frozenset({
    "pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "exceptiongroup", "tomli", "attr",
    "attrs", "pygments", "colorama", "toml", "six", "more_itertools", "atomicwrites", "wcwidth", "pathlib2", "zipp",
    "importlib_metadata", "typing_extensions", "xdist", "execnet", "hypothesis", "_hypothesis_pytestplugin",
    "_hypothesis_globals", "mock", "coverage", "unittest2", "nose",
})
# fmt: on
"""Modules beside the standard library's that must come from where they are installed; so do all `pytest_*`."""


@dataclass(frozen=True)
class Filtered:
    """An agent's changes, divided.

    Attributes:
        kept: what the clean grading takes over; None for a deleted file
        dropped: why not, in a few words, for each other path
    """

    kept: Mapping[str, FileState | None]
    dropped: Mapping[str, str]


class Infrastructure:
    """Knows a task's test infrastructure, from its pristine repository alone.

    Attributes:
        doctests: those that count
        elsewhere: files of tests whose ids do not say which it is by a path from the root
    """

    def __init__(
        self,
        snapshot: Snapshot,
        rules: Rules,
        entrypoint: str,
        *,
        tests: Iterable[str] = (),
        test_files: Iterable[str] = (),
        allowed: Sequence[str] = (),
        installed: Iterable[str] = (),
        judged: bool = False,
        gold_patch: bytes | None = None,
    ) -> None:
        """Find out what belongs to it.

        Args:
            snapshot: the pristine repository
            rules: which files are read-only and ignored
            entrypoint: the command that runs the tests
            tests: ids of the tests that count
            test_files: paths of more files that belong to them, in the repository or not
            allowed: patterns of what the agent may change all the same
            installed: names of further top-level modules that must not be shadowed
            judged: whether a judge of the task's own runs the tests, which may use git
            gold_patch: a right fix: plugins that it changes are what is to be fixed
        """
        self._judged = judged
        self._members = snapshot.members
        self._snapshot = snapshot
        self._rules = rules
        self._allowed = GitIgnoreSpec.from_lines(allowed)
        parsed = Entrypoint.parse(entrypoint)
        self._pytest = PytestSettings(self._members, self._text, parsed, gold_patch)
        self._counted = CountedFiles(
            self._members, self._text, snapshot.state, self._pytest.has_test_name, tests, test_files
        )
        self.doctests, self.elsewhere = self._counted.doctests, self._counted.elsewhere
        self._build_files = tuple(build_files(parsed))
        self._named = frozenset(named_files(parsed, self._members)) | self._pytest.plugin_files
        named = {*installed, *(one.partition(".")[0] for one in self._pytest.plugins)}
        self._protected_modules = MACHINERY | sys.stdlib_module_names | named
        self._shared, self._led = self._behind_links()
        self._package_places = frozenset(self._package_directories())
        self._root_places = frozenset(place for root in self._pytest.roots for place in (root, *above(root))) - {""}

    def filter(self, changes: Mapping[str, FileState | None]) -> Filtered:
        """Divide an agent's changes.

        Args:
            changes: the new state of each changed path, None for a deleted one
        """
        kept: dict[str, FileState | None] = {}
        dropped: dict[str, str] = {}
        for path, state in sorted(changes.items()):
            reason = self.reason(path)
            if reason is None and state is not None:
                reason = self._replaces_directory(path) or self._replaces_root(path)
            if reason is None and not self._is_allowed(path):
                reason = self.doctests.reason(path, state)
            if reason is not None:
                dropped[path] = reason
                continue
            shared = shared_name(path) or self._shared.get(path)
            if self._is_allowed(path) or not shared:
                kept[path] = state
                continue
            restored, why = pytest_sections.with_pristine(shared, state, self._text(path))
            if why:
                dropped[path] = why
            if restored is not pytest_sections.SAME:
                kept[path] = restored  # type: ignore[assignment]
        for path in [path for path, state in kept.items() if state is not None and self._lies_in_file(path, kept)]:
            del kept[path]
            dropped[path] = "it lies in what is restored as a file"
        return Filtered(kept, dropped)

    def reason(self, path: str) -> str | None:
        """Why a change of a path is not taken over; None: it is (of a file with sections, what is not pytest's).

        Args:
            path: relative to the root
        """
        if self._rules.readonly(path):
            return "it is read-only"
        if self._rules.ignored(path):
            return "it is ignored"
        if self._is_allowed(path):
            return None
        return self._infrastructure(path)

    def may_count(self, path: str, *, fixed: bool) -> bool:
        """Whether there can be a right fix of which a change of a path is taken over.

        Args:
            path: relative to the root
            fixed: whether a right fix is known: where it changes the repository's own plugins, these count
        """
        why = self.reason(path)
        return why is None or (fixed and why == OWN_PLUGIN)

    def trusted(self, kept: Iterable[str] = ()) -> list[str]:
        """The files that may take part in how tests run; directories end in `/`.

        Args:
            kept: changed files; those that are allowed are trusted too
        """
        directories = [f"{one}/" for one in sorted(self._counted.directories)]
        files = [
            path
            for path, member in self._members.items()
            if member.kind == "file"
            and path.endswith(".py")
            and not path.startswith(tuple(directories))
            and (self._infrastructure(path) or self._is_allowed(path))
        ]
        return directories + files + [one for one in kept if one not in self._members and self._is_allowed(one)]

    def test_files(self) -> frozenset[str]:
        """The pristine files that hold tests that count."""
        return self._counted.paths & self._members.keys()

    def test_paths(self) -> dict[str, str]:
        """The paths by which they are found, and of each the pristine file: another one where links lead there."""
        return self._counted.ends()

    def test_modules(self) -> dict[str, str]:
        """The same without those that hold them as doctests alone."""
        doctests = self.doctests.modules()
        return {one: end for one, end in self.test_paths().items() if one not in doctests}

    # What is what

    def _is_allowed(self, path: str) -> bool:
        return self._allowed.match_file(path)

    def _infrastructure(self, path: str) -> str | None:
        name = posixpath.basename(path)
        if why := self._configures(path):
            return why
        counts = path in self._counted.paths and path not in self.doctests
        if counts or (self._pytest.has_test_name(path) and not self._counted.is_product(path)):
            return "it is a test file"
        if any(path == one or path.startswith(f"{one}/") for one in self._counted.directories):
            return "it belongs to the tests"
        if not name.endswith(".py") and any(map(self._holds_data, above(path))):
            return "it is the tests' data"
        if why := self._runs_itself(path):
            return why
        if not self._led.isdisjoint((path, *above(path))):
            return "a link to it tells how the tests are run"
        if module_name(name) == "__init__" and posixpath.dirname(path) in self._package_places:
            return "it would rename the modules of the tests"
        if self._shadows_tests(path):
            return "it shadows a test file"
        if self._shadows(path):
            return "it shadows an installed module"
        return None

    def _configures(self, path: str) -> str | None:
        *directories, name = path.split("/")
        if name in PYTEST_FILES or "conftest" in (*directories, module_name(name)):
            return "it configures pytest"
        if self._judged and name == ".gitattributes":
            return "git reads and writes the files of the tests by it"
        return None

    def _runs_itself(self, path: str) -> str | None:
        if why := runs_itself(path):
            return why
        if path in self._pytest.own_plugin_files:
            return OWN_PLUGIN
        if path in self._named or any(fnmatch.fnmatchcase(posixpath.basename(path), one) for one in self._build_files):
            return "the way the tests are run names it"
        return None

    def _holds_data(self, directory: str) -> bool:
        there = directory in self._members and posixpath.join(directory, "__init__.py") not in self._members
        return there and TEST_DATA.fullmatch(posixpath.basename(directory)) is not None

    def _shadows(self, path: str) -> bool:
        """Whether a path is a new top-level module or package with the name of one that must not be shadowed."""
        root, name = posixpath.split(path)
        if module_name(name) == "__init__":
            root, name = posixpath.split(root)
        module = module_name(name)
        if module is None or root not in self._pytest.roots:
            return False
        if module not in self._protected_modules and not module.startswith(("pytest_", "_pytest")):
            return False
        prefix = posixpath.join(root, module)
        return prefix not in self._members and f"{prefix}.py" not in self._members

    def _shadows_tests(self, path: str) -> bool:
        """Whether a path belongs to a package, or is a compiled module, of the name of a file of the tests."""
        directory, name = posixpath.split(path)
        module = module_name(name)
        shadowed = [f"{posixpath.join(directory, module)}.py"] if module else []
        shadowed += [f"{one}.py" for one in (directory, *above(directory)) if one]
        there = [one for one in shadowed if one != path and one in self._members]
        return any(one in self.doctests or self._infrastructure(one) for one in there)

    def _replaces_directory(self, path: str) -> str | None:
        """Why a file or link must not take the place of a pristine directory."""
        member = self._members.get(path)
        if member is None or member.kind != "directory":
            return None
        inside = (one for one in self._members if one.startswith(f"{path}/"))
        restored = (self.reason(one) or (one in self.doctests and not self._is_allowed(one)) for one in inside)
        return "it takes the place of tests" if any(restored) else None

    def _replaces_root(self, path: str) -> str | None:
        """Why a file (a zip file can be imported from) or link must not be where modules are imported from."""
        if path not in self._root_places or self._is_allowed(path):
            return None
        return "it takes the place of a directory that is imported from"

    def _lies_in_file(self, path: str, kept: Mapping[str, FileState | None]) -> bool:
        """Whether one of a path's directories is a file or link once the changes that are kept are made."""
        while path := posixpath.dirname(path):
            member = self._members.get(path)
            stays = member is not None and member.kind != "directory" and path not in kept
            if stays or kept.get(path) is not None:
                return True
        return False

    # What the pristine repository says

    def _text(self, path: str) -> str:
        state = self._snapshot.state(leads_to(self._members, path))
        return state.data.decode("utf-8", "surrogateescape") if state and state.kind == "file" else ""

    def _behind_links(self) -> tuple[dict[str, str], set[str]]:
        """Where links lead that tell how the tests are run.

        Returns:
            the names by which files are linked of which only sections are pytest's, and what else is restored
        """
        shared: dict[str, str] = {}
        led: set[str] = set()
        for one in [path for path, member in self._members.items() if member.kind == "link"]:
            *links, end = way(self._members, one)
            if name := shared_name(one):
                shared[end] = name
                led.update(links[1:])
            elif self._configures(one) or (one not in self._named and self._runs_itself(one)):
                is_directory = not end or (end in self._members and self._members[end].kind == "directory")
                led.update(links[1:], loaded_of(one, end) if is_directory else {end})
        return shared, led

    def _package_directories(self) -> Iterator[str]:
        """Directories above the test infrastructure that are no packages.

        A package's code runs before its modules are looked for, so a new one could make them itself. What is a package
        already is code of the repository, which may change.
        """
        tests = self._counted.paths or {path for path in self._members if self._pytest.sets_import_root(path)}
        for path in {*tests, *self._pytest.conftests, *self._pytest.plugin_files}:
            for directory in above(path):
                prefix = posixpath.join(directory, "__init__")
                if not any(f"{prefix}{suffix}" in self._members for suffix in MODULE_SUFFIXES):
                    yield directory
