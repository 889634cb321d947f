"""What a task starts from: patches that make its bug, tests that only grading has, a judge in place of a report."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from debug_gym_core import Judge, Measurement, RepoEnv, Session, Task, UsageError
from debug_gym_core.environment.counted_tests import CountedTests
from debug_gym_core.errors import TaskError
from debug_gym_core.tasks.results import TestResult
from debug_gym_core.workspace import patch as patches
from debug_gym_core.workspace.pristine import Pristine
from debug_gym_core.workspace.snapshot import FileState, Snapshot

pytest_plugins = ["debug_gym_core.testing.fixtures"]

RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = RIGHT.replace("a + b", "a - b")
TESTS = textwrap.dedent("""
    import unittest
    import calc

    class T(unittest.TestCase):
        def test_add(self):
            self.assertEqual(calc.add(2, 3), 5)
""")
IDS = ("checks.test_calc.T.test_add",)


def patch(before: dict[str, str | None], after: dict[str, str | None]) -> bytes:
    def states(files: dict[str, str | None]) -> dict[str, FileState | None]:
        return {path: None if text is None else FileState(text.encode()) for path, text in files.items()}

    return patches.make(states(before), states(after))


BUG = patch({"calc.py": RIGHT}, {"calc.py": WRONG})
GOLD = patch({"calc.py": WRONG}, {"calc.py": RIGHT})
ADDED = patch({}, {"checks/test_calc.py": TESTS})


@pytest.fixture
def task(tmp_path: Path) -> Task:
    directory = tmp_path / "published"
    directory.mkdir()
    (directory / "calc.py").write_text(RIGHT)
    return Task(
        "bench",
        "mark",
        directory,
        "python -m unittest checks/test_calc.py",
        tests=IDS,
        patches=(BUG,),
        tests_patch=ADDED,
        test_files=("checks/test_calc.py",),
        mode="hidden",
    )


def resolved(env: RepoEnv) -> bool:
    return env.grade().resolved


def test_hidden_tests_are_with_grading_alone(task: Task, make_env: Callable[..., RepoEnv]) -> None:
    env = make_env(["eval"], task=task)
    assert [one.path for one in env.workspace.list()] == ["calc.py"]
    assert env.workspace.read_text("calc.py") == WRONG and "not there" in env.instructions()
    env.step("eval")
    assert (env.score, env.resolved, resolved(env)) == (0, False, False)
    env.workspace.apply(GOLD)
    assert env.patch == GOLD and env.grade().tests == {IDS[0]: "passed"} and resolved(env)


def test_what_the_agent_puts_in_the_place_of_hidden_tests_counts_nothing(
    task: Task, make_env: Callable[..., RepoEnv]
) -> None:
    env = make_env(["eval"], task=replace(task, test_files=("checks/test_calc.py", "checks/data.txt")))
    env.workspace.write_bytes("checks/test_calc.py", b"def test_add():\n    pass\n")
    env.workspace.write_bytes("checks/data.txt", b"5")
    observation, _, terminated, _, _ = env.step("eval")
    assert (terminated, env.ended, env.resolved) == (False, None, False)
    assert "test_calc.py (it is a test file)" in observation["text"]
    assert "data.txt" not in observation["text"], "what only the grading knows stays with it"
    grade = env.grade()
    assert not grade.resolved and grade.score == 0
    assert set(grade.dropped) == {"checks/test_calc.py", "checks/data.txt"}


@pytest.mark.parametrize("mode", ["visible", "debug"])
def test_tests_in_the_workspace(task: Task, mode: str, make_env: Callable[..., RepoEnv]) -> None:
    env = make_env(["eval"], task=replace(task, mode=mode))
    assert env.workspace.read_text("checks/test_calc.py") == TESTS
    env.step("eval")
    assert env.score == 0
    env.workspace.apply(GOLD)
    env.step("eval")
    assert env.resolved and resolved(env) and env.patch == GOLD


def test_a_patch_that_does_not_fit_names_the_task(task: Task) -> None:
    assert task.repository is not None
    for wrong in (replace(task, patches=(GOLD,)), replace(task, tests_patch=b"no patch")):
        with pytest.raises(TaskError, match=r"^bench/mark: the patch "):
            Pristine.take(wrong, task.repository)


def test_a_changed_snapshot_is_that_of_a_changed_directory(tmp_path: Path) -> None:
    for name, text in {"a.b/x": "1", "a/y": "2", "a/z/deep": "3", "k": "4"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    before = Snapshot.take(tmp_path)
    (tmp_path / "k").unlink()
    (tmp_path / "a" / "y").write_text("new")
    (tmp_path / "a" / "n w").mkdir(mode=0o755)
    (tmp_path / "a" / "n w" / "ö").symlink_to("../y")
    after = Snapshot.take(tmp_path)
    changes = {path: after.state(path) for path in ("k", "a/y", "a/n w/ö")}
    changed = before.with_changes(changes)
    with before, after, changed:
        assert changed.digest == after.digest and b"".join(changed.archive()) == b"".join(after.archive())
        assert changed.read("a/z/deep") == b"3" and before.read("k") == b"4"


def test_where_a_file_takes_a_directorys_place_all_in_it_is_gone(tmp_path: Path) -> None:
    (tmp_path / "before" / "a" / "sub").mkdir(parents=True)
    (tmp_path / "before" / "a" / "x").write_text("1")
    (tmp_path / "after").mkdir()
    (tmp_path / "after" / "a").write_text("a file now")
    (tmp_path / "after" / "a").chmod(0o644)
    before, after = Snapshot.take(tmp_path / "before"), Snapshot.take(tmp_path / "after")
    changed = before.with_changes({"a/x": None, "a": after.state("a")})
    with before, after, changed:
        assert changed.digest == after.digest and list(changed.members) == ["a"]


@dataclass(frozen=True)
class Log(Judge):
    """Puts the tests where they belong and believes a program's words."""

    tests_patch: bytes
    seen: list[tuple[bool, bool]] = field(default_factory=list, compare=False)

    def measure(self, session: Session, *, timeout: float, clean: bool) -> Measurement:
        there = session.run("test -e checks/test_calc.py").exit_status == 0
        self.seen.append((clean, there))
        if clean:
            session.write("tests.patch", self.tests_patch)
            assert session.run("git apply tests.patch").exit_status == 0
        check = f"{session.python} -B -c 'import calc; print(calc.add(2, 3))'"
        outcome = "passed" if session.run(check, timeout=timeout).output == "5\n" else "failed"
        return Measurement((TestResult(IDS[0], outcome),), exit_status=7, output="", kind="log")


