"""BugsInPy: real bugs of Python projects, each with the tests of its fix."""

from __future__ import annotations

import codecs
import configparser
import functools
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from debug_gym_benchmarks import cache, clones, git
from debug_gym_benchmarks.checkouts import Checkout, CheckoutSettings, GitFiles, Published, open_checkout
from debug_gym_core import Benchmark, Task, UsageError
from debug_gym_core.errors import ActionError
from debug_gym_core.names import nearest
from debug_gym_core.places import expanded
from debug_gym_core.tasks.task import BenchmarkSettings
from debug_gym_core.workspace import patch
from debug_gym_core.workspace.snapshot import FileState

PUBLISHED = Published(
    "soarsmu/BugsInPy", "https://github.com/soarsmu/BugsInPy", "11c5f1eea954a42132cfd06bf257766a7963e0fd"
)
TIME_LIMIT = 300.0
"""Seconds for the tests of one bug; they are single tests."""

UNSOLVABLE = {
    "cookiecutter-1": "its test reads tests/test-generate-context/non_ascii.json, which the published checkout does not"
    " take from the fixed commit",
}
"""Bugs whose tests fail after the published patch too, and why."""

REQUIREMENTS = "bugsinpy_requirements.txt"
SETUP = "bugsinpy_setup.sh"
"""Where the published checkout puts a bug's requirements and what is to be run after they are installed."""

_BUG = re.compile(r"projects/([^/]+)/bugs/(\d+)/bug\.info")
_VALUE = re.compile(r'^\s*([a-z_]+)\s*=\s*"([^"]*)"', re.MULTILINE)
_PROJECT = re.compile(r"://[^/]+/[^/]+/[^/]+/?$")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_VERSION = re.compile(r"(\d+\.\d+)(\.\d+)*")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?=\s*(==|>=|<=|~=|!=|<|>|\[|;|$))")
_PYTEST = (("pytest",), ("py.test",), ("tox",), ("python", "-m", "pytest"), ("python3", "-m", "pytest"))
_UNITTEST = (("python", "-m", "unittest"), ("python3", "-m", "unittest"))


class BugsInPySettings(CheckoutSettings):
    """What the `benchmark` section says of BugsInPy.

    Attributes:
        source: a checkout of BugsInPy, or a git URL; null: the known commit is fetched
        revision: the commit of BugsInPy
        mode: visible, as published: the tests of the fix are in the workspace
        projects: a directory with checkouts of the projects, work trees or bare: `OWNER+NAME`, `OWNER+NAME/repo`,
            `OWNER/NAME` or `NAME`; null: the commits that are needed are fetched from where the project lies
    """

    mode: Literal["visible"] = "visible"
    projects: Path | None = None


@dataclass(frozen=True)
class _Bug:
    """What BugsInPy says of a bug.

    Attributes:
        directory: where it says so
        url: the project's repository
        buggy: the commit with the bug
        fixed: the commit without it
        python: the version of Python that it was tried with, without the last number
        tests: files that are taken from the fixed commit
        entrypoint: runs the tests of the bug; empty when there is no such command
        why_not: why it cannot be solved; empty when it can
        tox: whether the published command is tox, which installs more than BugsInPy lists
    """

    directory: str
    url: str
    buggy: str
    fixed: str
    python: str
    tests: tuple[str, ...]
    entrypoint: str
    why_not: str
    tox: bool


