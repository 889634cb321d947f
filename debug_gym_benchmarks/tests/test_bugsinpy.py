"""BugsInPy: a checkout in the published layout, and a project's history, become tasks that gold solves."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmark_trials import exploits, grades_of_three_times, in_few, is_seen, only_gold_resolves, places_of, with_text
from bugsinpy_instance import BUGGY, NEW_TESTS, OLD_TESTS, VERSION, Published, Runnable, git

from debug_gym_benchmarks.bugsinpy import BugsInPy, entrypoint_of
from debug_gym_core import UsageError
from debug_gym_core.errors import ActionError, RequirementError
from debug_gym_core.testing import BenchmarkContract
from debug_gym_core.testing.environments import TERMINAL, Environments, unusable

CHECKOUT = "DEBUG_GYM_TEST_BUGSINPY"
PROJECTS = "DEBUG_GYM_TEST_BUGSINPY_PROJECTS"
PYTHON = "DEBUG_GYM_TEST_BUGSINPY_PYTHON"


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Published(tmp_path)


class TestBugsInPy(BenchmarkContract):
    benchmark = BugsInPy
    validated = ("till-1",)

    @pytest.fixture
    def made(self, published: Published) -> BugsInPy:
        published.add(20, run_test="make test\n")
        published.add(10, run_test="python -m unittest -q tests.test_shop\n")
        return published.made(Runnable)


def test_a_bug_is_the_buggy_commit_with_the_tests_of_the_fix(published: Published) -> None:
    task = published.made().load("till-1")
    assert task.repository is not None
    files = {str(path.relative_to(task.repository)): path for path in task.repository.rglob("*") if path.is_file()}
    assert sorted(files) == [
        "bugsinpy_requirements.txt",
        "bugsinpy_setup.sh",
        "shop.py",
        "tests/data/new.txt",
        "tests/test_shop.py",
    ]
    assert files["shop.py"].read_text() == BUGGY and files["tests/test_shop.py"].read_text() == NEW_TESTS
    assert files["bugsinpy_requirements.txt"].read_text() == "pytest==1.0\n"
    assert task.requires == ("pytest",) and task.python == VERSION
    assert task.entrypoint == "python -m pytest -q tests/test_shop.py::test_more"
    assert task.tests == ("tests/test_shop.py::test_more",) and task.max_score == 1
    assert task.gold_patch == published.patch.encode()
    assert task.mode == "visible" and set(task.test_files) == {"tests/test_shop.py", "tests/data/new.txt"}


def test_what_tox_installs_for_the_tests_is_needed_too(published: Published) -> None:
    """The published requirements do not list it, and pytest ends at once when setup.cfg names a plugin it has not."""
    project = published.projects / "acme+till"
    (project / "tox.ini").write_text(
        "[tox]\nenvlist = py\n[testenv]\nskip_install = true\ndeps =\n    -rdev.txt\n    py27: mock\n    FreezeGun>=1\n"
        "commands = pytest {posargs}\n[testenv:lint]\ndeps = flake8\n"
    )
    (project / "dev.txt").write_text("pytest\npytest-cov  # which setup.cfg names\n# flake9\n")
    published.buggy = published._commit(project, BUGGY, OLD_TESTS)
    published.add(2, run_test="tox tests/test_shop.py::test_more\n", requirements="six==1.0\n")
    published.add(3, requirements="six==1.0\n")
    assert published.made().load("till-2").requires == ("pytest", "six", "pytest-cov", "freezegun")
    assert published.made().load("till-3").requires == ("pytest", "six")
    (project / "tox.ini").write_text("deps = mock\n")
    published.buggy = published._commit(project, BUGGY, OLD_TESTS)
    published.add(4, run_test="tox tests/test_shop.py::test_more\n")
    with pytest.raises(UsageError, match=r"^tox\.ini, which says what the tests need, cannot be read: "):
        published.made().load("till-4")


def test_names_go_by_number_and_what_reports_no_tests_is_excluded(published: Published) -> None:
    published.add(10)
    published.add(9, run_test="make test\n")
    made = published.made()
    assert made.names() == ["till-1", "till-10"]
    assert made.excluded() == {"till-9": "its tests are run by `make test`, which reports no single tests"}


def test_a_published_patch_that_does_not_apply_gives_way_to_the_commits(published: Published) -> None:
    published.add(2, bug_patch=published.patch.replace("max(prices)", "min(prices)"))
    gold = published.made().load("till-2").gold_patch
    assert gold is not None and b"-    return max(prices)\n+    return sum(prices)\n" in gold


def test_an_abbreviated_commit_is_found_in_a_clone_and_not_fetched(published: Published) -> None:
    short = (
        f'python_version="{VERSION}"\nbuggy_commit_id="{published.buggy[:7]}"\nfixed_commit_id="{published.fixed}"\n'
    )
    published.add(2, bug=f'{short}test_file="tests/test_shop.py"')
    assert published.made().load("till-2").repository
    with pytest.raises(UsageError, match=r"the commit .* of acme/till is published abbreviated.*benchmark\.projects"):
        published.made(projects=None).load("till-2")


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("python_version", "three"),
        ("buggy_commit_id", "the newest"),
        ("fixed_commit_id", "HEAD"),
        ("test_file", " ; "),
        ("github_url", "till"),
    ],
)
@pytest.mark.parametrize("change", ["lost", "mistyped"])
def test_a_changed_layout_names_the_field(published: Published, field: str, other: str, change: str) -> None:
    name = "project.info" if field == "github_url" else "bugs/1/bug.info"
    path = published.source / "projects" / "till" / name
    replaced = f'the_{field}="\\1"' if change == "lost" else f'{field}="{other}"'
    path.write_text(re.sub(rf'{field}="(.*?)"', replaced, path.read_text()))
    with pytest.raises(UsageError, match=rf"projects/till/{name} in .* has not the field {field} as BugsInPy's"):
        published.made().names()


@pytest.mark.parametrize("name", ["run_test.sh", "bug_patch.txt"])
def test_a_missing_file_is_named(published: Published, name: str) -> None:
    (published.source / "projects" / "till" / "bugs" / "1" / name).unlink()
    with pytest.raises(UsageError, match=rf"there is no projects/till/bugs/1/{name} in .*; is that soarsmu/BugsInPy\?"):
        published.made().load("till-1")


def test_missing_projects_and_commits_are_told(published: Published, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"benchmark\.projects: there is no acme\+till or till in "):
        published.made(projects=tmp_path / "empty").load("till-1")
    (tmp_path / "other").mkdir()
    git(tmp_path / "other", "init", "-q", "till")
    with pytest.raises(UsageError, match=r"benchmark\.projects: .*till has no commit [0-9a-f]{40}; fetch it there"):
        published.made(projects=tmp_path / "other").load("till-1")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("python3 -m pytest -q -s a.py::b", ("python -m pytest -q a.py::b", "")),
        ("tox a.py::b\ntox a.py::b", ("python -m pytest -q a.py::b", "")),
        ("python -m unittest -q a.B.c\npython -m unittest a.B.d", ("python -m unittest -q a.B.c a.B.d", "")),
        ("", ("", "its run_test.sh runs nothing")),
        ("pytest a.py\npython -m unittest b", ("", "its tests are run by pytest and unittest both")),
    ],
)
def test_commands_become_one(script: str, told: tuple[str, str]) -> None:
    assert entrypoint_of(script) == told


def test_comments_of_a_script_are_passed_over() -> None:
    script = "# don't run twice\npytest tests/test_a.py::test_b  # nor this\n"
    assert entrypoint_of(script) == entrypoint_of("pytest tests/test_a.py::test_b") != ("", "")
    assert entrypoint_of("pytest 'x")[1].startswith("its tests are run by `pytest 'x`")


@pytest.mark.parametrize(("setting", "told"), [({"mode": "hidden"}, "mode: "), ({"split": "x"}, "unknown key 'split'")])
def test_settings_without_a_meaning_are_refused(setting: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        BugsInPy(**setting)


@pytest.fixture
def environments(tmp_path: Path) -> Iterator[Environments]:
    if reason := unusable(TERMINAL):
        pytest.skip(reason)
    with Environments(tmp_path / "environments") as made:
        yield made


@pytest.mark.grading
def test_exploits_score_nothing(published: Published, environments: Environments) -> None:
    task = published.made(Runnable).load("till-1")
    env = environments.make(task=task)
    assert env.max_score == 1  # of a test that runs twice
    with pytest.raises(ActionError, match="read-only"):
        env.workspace.write_bytes("tests/test_shop.py", b"def test_more(): pass\n")
    assert only_gold_resolves(grades_of_three_times(env, in_few(exploits("shop.py", "tests/test_shop.py"))))


def test_an_interpreter_with_a_release_of_the_project_is_refused(
    published: Published, environments: Environments
) -> None:
    task = published.made(Runnable).load("till-1")
    assert task.conflicts == ("till",)
    with pytest.raises(
        RequirementError, match=r"has PyTest installed, a release of .* \(env\.python\), or run: .* uninstall PyTest$"
    ):
        environments.make(task=replace(task, conflicts=("till", "PyTest")))


@pytest.mark.benchmarks
@pytest.mark.parametrize("name", ["tqdm-1", "tqdm-9"])
def test_of_a_published_bug_only_the_solution_scores_three_times(
    environments: Environments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """And the solution is nowhere: in no file, history, cache or installed release."""
    source, projects, python = (os.environ.get(variable) for variable in (CHECKOUT, PROJECTS, PYTHON))
    if not source or not projects or not python:
        pytest.skip(
            f"set {CHECKOUT} to a checkout of BugsInPy, {PROJECTS} to a directory with one of tqdm, and {PYTHON} to a"
            " Python 3.8 with pytest 6 and nose, without tqdm"
        )
    if reason := unusable("bubblewrap"):
        pytest.skip(reason)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    task = BugsInPy(source=source, projects=Path(projects)).load(name)
    task = replace(task, python=python, requires=("pytest", "nose"))
    assert task.gold_patch is not None
    assert task.repository is not None
    broken = (task.repository / "tqdm/__init__.py").read_text()
    env = environments.make(task=task, terminal="bubblewrap")
    assert only_gold_resolves(grades_of_three_times(env, exploits("tqdm/__init__.py", task.test_files[0], broken)))
    added = [line[1:] for line in task.gold_patch.decode().splitlines() if line.startswith("+")]
    line = max((one for one in added if not one.startswith("++")), key=len)
    assert places_of(task, "bubblewrap", [line], python) == []
    left = with_text(task, "left.txt", line)
    assert places_of(left, "bubblewrap", [line], python) == ["/testbed/left.txt"]  # the search finds what is there
    for place in (source, projects):
        assert not is_seen(task, "bubblewrap", Path(place))


def test_the_published_bugs_load() -> None:
    """All names, and the bugs of those projects whose repositories are there."""
    source, projects = os.environ.get(CHECKOUT), os.environ.get(PROJECTS)
    if not source or not projects:
        pytest.skip(f"set {CHECKOUT} to a checkout of BugsInPy, and {PROJECTS} to a directory with its projects'")
    made = BugsInPy(source=source, projects=Path(projects))
    names = made.names()
    assert len(names) == 500 and list(made.excluded()) == ["cookiecutter-1"]
    loaded = 0
    for name in names:
        try:
            task = made.load(name)
        except UsageError as error:
            assert "there is no" in str(error), error
        else:
            loaded += 1
            assert task.gold_patch and task.repository is not None and not (task.repository / ".git").exists()
    assert loaded
