"""The pristine files that hold the tests that count."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping

from debug_gym_core.grading.doctests import CountedDoctests
from debug_gym_core.grading.inner_tests import has_inner_tests
from debug_gym_core.grading.links import leads_to, way
from debug_gym_core.grading.places import Places
from debug_gym_core.workspace.snapshot import FileState, Member

TEST_DIRECTORIES = frozenset({"test", "tests"})


class CountedFiles:
    """Finds them by the tests' ids.

    Attributes:
        paths: by which they are found, the links that these pass, and where they lead
        directories: the outermost ones above them that are named for tests
        doctests: those that count
        elsewhere: files of tests whose ids do not say which it is by a path from the root
    """

    def __init__(
        self,
        members: Mapping[str, Member],
        text: Callable[[str], str],
        state: Callable[[str], FileState | None],
        has_test_name: Callable[[str], bool],
        tests: Iterable[str],
        test_files: Iterable[str],
    ) -> None:
        """Find them.

        Args:
            members: the pristine repository
            text: reads a file of it
            state: gives a file of it
            has_test_name: whether a path is named as files with tests are
            tests: ids of the tests that count
            test_files: paths of more files that belong to them, in the repository or not
        """
        self._members = members
        self._text = text
        self._has_test_name = has_test_name
        self._links = tuple(f"{path}/" for path, member in members.items() if member.kind == "link")
        places = Places(members, text, self._is_linked)
        tests = frozenset(tests)
        found = {one: paths for one in tests if (paths := places.find(one))}
        self.elsewhere = {one: paths for one, paths in found.items() if paths != (one.partition("::")[0],)}
        held = {one: paths[0] for one, paths in found.items()}
        listed = frozenset(test_files).union(*(paths[1:] for paths in found.values()))
        ways = {one: way(members, one) for one in listed.union(held.values())}
        self.paths = frozenset(ways).union(*ways.values())
        self.directories = frozenset(map(_test_directory, self.paths)) - {""}
        several = listed.union(place for one, passed in ways.items() for place in passed if place != one)
        self.doctests = CountedDoctests(held, several, state)
        # An id of unittest's names the module of a class, and not the one that it was found in.
        self._are_all_known = bool(tests) and all("::" in one or one.endswith(".py") for one in tests)
        self._are_all_known &= all(one in found or one.partition("::")[0] in listed for one in tests)
        self._beside = frozenset(posixpath.dirname(path) for one in ways for path in (one, *ways[one][-1:]))
        self._products: dict[str, bool] = {}

    def ends(self) -> dict[str, str]:
        """The paths by which they are found, and of each the pristine file: another one where links lead there."""
        ends = {one: leads_to(self._members, one) for one in self.paths}
        return {one: end for one, end in ends.items() if self._is_file(end)}

    def is_product(self, path: str) -> bool:
        """Whether a path is a pristine file without tests that count, nor beside any: what helps tests may be there."""
        there = path in self._members and path not in self.paths
        if not there or not self._are_all_known or posixpath.dirname(path) in self._beside:
            return False
        if path not in self._products:
            self._products[path] = not has_inner_tests(self._text(path).encode("utf-8", "surrogateescape"))
        return self._products[path]

    def _is_linked(self, path: str) -> bool:
        """Whether a path below a link to a directory leads to a file with the name of one of tests.

        Another may be the product, of which only doctests count.
        """
        below = path.startswith(self._links) and self._has_test_name(path)
        return below and self._is_file(leads_to(self._members, path))

    def _is_file(self, path: str) -> bool:
        member = self._members.get(path)
        return member is not None and member.kind == "file"


def _test_directory(path: str) -> str:
    """The outermost directory of a file that is named for tests; empty when none is."""
    parts = path.split("/")[:-1]
    places = [place for place, part in enumerate(parts) if part in TEST_DIRECTORIES]
    return "/".join(parts[: places[0] + 1]) if places else ""