class BugsInPy(Benchmark):
    """Real bugs of 17 Python projects with the tests of their fixes; from git, or from checkouts."""

    name = "bugsinpy"
    Settings: ClassVar[type[BenchmarkSettings]] = BugsInPySettings
    settings: BugsInPySettings

    def names(self) -> Sequence[str]:
        """`PROJECT-NUMBER` by project and number."""
        return [name for name, bug in self._bugs.items() if not bug.why_not]

    def excluded(self) -> dict[str, str]:
        """Bugs whose tests are run by a command that reports no single tests, or fail after the fix."""
        return {name: bug.why_not for name, bug in self._bugs.items() if bug.why_not}

    def titles(self) -> Mapping[str, str]:
        """The tests that show each bug."""
        return {name: " ".join(self._bugs[name].entrypoint.split()[4:]) for name in self.names()}

    def requires(self) -> Sequence[str]:
        """What runs most of the tests; each bug needs more, of versions of its own."""
        return ("pytest",)

    def load(self, name: str) -> Task:
        """Make a bug a task: the buggy commit with the tests of the fixed one, as the published checkout has it.

        What the published commands name, tests or files of them, fails before the fix, and each counts as one.
        """
        if name not in self._bugs:
            raise UsageError(f"{self.name} has no task {name!r}{nearest(name, self._bugs)}")
        bug = self._bugs[name]
        project = self._project(bug)
        buggy, fixed = project(bug.buggy), project(bug.fixed)
        files = {**buggy.states(buggy.paths()), **fixed.states(bug.tests)}
        needed, beside = self._needed(bug)
        of_tox = tox_requirements(files) if bug.tox else []
        tests = tuple(shlex.split(bug.entrypoint)[4:])
        return Task(
            benchmark=self.name,
            name=name,
            repository=cache.keep(f"{self.name}/{name}", {**files, **beside}),
            entrypoint=bug.entrypoint or "python -m pytest -q",
            description=f"A bug of {_owner_and_name(bug.url)[1]}: `{bug.entrypoint}` fails.",
            tests=tests,
            max_score=len(tests) or None,
            gold_patch=self._gold(bug, files, fixed),
            requires=tuple(dict.fromkeys([*needed, *of_tox])),
            conflicts=self._own(bug),
            readonly=tuple(f"/{path}" for path in bug.tests),
            time_limit=TIME_LIMIT,
            python=bug.python,
            mode=self.settings.mode,
            test_files=bug.tests,
        )

    def _gold(self, bug: _Bug, files: Mapping[str, FileState], fixed: Checkout) -> bytes:
        """The published patch; where it does not apply, the change of its files from commit to commit."""
        published = self._checkout.read(f"{bug.directory}/bug_patch.txt").rstrip(b"\n") + b"\n"
        before = {path: files.get(path) for path in patch.touched(published)}
        try:
            patch.apply(published, before)
        except ActionError:
            after = fixed.states(before)
            return patch.make(before, {path: after.get(path) for path in before})
        return published

    @staticmethod
    def _own(bug: _Bug) -> tuple[str, ...]:
        """The names under which a bug's project may be installed, plain."""
        return tuple(dict.fromkeys([_plain(bug.directory.split("/")[1]), _plain(_owner_and_name(bug.url)[1])]))

    def _needed(self, bug: _Bug) -> tuple[tuple[str, ...], dict[str, FileState]]:
        """The distributions that a bug needs, and the files that say so, as the published checkout puts them."""
        paths = [f"{bug.directory}/{name}" for name in ("requirements.txt", "setup.sh")]
        found = self._checkout.states(paths)
        lines = _decoded(found[paths[0]].data).split("\n") if paths[0] in found else []
        # Left out: the project itself, from its repository or a release, and a name that Debian's pip made up.
        own = {"pkg-resources", *self._own(bug)}
        named = {line.strip(): match[0] for line in lines if (match := _REQUIREMENT.match(line.strip()))}
        kept = {line: name.lower() for line, name in named.items() if _plain(name) not in own}
        beside = {REQUIREMENTS: FileState("".join(f"{line}\n" for line in kept).encode())} if kept else {}
        if paths[1] in found:
            beside[SETUP] = FileState(_decoded(found[paths[1]].data).encode())
        runner = ["pytest"] if " pytest " in bug.entrypoint else []
        return tuple(dict.fromkeys([*runner, *kept.values()])), beside

    def _project(self, bug: _Bug) -> Callable[[str], GitFiles]:
        """Opens a commit of a bug's project."""
        place: Path | None = None
        owner, name = _owner_and_name(bug.url)
        top = self.settings.projects
        if top is not None:
            top = expanded(top)
            places = [top / f"{owner}+{name}" / "repo", top / f"{owner}+{name}", top / owner / name, top / name]
            place = next((one for one in places if one.is_dir()), None)
            if place is None:
                raise UsageError(f"benchmark.projects: there is no {owner}+{name} or {name} in {top}")

        def opened(commit: str) -> GitFiles:
            if place is not None:
                done = git.run(place, ["rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"])
                if done.returncode != 0:
                    raise UsageError(f"benchmark.projects: {place} has no commit {commit}; fetch it there (git fetch)")
                return GitFiles(f"{owner}/{name}", place, done.stdout.decode().strip(), str(place))
            if not git.COMMIT.fullmatch(commit):
                raise UsageError(
                    f"{self.name}: the commit {commit} of {owner}/{name} is published abbreviated, which cannot be"
                    f" fetched; say benchmark.projects: a directory with a clone of {bug.url}"
                )
            full = f"{owner}/{name}"
            return GitFiles(full, clones.fetch(full, bug.url, commit), commit, bug.url)

        return opened

    @functools.cached_property
    def _checkout(self) -> Checkout:
        return open_checkout(PUBLISHED, self.settings.source, self.settings.revision)

    @functools.cached_property
    def _bugs(self) -> dict[str, _Bug]:
        """What is said of each bug, by name."""
        found = {match[0]: match for path in self._checkout.paths("projects") if (match := _BUG.fullmatch(path))}
        projects = {match[1] for match in found.values()}
        wanted = [f"projects/{project}/project.info" for project in projects]
        wanted += [path.replace("bug.info", name) for path in found for name in ("bug.info", "run_test.sh")]
        texts = {path: _decoded(state.data) for path, state in self._checkout.states(wanted).items()}
        bugs = {f"{match[1]}-{match[2]}": self._bug(match[1], path, texts) for path, match in found.items()}
        return {name: bugs[name] for name in sorted(bugs, key=_place)}

    def _bug(self, project: str, path: str, texts: Mapping[str, str]) -> _Bug:
        about = dict(_VALUE.findall(texts[path]))
        info = f"projects/{project}/project.info"
        url = dict(_VALUE.findall(texts.get(info, ""))).get("github_url")
        if not url or not _PROJECT.search(url):
            raise self._changed(info, "github_url")
        for field in ("buggy_commit_id", "fixed_commit_id"):
            if not _COMMIT.fullmatch(about.get(field, "")):
                raise self._changed(path, field)
        version = _VERSION.match(about.get("python_version", ""))
        if version is None:
            raise self._changed(path, "python_version")
        tests = tuple(one.strip() for one in about.get("test_file", "").split(";") if one.strip())
        if not tests:
            raise self._changed(path, "test_file")
        directory = path.rpartition("/")[0]
        if f"{directory}/run_test.sh" not in texts:
            raise self._checkout.lacks(f"{directory}/run_test.sh")
        script = texts[f"{directory}/run_test.sh"]
        entrypoint, why_not = entrypoint_of(script)
        commits = about["buggy_commit_id"], about["fixed_commit_id"]
        why_not = why_not or UNSOLVABLE.get(f"{project}-{directory.rpartition('/')[2]}", "")
        tox = re.search(r"^\s*tox\b", script, re.MULTILINE) is not None
        return _Bug(directory, url, *commits, version[1], tests, entrypoint, why_not, tox)

    def _changed(self, path: str, field: str) -> UsageError:
        return self._checkout.lacks_field(path, field, "BugsInPy's", PUBLISHED)


