"""What a pristine repository, and the command that runs its tests, say of pytest."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Callable, Mapping

from debug_gym_core.grading import pytest_plugins, pytest_sections
from debug_gym_core.grading.entry_points import entry_plugins
from debug_gym_core.grading.links import leads_to
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_core.workspace.snapshot import Member

TEST_NAMES = ("test_*.py", "*_test.py")
"""File names of tests, beside those that the repository's own configuration says."""

OTHER_TEST_NAMES = ("test.py", "tests.py")
"""Those that pytest looks into only where it is told to."""


class PytestSettings:
    """Which files pytest takes for tests, where it imports from, and its plugins.

    Attributes:
        conftests: paths of all
        plugins: names of the modules that are plugins
        plugin_files: paths of those that are in the repository, with the links that lead there
        own_plugin_files: those that only its own distributions name, by an entry point
        roots: directories that modules are imported from
    """

    def __init__(
        self,
        members: Mapping[str, Member],
        text: Callable[[str], str],
        entrypoint: Entrypoint,
        gold_patch: bytes | None,
    ) -> None:
        """Read them.

        Args:
            members: the pristine repository
            text: reads a file of it
            entrypoint: the command that runs the tests
            gold_patch: a right fix: plugins that it changes are what is to be fixed
        """
        files = (*pytest_sections.INI_FILES, *pytest_sections.TOML_FILES)
        options = pytest_sections.options(text("pyproject.toml"), {name: text(name) for name in files})
        others = OTHER_TEST_NAMES if entrypoint.module != "pytest" else ()
        self._test_names = (*TEST_NAMES, *others, *options["python_files"])
        search = {"", "src", "lib", *options["pythonpath"], *entrypoint.env.get("PYTHONPATH", "").split(":")}
        search = {"" if (path := posixpath.normpath(one)) == "." else path for one in search if not one.startswith("/")}
        search |= {leads_to(members, one) for one in search}
        self.conftests = [path for path in members if posixpath.basename(path) == "conftest.py"]
        named = pytest_plugins.named_by(entrypoint, options["addopts"])
        named += [one for path in self.conftests for one in pytest_plugins.listed_plugins(text(path))]
        found = pytest_plugins.files_of(named, search, members, text)
        own = entry_plugins(search, members, text, gold_patch)
        self.plugins, self.plugin_files = (one | other for one, other in zip(found, own, strict=True))
        self.own_plugin_files = own[1] - found[1]
        self.roots = search | {_import_root(members, path) for path in members if self.sets_import_root(path)}

    def has_test_name(self, path: str) -> bool:
        """Whether a path is named as files with tests are."""
        return any(fnmatch.fnmatchcase(posixpath.basename(path), one) for one in self._test_names)

    def sets_import_root(self, path: str) -> bool:
        """Whether pytest puts a directory into `sys.path` for a file."""
        return posixpath.basename(path) == "conftest.py" or self.has_test_name(path)


def _import_root(members: Mapping[str, Member], path: str) -> str:
    """The first directory above a file that is no package."""
    root = posixpath.dirname(path)
    while root and posixpath.join(root, "__init__.py") in members:
        root = posixpath.dirname(root)
    return root
