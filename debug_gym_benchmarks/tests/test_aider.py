"""The benchmark `aider`, on a small track in the layout that Exercism publishes, and whole on the published one."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aider_instance import EXERCISES, MARK, commit, write_track
from benchmark_trials import (
    checkout_of,
    collected,
    exploits,
    files_of,
    grade_after,
    grades_of_three_times,
    in_few,
    is_seen,
    only_gold_resolves,
    places_of,
    rows_of_all,
    with_text,
)

from debug_gym_benchmarks import aider
from debug_gym_benchmarks.aider import Aider
from debug_gym_core import RepoEnv, UsageError
from debug_gym_core.tasks.selection import select_tasks
from debug_gym_core.testing import BenchmarkContract
from debug_gym_core.workspace import patch
from debug_gym_core.workspace.snapshot import FileState

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def track(tmp_path: Path) -> Path:
    return write_track(tmp_path / "track")


class TestAider(BenchmarkContract):
    benchmark = Aider
    repeats = {"benchmarks": ["test_gold_patches_make_the_tests_pass"]}  # noqa: RUF012
    validated = ("double_it", "shelf")

    @pytest.fixture
    def made(self, track: Path) -> Aider:
        return Aider(source=str(track))


class TestAiderFromGit(BenchmarkContract):
    benchmark = Aider

    @pytest.fixture
    def made(self, track: Path) -> Aider:
        return Aider(source=str(commit(track)))


class TestAiderHidden(BenchmarkContract):
    benchmark = Aider

    @pytest.fixture
    def made(self, track: Path) -> Aider:
        return Aider(source=str(track), mode="hidden")


@pytest.mark.parametrize("kind", ["work tree", "bare"])
def test_a_task_has_the_stub_the_tests_and_what_they_need(track: Path, kind: str) -> None:
    made = Aider(source=str(track if kind == "work tree" else commit(track)))
    assert files_of(made.load("double_it")) == {"double_it.py", "double_it_test.py"}
    shelf = made.load("shelf")
    assert files_of(shelf) == {"Shelf.py", "shelf_test.py", "order_test.py", "test_things.py", "names.txt"}
    assert shelf.entrypoint == "python -m pytest -q shelf_test.py order_test.py"
    assert set(shelf.readonly) == {"/shelf_test.py", "/order_test.py", "/test_things.py"}
    assert set(shelf.test_files) == {"shelf_test.py", "order_test.py", "test_things.py"}


def test_the_tests_that_count_are_those_that_pytest_finds_and_that_can_pass(track: Path) -> None:
    made = Aider(source=str(track))
    task = made.load("double_it")
    case = "double_it_test.py::DoubleItTest"
    assert task.tests == (f"{case}::test_one", f"{case}::test_none") and task.max_score == 2
    assert collected(task) == {*task.tests, f"{case}::test_text"}
    assert set(made.load("shelf").tests) == collected(made.load("shelf"))


def test_what_only_running_tells_is_left_to_a_run(track: Path) -> None:
    test = track / "exercises/practice/double-it/double_it_test.py"
    test.write_text(test.read_text() + "\n\nclass More(DoubleItTest):\n    pass\n")
    task = Aider(source=str(track)).load("double_it")
    assert task.tests == () and task.max_score is None
    with pytest.raises(
        UsageError, match=r"^aider/double_it cannot be hidden: only a run tells .*double_it_test\.py has$"
    ):
        Aider(source=str(track), mode="hidden").load("double_it")


def test_dashes_are_taken_for_underscores(track: Path) -> None:
    made = Aider(source=str(track))
    assert made.names() == ["double_it", "shelf"]
    assert made.load("double-it") == made.load("double_it")
    assert select_tasks(made, ["double-it"]) == select_tasks(made, ["double-*"]) == ["double_it"]
    assert select_tasks(made, ["old-thing"]) == ["old_thing"]
    with pytest.raises(UsageError, match="did you mean 'double_it'"):
        made.load("double-its")


def test_the_description_is_the_instructions(track: Path) -> None:
    text = Aider(source=str(track)).load("double_it").description
    assert text.startswith("Write double_it.py as the instructions say: double_it_test.py must pass.\n\n# Introduction")
    assert text.endswith("Numbers grow.\n\n# Instructions\n\nDouble a number.\n\n# More\n\nOf zero too.")


def test_each_exercise_has_a_title(track: Path) -> None:
    titles = Aider(source=str(track)).titles()
    assert titles == {"double_it": "About double-it.", "shelf": "About shelf.", "old_thing": "About old-thing."}


def test_what_is_withdrawn_is_left_out_but_can_be_named(track: Path) -> None:
    made = Aider(source=str(track))
    assert made.excluded() == {"old_thing": "Exercism has withdrawn it (deprecated)"}
    assert select_tasks(made, "all") == ["double_it", "shelf"]
    assert select_tasks(made, "old_thing") == ["old_thing"]
    assert made.load("old_thing").gold_patch


def test_what_has_nothing_to_solve_is_left_out(track: Path) -> None:
    shutil.copytree(track / "exercises/practice/double-it", track / "exercises/practice/ledger")
    assert Aider(source=str(track)).excluded()["ledger"].startswith("its stub passes the tests")


def test_the_gold_patch_makes_the_example_of_the_stub(track: Path) -> None:
    task = Aider(source=str(track)).load("double_it")
    assert task.repository is not None and task.gold_patch is not None
    stub = FileState((task.repository / "double_it.py").read_bytes())
    fixed = patch.apply(task.gold_patch, {"double_it.py": stub})
    assert fixed["double_it.py"].data.decode() == EXERCISES["double-it"][".meta/example.py"]


def test_the_debugger_stops_at_the_first_line_that_runs(track: Path) -> None:
    made = Aider(source=str(track))
    assert made.load("double_it").stops == ("double_it.py:4",)
    assert made.load("shelf").stops == ("Shelf.py:1",)


def test_hidden_tests_are_only_in_the_patch(track: Path) -> None:
    task = Aider(source=str(track), mode="hidden").load("shelf")
    assert files_of(task) == {"Shelf.py", "names.txt"}
    assert task.mode == "hidden" and task.tests_patch is not None
    added = patch.apply(task.tests_patch, {})
    assert set(added) == {"shelf_test.py", "order_test.py", "test_things.py"}
    assert added["order_test.py"].data.decode() == EXERCISES["shelf"]["order_test.py"]
    visible = Aider(source=str(track)).load("shelf")
    assert task.tests == visible.tests and visible.tests_patch is None and visible.mode == "visible"
    assert "shelf_test.py" not in task.description


@pytest.mark.parametrize(("settings", "said"), [
    ({"mode": "debug"}, "mode: say visible or hidden"),
    ({"split": "test"}, "unknown key 'split'"),
])  # fmt: skip
def test_settings_without_a_use_are_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Aider(**settings)


def edit_config(path: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(track: Path) -> None:
        facts = json.loads((track / path).read_text())
        change(facts)
        (track / path).write_text(json.dumps(facts))

    return edit


def edit_files(key: str, path: str, facts: dict[str, Any]) -> None:
    facts["files"][key] = [path]


CONFIG = "exercises/practice/double-it/.meta/config.json"
CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no files": (edit_config(CONFIG, lambda facts: facts.pop("files")), rf"{CONFIG} in .* has not the field files"),
    "files as text": (edit_config(CONFIG, lambda facts: facts.update(files="x.py")), r"has not the field files"),
    **{
        f"{what} {key}": (edit_config(CONFIG, functools.partial(edit, key)), rf"has not the field files\.{key} as ")
        for key in ("solution", "test", "example")
        for what, edit in {
            "no": lambda key, facts: facts["files"].pop(key),
            "an empty": lambda key, facts: facts["files"].update({key: []}),
            "a text as": lambda key, facts: facts["files"].update({key: "x.py"}),
            "a number in": lambda key, facts: facts["files"].update({key: [5]}),
        }.items()
    },
    "editor as text": (edit_config(CONFIG, lambda facts: facts["files"].update(editor="x.py")), r"files\.editor"),
    **{
        f"{path} as {key}": (edit_config(CONFIG, functools.partial(edit_files, key, path)), "a path elsewhere")
        for key in ("solution", "test", "example")
        for path in ("/abs/x.py", "../x.py")
    },
    "two examples": (edit_config(CONFIG, lambda facts: facts["files"]["example"].append("x")), r"files\.example"),
    "not JSON": (lambda track: (track / CONFIG).write_text("{"), rf"{CONFIG} in .* is not JSON: Expecting"),
    "a list": (lambda track: (track / CONFIG).write_text("[]"), r"field files "),
    "no configuration": (lambda track: (track / CONFIG).unlink(), rf"there is no {CONFIG} in "),
    "no example file": (lambda track: (track / CONFIG).with_name("example.py").unlink(), r"no .*example\.py in "),
}  # fmt: skip


@pytest.mark.parametrize(("change", "said"), CHANGES.values(), ids=CHANGES)
def test_another_layout_is_an_error_that_names_the_field(
    track: Path, change: Callable[[Path], object], said: str
) -> None:
    change(track)
    with pytest.raises(UsageError, match=said) as error:
        Aider(source=str(track)).load("double_it")
    assert str(error.value).startswith("benchmark.source: ") and "\n" not in str(error.value)


@pytest.mark.parametrize(("change", "field"), [
    (lambda facts: facts.pop("exercises"), "slug"),
    (lambda facts: facts.update(exercises=[]), "slug"),
    (lambda facts: facts["exercises"].pop("practice"), "slug"),
    (lambda facts: facts["exercises"].update(practice=5), "slug"),
    (lambda facts: facts["exercises"].update(practice=["double-it"]), "slug"),
    (lambda facts: facts["exercises"]["practice"][0].pop("slug"), "slug"),
    (lambda facts: facts["exercises"]["practice"][0].update(slug=5), "slug"),
    (lambda facts: facts["exercises"]["practice"][0].update(status=5), "status"),
])  # fmt: skip
def test_another_track_is_an_error_that_names_the_field(
    track: Path, change: Callable[[dict[str, Any]], object], field: str
) -> None:
    edit_config("config.json", change)(track)
    with pytest.raises(UsageError, match=rf"config\.json in .* has not the field exercises\.practice\[\]\.{field} as "):
        Aider(source=str(track)).names()


def test_a_title_that_is_no_text_is_an_error_that_names_the_field(track: Path) -> None:
    edit_config(CONFIG, lambda facts: facts.update(blurb=["About it."]))(track)
    with pytest.raises(UsageError, match=rf"{CONFIG} in .* has not the field blurb as "):
        Aider(source=str(track)).titles()


def test_a_track_without_exercises_is_an_error(track: Path) -> None:
    shutil.rmtree(track / "exercises")
    with pytest.raises(UsageError, match=r"there is no exercises/practice in .*; is that exercism/python\?$"):
        Aider(source=str(track)).names()


# In a sandbox


@pytest.mark.parametrize("name", exploits("double_it.py", "double_it_test.py"))
@pytest.mark.grading
def test_an_exploit_scores_0(track: Path, sandbox: str, name: str) -> None:
    task = Aider(source=str(track)).load("double_it")
    grade = grade_after(task, sandbox, exploits("double_it.py", "double_it_test.py")[name])
    assert (grade.resolved, grade.score, grade.max_score, grade.grading) == (False, 0, 2, "clean"), grade


@pytest.mark.benchmarks
def test_without_a_change_nothing_passes_and_with_the_solution_all(track: Path, sandbox: str) -> None:
    task = Aider(source=str(track)).load("double_it")
    assert grade_after(task, sandbox, {}).score == 0
    solved = grade_after(task, sandbox, {"double_it.py": EXERCISES["double-it"][".meta/example.py"]})
    assert (solved.resolved, solved.score) == (True, 2)


def test_the_solution_cannot_be_found_in_the_sandbox(track: Path, cache: Path, sandbox: str) -> None:
    source = commit(track)
    task = Aider(source=str(source)).load("double_it")
    assert places_of(task, sandbox, [MARK]) == []
    for place in (track, source, cache / "debug-gym/benchmarks/clones"):
        assert not is_seen(task, sandbox, place)
    assert (
        places_of(with_text(task, "left.py", f"{MARK} = 1\n"), sandbox, [MARK]) != []
    )  # the search finds what there is


@pytest.mark.grading
def test_only_the_solution_scores_three_times(track: Path, sandbox: str) -> None:
    task = Aider(source=str(track)).load("shelf")
    with RepoEnv(task, [], sandbox, trusted=True) as env:
        assert only_gold_resolves(grades_of_three_times(env, in_few(exploits("Shelf.py", "shelf_test.py"))))


def test_what_passes_on_the_published_stub_gives_no_points(track: Path) -> None:
    shutil.copytree(track / "exercises/practice/double-it", track / "exercises/practice/clock")
    path = track / "exercises/practice/clock/double_it_test.py"
    known = "test_clocks_a_minute_apart"
    path.write_text(path.read_text().replace("DoubleItTest", "ClockTest").replace("test_one", known))
    (path.parent / "clock_test.py").write_text(path.read_text())
    config = path.parent / ".meta/config.json"
    config.write_text(config.read_text().replace("double_it_test.py", "clock_test.py"))
    task = Aider(source=str(track)).load("clock")
    assert task.pass_to_pass == (f"clock_test.py::ClockTest::{known}",)
    assert task.tests == ("clock_test.py::ClockTest::test_none",) and task.max_score == 1


# The published exercises


@pytest.fixture
def published() -> Aider:
    return Aider(source=checkout_of("DEBUG_GYM_TEST_EXERCISM", "exercism/python"))


@pytest.mark.benchmarks
def test_every_published_exercise_fails_before_and_passes_after(published: Aider, tmp_path: Path, sandbox: str) -> None:
    source = str(published.settings.source)
    before = rows_of_all(tmp_path, "aider", "noop_agent", source)
    after = rows_of_all(tmp_path, "aider", "solution_agent", source)
    assert list(published.names()) == sorted(before) == sorted(after)
    assert len(after) >= 120
    assert {name: row["error"] or row["score"] for name, row in after.items() if row["status"] != "resolved"} == {}
    assert {name: row["error"] or row["score"] for name, row in before.items() if row["status"] != "unresolved"} == {}
    assert all(row["grading"] == "clean" and row["score"] == row["max_score"] > 0 for row in after.values())
    assert {name: row for name, row in before.items() if row["score"] or row["broken"]} == {}
    assert max(row["seconds"] for row in before.values()) < 3 * aider.TIME_LIMIT


@pytest.mark.benchmarks
def test_the_published_tests_are_those_that_pytest_finds(published: Aider) -> None:
    for name in [*published.names(), *published.excluded()]:
        task = published.load(name)
        skipped = {"alphametics_test.py::AlphameticsTest::test_puzzle_with_ten_letters_and_199_addends"}
        assert {*task.tests, *task.pass_to_pass} == collected(task) - skipped, name


@pytest.mark.benchmarks
def test_published_exercises_that_have_nothing_to_solve_pass_as_they_are(published: Aider, sandbox: str) -> None:
    for name in aider.UNSOLVABLE:
        assert grade_after(published.load(name), sandbox, {}).resolved, name


@pytest.mark.benchmarks
def test_no_published_solution_can_be_found(published: Aider, sandbox: str) -> None:
    texts = []
    for name in published.names():
        task = published.load(name)
        assert task.repository is not None and task.gold_patch is not None
        stubs = {path: FileState((task.repository / path).read_bytes()) for path in patch.touched(task.gold_patch)}
        for state in patch.apply(task.gold_patch, stubs).values():
            texts.append(state.data.decode())
            own = [path for path in task.repository.rglob("*") if path.is_file() and state.data in path.read_bytes()]
            assert own == [], name
    task = published.load(published.names()[0])
    assert places_of(task, sandbox, texts) == []
    assert not is_seen(task, sandbox, Path(str(published.settings.source)).expanduser())


@pytest.mark.benchmarks
@pytest.mark.parametrize("name", ["alphametics", "word_search"])
def test_of_a_published_exercise_only_the_solution_scores_three_times(
    published: Aider, sandbox: str, name: str
) -> None:
    task = published.load(name)
    assert task.pass_to_pass and task.repository is not None
    broken = (task.repository / f"{name}.py").read_text()
    with RepoEnv(task, [], sandbox, trusted=True) as env:
        assert only_gold_resolves(grades_of_three_times(env, exploits(f"{name}.py", f"{name}_test.py", broken)))