def entrypoint_of(script: str) -> tuple[str, str]:
    """One command that runs what a run_test.sh runs in several.

    Returns:
        the command, and an empty text; or an empty one, and why there is none
    """
    runners: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, script.split("\n"))):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            return "", f"its tests are run by `{line}`, which reports no single tests"
        if not words:
            continue
        for runner, starts in (("pytest", _PYTEST), ("unittest", _UNITTEST)):
            start = next((one for one in starts if tuple(words[: len(one)]) == one), None)
            if start is not None:
                targets = [word for word in words[len(start) :] if not word.startswith("-")]
                runners.setdefault(runner, []).extend(targets)
                break
        else:
            return "", f"its tests are run by `{line}`, which reports no single tests"
    if len(runners) != 1:
        return "", "its run_test.sh runs nothing" if not runners else "its tests are run by pytest and unittest both"
    ((runner, targets),) = runners.items()
    return f"python -m {runner} -q {shlex.join(dict.fromkeys(targets))}", ""


def tox_requirements(files: Mapping[str, FileState]) -> list[str]:
    """The distributions that a project's tox.ini has installed for its tests, such as plugins that its pytest uses.

    https://tox.wiki/en/4.23.2/config.html#deps

    Args:
        files: of the project, by path

    Raises:
        UsageError: its tox.ini cannot be read
    """

    def lines(path: str) -> list[str]:
        return _decoded(files[path].data).split("\n") if path in files else []

    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string("\n".join(lines("tox.ini")))
    except configparser.Error as error:
        why = str(error).partition("\n")[0]
        raise UsageError(f"tox.ini, which says what the tests need, cannot be read: {why}") from None
    found: list[str] = []
    for line in map(str.strip, parser.get("testenv", "deps", fallback="").split("\n")):
        file = re.match(r"(?:-r|--requirement)[ =]*(\S+)", line)
        found += lines(file[1]) if file else [line]
    names = (_REQUIREMENT.match(line.partition(" #")[0].strip()) for line in found)
    return [name[0].lower() for name in names if name]


def _decoded(data: bytes) -> str:
    """Text that somebody saved on one of several systems."""
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    return data.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n")


def _place(name: str) -> tuple[str, int]:
    project, _, number = name.rpartition("-")
    return project.lower(), int(number)


def _owner_and_name(url: str) -> tuple[str, str]:
    owner, name = url.rstrip("/").removesuffix(".git").split("/")[-2:]
    return owner, name


def _plain(name: str) -> str:
    """The name of a distribution as installers compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()
