"""What programs change in the workspace is seen: tools are told of each change once, and breakpoints follow it."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from readonly_repository import Start, changes_of, fresh_env, pdb, run, run_output, start, state, write

from debug_gym_core import RepoEnv
from debug_gym_core.sandbox.replies import CommandLost


@pytest.fixture
def env(terminal: object, tmp_path: Path) -> Iterator[RepoEnv]:
    """A fresh environment of each terminal."""
    yield from fresh_env(terminal, tmp_path)


def test_breakpoints_follow_what_a_program_edits(env: RepoEnv) -> None:
    env.step(pdb("b app.py:2"))
    observation, *_ = env.step(run('sed -i "1i # new" app.py'))
    assert "Breakpoint 1 moved from app.py:2 to app.py:3." in observation["text"]
    assert "B 3      twice" in env.step("view app.py")[0]["text"]
    assert env.rewrites == 1
    assert changes_of(env) == [("app.py", [(1, 0, 1)])]
    env.step(run("sed -i 3d app.py"))
    assert not list(env.breakpoints) and env.rewrites == 2
    env.step(run("python app.py"))
    assert changes_of(env) == [("app.py", [(3, 1, 0)])] and env.rewrites == 2


@pytest.mark.debugger
def test_breakpoints_follow_what_is_edited_after_many_other_files(env: RepoEnv) -> None:
    env.step(pdb("b app.py:2"))
    for number in range(150):
        env.workspace.write_text(f"made{number}.txt", "made\n")
    env.workspace.write_text("app.py", "# new\n" + env.workspace.read_text("app.py"))
    observation, *_ = env.step("view app.py")
    assert "Breakpoint 1 moved from app.py:2 to app.py:3." in observation["text"]
    assert len(changes_of(env)) == 151


def test_new_changed_and_removed_files_are_told_once(env: RepoEnv) -> None:
    env.step(run('mkdir -p made/deep; echo 1 > made/deep/a.txt; echo 1 > out.txt; printf "\\0" > binary; rm app.py'))
    assert sorted(changes_of(env)) == [
        ("app.py", [(1, 3, 0)]),
        ("made/deep/a.txt", [(1, 0, 1)]),
        ("out.txt", [(1, 0, 1)]),
    ]
    assert env.rewrites == 1
    env.step(run("echo 2 >> made/deep/a.txt; mv out.txt out2.txt; mv made moved; echo > hidden/new; echo > .git"))
    assert sorted(changes_of(env)) == [
        ("made/deep/a.txt", [(1, 1, 0)]),
        ("moved/deep/a.txt", [(1, 0, 2)]),
        ("out.txt", [(1, 1, 0)]),
        ("out2.txt", [(1, 0, 1)]),
    ]
    assert env.rewrites == 1  # a program's own files
    env.step(run("touch app.py; cat moved/deep/a.txt; echo 3 >> moved/deep/a.txt; ln moved/deep/a.txt hard"))
    assert sorted(changes_of(env)) == [("app.py", []), ("hard", [(1, 0, 3)]), ("moved/deep/a.txt", [(3, 0, 1)])]
    env.step(run("echo 4 >> hard"))
    assert sorted(changes_of(env)) == [("hard", [(4, 0, 1)]), ("moved/deep/a.txt", [(4, 0, 1)])]
    env.step(run("true"))
    env.step("view app.py")
    assert changes_of(env) == []


def test_a_tools_change_is_told_once(env: RepoEnv) -> None:
    env.step(run("true"))
    env.step({"name": "rewrite", "arguments": {"path": "app.py", "start": 1, "end": 1, "new_code": "a\nb"}})
    assert changes_of(env) == [("app.py", [(1, 1, 2)])]
    env.step(run("true"))
    assert changes_of(env) == [] and env.rewrites == 1
    env.step(run("echo >> app.py"))
    assert changes_of(env) == [("app.py", [(5, 0, 1)])] and env.rewrites == 2


def test_a_change_between_two_looks_comes_before_the_tools(env: RepoEnv) -> None:
    env.terminal.run("sed -i 1d app.py")
    env.step({"name": "rewrite", "arguments": {"path": "app.py", "start": 1, "end": 1, "new_code": "a\nb"}})
    assert changes_of(env) == [("app.py", [(1, 1, 0)]), ("app.py", [(1, 1, 2)])]


def test_what_a_program_under_pdb_writes_does_not_end_the_session(env: RepoEnv) -> None:
    env.step(pdb("b app.py:3\nc"))
    env.step(pdb("!open('out.txt', 'w').write('x'); open('gen.py', 'w').write('')"))
    assert [path for path, _ in changes_of(env)] == ["gen.py", "out.txt"]
    assert env.rewrites == 0
    assert env.step(pdb("p twice"))[0]["text"].startswith("6")
    observation, *_ = env.step(pdb("!open('app.py', 'a').write('x')"))
    assert "session ended because a file changed" in observation["text"] and env.rewrites == 1


@pytest.mark.debugger
def test_a_program_that_writes_code_for_itself_is_debugged_on(env: RepoEnv) -> None:
    env.step(pdb("b app.py:3\nc"))
    written = "p = __import__('pathlib').Path('gen.py'); p.write_text('a = {}'); import gen"
    assert "session ended" not in env.step(pdb(f"!{written.format(1)}"))[0]["text"]
    text = env.step(pdb("!p.write_text('a = 22')\np gen.a"))[0]["text"]
    assert "gen.py changed while the program ran, which goes on with what it has." in text
    assert env.step(pdb("p gen.a"))[0]["text"].startswith("1")
    observation, *_ = env.step({"name": "rewrite", "arguments": {"path": "gen.py", "new_code": "a = 3"}})
    assert "session ended because a file changed" in observation["text"]


def test_a_program_that_goes_on_is_watched(env: RepoEnv) -> None:
    env.step({"name": "start", "arguments": {"command": "while ! test -e go; do sleep 0.02; done; echo 1 > done.txt"}})
    env.step("seen")
    assert changes_of(env) == []
    env.session.write("go", b"")
    start = env.tools["start"]
    assert isinstance(start, Start)
    start.process.wait(20)
    env.step("seen")
    assert sorted(path for path, _ in changes_of(env)) == ["done.txt", "go"]


def test_more_than_the_watch_can_tell(env: RepoEnv) -> None:
    many = "for n in $(seq 9000); do : > many.$n; done; rm many.*"
    env.step(run(f"{many}; echo 1 > app.py; echo > test_app.py; mkdir d; echo 1 > d/a"))
    assert sorted(changes_of(env)) == [("app.py", [(1, 3, 1)]), ("d/a", [(1, 0, 1)])]
    env.step(run("echo 2 > d/a"))
    assert changes_of(env) == [("d/a", [(1, 1, 1)])]


def test_a_directory_that_is_closed_hides_nothing(env: RepoEnv) -> None:
    before = state(env)
    env.step(run("mkdir d; echo 1 > d/a"))
    changes_of(env)
    env.step(run("echo 2 > d/a; echo 1 > app.py; chmod 000 d pkg/conf; mkdir -p n/m; echo > n/m/x.ro; chmod 000 n/m n"))
    assert [path for path, _ in changes_of(env)] == ["app.py", "d/a"]
    assert state(env) == before
    assert set(env.workspace.changes()) == {"app.py", "d/a"}
    assert run_output(env, "cat d/a; ls n/m") == "exit status 0\n2\n"


@pytest.mark.faults
def test_a_workspace_that_is_closed_is_opened_again(env: RepoEnv) -> None:
    before = state(env)
    # A renamed directory makes everything be compared.
    assert "exit status" in run_output(env, "mkdir x; mv x y; echo 1 > app.py; chmod 000 .")
    assert [path for path, _ in changes_of(env)] == ["app.py"]
    assert set(env.workspace.changes()) == {"app.py"} and env.rewrites == 1
    env.session.run("chmod 000 .")  # in the last step, as it were
    grade = env.grade()
    assert (grade.resolved, grade.grading) == (False, "clean")
    assert state(env) == before


@pytest.mark.faults
def test_a_workspace_that_is_removed_is_an_empty_one(env: RepoEnv) -> None:
    before = state(env)
    for _ in range(2):
        env.step(run('rm -rf "$PWD"'))
        assert state(env) == before
        assert env.workspace.changes()["app.py"] is None
        assert "exit status 0" in run_output(env, "ls")
    assert env.rewrites == 1
    env.session.run('rm -rf "$PWD"')
    assert env.workspace.changes()["app.py"] is None
    grade = env.grade()
    assert (grade.resolved, grade.score) == (False, 0)


@pytest.mark.faults
def test_a_readonly_name_however_deep_is_removed(env: RepoEnv) -> None:
    before = state(env)
    deep = "import os\nos.makedirs('z/.debugreadonly'); os.chdir('z/.debugreadonly')\n"
    deep += "for _ in range(1500): os.mkdir('a'); os.chdir('a')"
    assert "are put back: z/.debugreadonly" in run_output(env, f"python3 -c {shlex.quote(deep)}; echo 1 > app.py")
    assert env.rewrites == 1 and state(env) == before
    env.step(run("echo 2 > app.py"))
    assert env.rewrites == 2 and [path for path, _ in changes_of(env)] == ["app.py", "app.py"]


def test_a_step_whose_changes_cannot_be_seen_is_not_for_nothing(env: RepoEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise CommandLost("the file worker died")

    monkeypatch.setattr(env.session, "changed", fail)
    said = run_output(env, "echo 1 > app.py")
    assert "The files could not be compared, so that this step counts as a rewrite: the file worker died" in said
    assert env.rewrites == 1 and changes_of(env) == []
    monkeypatch.undo()
    env.step(run("true"))
    assert changes_of(env) == [("app.py", [(1, 3, 1)])]


def test_a_guest_that_was_started_again_misses_nothing(env: RepoEnv) -> None:
    if env.terminal_name == "bubblewrap":
        pytest.skip("the sandbox ends with its guest")
    env.step(run("true"))
    before = state(env)
    env.session._connect().fail("for the test")
    env.step(run("echo 1 > app.py; echo x > test_new.py; echo x > test_app.py"))
    assert changes_of(env) == [("app.py", [(1, 3, 1)])]
    assert state(env) == before


@pytest.mark.faults
def test_a_command_that_kills_the_guest_gains_nothing(env: RepoEnv) -> None:
    before = state(env)
    can_be_killed = any("kill the guest" in note for note in env.session.guest()["notes"])
    guest = "$(cut -d' ' -f4 /proc/$PPID/stat)"
    env.step(run(f"echo 1 > app.py; echo x > test_new.py; echo x > test_app.py; kill -9 {guest}; sleep 5"))
    assert env.session.restarts == can_be_killed
    assert state(env) == before
    assert changes_of(env) == [("app.py", [(1, 3, 1)])]
    assert env.rewrites == 1


# What it costs


@pytest.mark.parametrize("command", ["pdb p 1", "view f0.py"])
@pytest.mark.faults
def test_a_step_costs_the_same_in_a_large_repository(tmp_path: Path, sandbox: str, command: str) -> None:
    test = {"test_a.py": textwrap.dedent("def test_a():\n    assert 1\n"), ".debugreadonly": "test_*.py\n"}
    few = {f"f{n}.py": "x = 1\n" for n in range(10)}
    many = {**few, **{f"d{n % 100}/f{n}.py": "x = 1\n" for n in range(10_000)}}
    asked = {}
    for name, files in (("few", few), ("many", many)):
        env = start(sandbox, write(tmp_path / name, {**test, **files}), entrypoint="python -m pytest -q test_a.py")
        try:
            env.step(pdb("p 1"))
            env.step(run("true"))
            requests: list[str] = []
            connection = env.session._connect()
            submit = connection.submit

            def counted(
                handler: Any, op: str, *more: Any, submit: Any = submit, requests: Any = requests, **fields: Any
            ) -> int:
                requests.append(op)
                return int(submit(handler, op, *more, **fields))

            connection.submit = counted  # type: ignore[method-assign]
            env.step(command)
            asked[name] = requests
        finally:
            env.close()
    assert asked["few"] == asked["many"] and "walk" not in asked["many"]