@pytest.mark.parametrize("mode", ["hidden", "visible"])
def test_a_judge_runs_and_reads_the_tests(task: Task, mode: str, make_env: Callable[..., RepoEnv]) -> None:
    judge = Log(ADDED)
    env = make_env(["eval"], task=replace(task, mode=mode, judge=judge))
    env.step("eval")
    assert (env.score, env.resolved) == (0, False)
    env.workspace.apply(GOLD)
    env.step("eval")
    visible = mode == "visible"
    assert (env.score, env.resolved) == (1, visible), "what runs in place is never the hidden tests"
    grade = env.grade()
    assert (grade.resolved, grade.score, grade.grading) == (True, 1, "clean")
    assert judge.seen == [(False, visible), (False, visible), (True, False)]


@dataclass(frozen=True)
class Hangs(Judge):
    """Does not come back, and puts the files back that it changed."""

    start: Callable[[Session], object]

    def measure(self, session: Session, *, timeout: float, clean: bool) -> Measurement:
        session.write("changed", b"")
        self.start(session)
        session.run("rm changed; touch back")
        return Measurement((TestResult(IDS[0], "failed"),), exit_status=1, output="as far as it came", kind="log")


@pytest.mark.parametrize(
    "start",
    [
        lambda session: session.run("touch /tmp/begun; sleep 1000"),
        lambda session: session.process("touch /tmp/begun; sleep 1000").wait(),
    ],
    ids=["a command", "a program"],
)
def test_a_person_ends_a_judge_in_place_which_puts_the_files_back(
    task: Task, make_env: Callable[..., RepoEnv], start: Callable[[Session], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    env = make_env(["eval"], task=replace(task, mode="visible", judge=Hangs(start)))
    kept = env.session.process("sleep 1000")
    with ThreadPoolExecutor(1) as threads:
        told = threads.submit(env.step, "eval")
        while env.session.run("test -e /tmp/begun").exit_status:
            assert not told.done()
        assert env.interrupt()
        text = told.result(60)[0]["text"]
    assert "The run was interrupted.\n" in text and "as far as it came" in text
    assert env.session.stat("changed") is None and env.session.stat("back") is not None and kept.running
    tests = CountedTests.measure
    monkeypatch.setattr(CountedTests, "measure", lambda *given, **more: env.interrupt() or tests(*given, **more))
    assert "The run was interrupted.\n" in env.step("eval")[0]["text"] and env.session.stat("changed") is None


def test_an_invalid_judgement_resolves_nothing(task: Task, make_env: Callable[..., RepoEnv]) -> None:
    class Unsure(Log):
        def measure(self, session: Session, *, timeout: float, clean: bool) -> Measurement:
            found = super().measure(session, timeout=timeout, clean=clean)
            return replace(found, valid=False, reason="the canary passed", tampered=True)

    env = make_env([], task=replace(task, judge=Unsure(ADDED)))
    env.workspace.apply(GOLD)
    grade = env.grade()
    assert (grade.resolved, grade.score, grade.reason) == (False, 0, "the canary passed")


def test_the_sandbox_has_a_git_repository_of_one_commit(task: Task, make_env: Callable[..., RepoEnv]) -> None:
    hashes = set()
    for _ in range(2):
        env = make_env([], task=replace(task, git=True))
        run = env.terminal.run
        assert run("git status --porcelain; git tag; git remote; git stash list").output == ""
        assert run("git rev-list --all --count --objects").output.split() == ["3"]  # a commit, a tree, a file
        hashes.add(run("git rev-parse HEAD").output)
    env.workspace.apply(GOLD)
    assert run("git -c user.name=me -c user.email=me@localhost commit -qam mine").exit_status == 0
    assert env.patch == GOLD and resolved(env)
    assert len(hashes) == 1


def test_a_task_without_a_place_is_refused(task: Task, make_env: Callable[..., RepoEnv]) -> None:
    with pytest.raises(UsageError, match="names neither a repository nor an image"):
        make_env([], task=replace(task, repository=None))
    with pytest.raises(UsageError, match="lies in an image, and terminal local runs none: take docker"):
        make_env([], task=replace(task, repository=None, image="some:image"))
