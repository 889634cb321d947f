"""What `debug-gym fix` applies to a person's own repositories, what it leaves out, and what it leaves alone."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from fixing import CALC, CTRL_C, RIGHT, TESTS, WRONG, at_a_terminal, ended, fixed, git, state, words
from support import ORDINARY_USER, run_debug_gym

from debug_gym_core import ToolCall
from debug_gym_core.cli.applying import apply as apply_patch
from debug_gym_core.cli.applying import by_hand
from debug_gym_core.cli.byproducts import without_byproducts
from debug_gym_core.errors import DebugGymError
from debug_gym_core.runs.provenance import commit
from debug_gym_core.testing.chat_server import chat_reply
from debug_gym_core.testing.model_server import ModelServer, Reply, Request
from debug_gym_core.testing.sample import ENTRYPOINT
from debug_gym_core.workspace import patch
from debug_gym_core.workspace.patch import FileState


def test_yes_applies_the_change_and_touches_nothing_else(project: Path) -> None:
    before = state(project)
    child = at_a_terminal(project.parent, words(project, RIGHT, more=("--entrypoint", ENTRYPOINT)))
    child.expect(r"1 of 2 tests of project fail: test_calc\.py::test_add")
    child.expect(r"-    return a - b\s+\+    return a \+ b")
    child.expect("all 2 tests pass with this change, on a clean copy")
    child.expect(r"Apply it to .*\[y/N\]: ")
    assert state(project) == before
    child.sendline("y")
    said, status = ended(child)
    assert "applied to " in said and status == 0
    assert state(project) == fixed(before)


ASKS = """
import pathlib, sys
from debug_gym_core.cli import fix
fix._offer(fix.Change(pathlib.Path("change"), True), pathlib.Path(sys.argv[1]), False)
"""


def test_the_question_is_wrapped_between_words(tmp_path: Path) -> None:
    child = at_a_terminal(tmp_path, ["-c", ASKS, str(tmp_path / "project")], columns=40, program=sys.executable)
    child.expect(r"Apply it to\r\n/\S+/project\? \[y/N\]: ")
    child.sendline("n")
    assert ended(child)[1] == 0


OWNER = (1234, 1235) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


def changed(
    directory: Path, mode: int, made: int = 0, name: str = "a.txt", owner: tuple[int, int] = OWNER
) -> tuple[Path, Path]:
    """A change to a file of these permissions, which may make it executable or give it a new name, and the file."""
    before, after = FileState(b"1\n2\n3\n"), FileState(b"1\n2\n4\n", 0o644 | made)
    change, file = directory / "change", directory / "project" / "a.txt"
    change.write_bytes(patch.make({"a.txt": before}, {name: after}))
    file.parent.mkdir()
    file.write_bytes(before.data)
    os.chown(file, *owner)
    file.chmod(mode)
    return change, file


@pytest.mark.parametrize("name", ["a.txt", "b \u00e9.txt"], ids=["changed", "renamed"])
@pytest.mark.parametrize(("mode", "made", "wanted"), [(0o600, 0, 0o600), (0o2664, 0, 0o2664), (0o640, 0o100, 0o750)])
def test_a_file_keeps_its_permissions(tmp_path: Path, mode: int, made: int, wanted: int, name: str) -> None:
    change, before = changed(tmp_path, mode, made, name)
    apply_patch(change, before.parent)
    file = before.with_name(name)
    found = file.stat()
    assert file.read_bytes() == b"1\n2\n4\n" and (name == before.name or not before.exists())
    assert (found.st_mode & 0o7777, found.st_uid, found.st_gid) == (wanted, *OWNER)


AS_AN_ORDINARY_USER = f"""
import os, pathlib, sys
from debug_gym_core.cli.applying import apply
from debug_gym_core.workspace import patch  # such a user may not read root's Python
os.setgroups([]), os.setgid({ORDINARY_USER}), os.setuid({ORDINARY_USER})
apply(*map(pathlib.Path, sys.argv[1:]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only its files can become another user's")
def test_a_file_that_cannot_be_its_owners_again_is_open_to_nobody_else() -> None:
    with tempfile.TemporaryDirectory() as temporary:  # such a user may not enter pytest's
        change, file = changed(Path(temporary), 0o4660, owner=(0, ORDINARY_USER))
        for directory in temporary, file.parent:
            os.chown(directory, ORDINARY_USER, ORDINARY_USER)
        subprocess.run([sys.executable, "-c", AS_AN_ORDINARY_USER, change, file.parent], check=True)
        found = file.stat()
        assert (found.st_mode & 0o7777, found.st_uid, file.read_bytes()) == (0o640, ORDINARY_USER, b"1\n2\n4\n")


@pytest.mark.parametrize("answer", ["n\n", "\n", CTRL_C])
@pytest.mark.people
def test_anything_else_applies_nothing_and_says_how_to(project: Path, answer: str) -> None:
    before = state(project)
    child = at_a_terminal(project, words(Path(), RIGHT))
    child.expect(r"\[y/N\]: ")
    child.send(answer)
    said, status = ended(child)
    assert status == (130 if answer == CTRL_C else 0)
    assert state(project) == before
    command = said.replace("\r\n", "").split("it is kept: ", 1)[1]
    subprocess.run(shlex.split(command), check=True, cwd="/")
    assert state(project) == fixed(before)


@pytest.mark.people
def test_what_git_ignores_is_left_as_it_was(project: Path) -> None:
    """What tests and tools leave behind, as coverage does, in files that were there or not; binary ones, too."""
    (project / ".coverage").write_bytes(b"\0before")
    (project / ".gitignore").write_text("*.log\n.coverage\n")
    before = state(project)
    trash = {
        "name": "bash",
        "arguments": {"command": "printf '\\0after' > .coverage; echo new > other.log; echo x > x.txt"},
    }
    done = run_debug_gym(words(project, RIGHT, trash, more=("--apply",)), project.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout.partition("graded")[2]
    assert "left out, as git ignores it: .coverage, other.log\n" in shown and "GIT binary patch" not in shown
    assert state(project) == {**fixed(before), "x.txt": b"x\n"}
    (project / "calc.py").write_text(CALC)
    done = run_debug_gym(words(project, trash), project.parent)
    assert done.returncode == 1 and "x.txt" in done.stdout


@pytest.mark.people
def test_nothing_but_what_git_ignores(project: Path) -> None:
    before = state(project)
    trash = {"name": "bash", "arguments": {"command": "echo new > other.log"}}
    done = run_debug_gym(words(project, trash), project.parent)
    assert done.returncode == 1 and "1 of 2 tests fail and nothing was changed" in done.stdout
    assert "other.log" in done.stdout and "not applied" not in done.stdout and state(project) == before


@pytest.mark.people
def test_a_change_that_needs_what_git_ignores_is_not_said_to_pass(project: Path) -> None:
    (project / "test_calc.py").write_text(
        TESTS + "\n\ndef test_log():\n    assert 'no' not in open('some.log').read()\n"
    )
    (project / "some.log").write_text("no\n")
    before = state(project)
    log = {"name": "bash", "arguments": {"command": "echo yes > some.log"}}
    for more, change in (((RIGHT,), "with this change"), ((), "and nothing was changed")):
        if not more:
            (project / "calc.py").write_text(CALC.replace("-", "+"))
            before = state(project)
        done = run_debug_gym(words(project, *more, log, more=("--apply",)), project.parent)
        fails = f"1 of 3 tests fail {change}; with what was left out, they pass: test_calc.py::test_log"
        assert done.returncode == 1 and fails in done.stdout, done.stdout + done.stderr
        assert "left out, as git ignores it: some.log" in done.stdout and state(project) == before
        assert ("not applied; it is kept: " in done.stdout) == bool(more)


def bash(command: str) -> dict[str, Any]:
    return {"name": "bash", "arguments": {"command": command}}


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.people
def test_what_the_tests_did_not_pass_with_is_not_applied(project: Path, at_once: bool) -> None:
    before = state(project)
    breaks = bash("echo 'import nothing_there' > conftest.py; mv notes.txt test_notes.py")
    done = run_debug_gym(words(project, RIGHT, breaks, more=("--apply",) if at_once else ()), project.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout[done.stdout.index("diff --git") :]
    assert "nothing_there" not in shown and "rename" not in shown and "-    return a - b" in shown
    left_out = "conftest.py (it configures pytest), test_notes.py (it is a test file)"
    assert f"\nleft out, as the tests ran without it: {left_out}\n" in shown
    assert "all 2 tests pass with this change, on a clean copy" in shown
    if not at_once:
        assert state(project) == before
        subprocess.run(shlex.split(shown.split("it is kept: ")[1]), check=True, cwd="/")
    assert state(project) == {name: data for name, data in fixed(before).items() if name != "notes.txt"}


@pytest.mark.people
def test_a_file_of_which_grading_drops_a_part_is_applied_as_it_was_graded(project: Path) -> None:
    pytests = '[tool.pytest.ini_options]\naddopts = "-q"\n'
    (project / "pyproject.toml").write_text(f"[tool.other]\nx = 1\n\n{pytests}")
    before = state(project)
    change = bash("sed -i 's/x = 1/x = 2/; s/-q/-q --deselect test_calc.py::test_zero/' pyproject.toml")
    done = run_debug_gym(words(project, RIGHT, change, more=("--apply",)), project.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    left_out = "left out, as the tests ran without it: pyproject.toml (pytest's sections in it are restored)\n"
    assert left_out in done.stdout
    expected = f"[tool.other]\nx = 2\n\n{pytests}".encode()
    assert state(project) == {**fixed(before), "pyproject.toml": expected}


@pytest.mark.people
def test_nothing_but_what_grading_drops(project: Path) -> None:
    before = state(project)
    done = run_debug_gym(words(project, bash("echo > test_calc.py"), more=("--apply",)), project.parent)
    assert done.returncode == 1
    assert "left out, as the tests ran without it: test_calc.py (it is a test file)\n" in done.stdout
    assert "1 of 2 tests fail and nothing was changed: test_calc.py::test_add" in done.stdout, done.stdout + done.stderr
    assert "not applied" not in done.stdout and state(project) == before


@pytest.mark.people
def test_what_grading_drops_and_what_git_ignores(project: Path) -> None:
    before = state(project)
    both = bash("echo 'import nothing_there' > conftest.py; echo new > other.log")
    done = run_debug_gym(words(project, RIGHT, both, more=("--apply",)), project.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left out, as the tests ran without it: conftest.py (it configures pytest)\n" in done.stdout
    assert "left out, as git ignores it: other.log\n" in done.stdout
    assert "all 2 tests pass with this change" in done.stdout and state(project) == fixed(before)


@pytest.mark.people
def test_a_change_of_what_was_changed_meanwhile_is_kept_where_a_part_is_dropped(project: Path, tmp_path: Path) -> None:
    turns = [ToolCall(RIGHT["name"], RIGHT["arguments"], "1"), ToolCall("bash", {"command": "echo > conftest.py"}, "2")]

    def answer(request: Request) -> Reply:
        asked = sum(message["role"] == "assistant" for message in request.body["messages"])
        if asked < len(turns):
            return chat_reply("So:", [turns[asked]])
        (project / "calc.py").write_text("def add(a, b):\n    return sum([a, b])\n")
        return chat_reply("That is all.")

    with ModelServer(answer) as server:
        entry = {"model": "served", "endpoint": f"{server.url}/v1", "api_key": "none"}
        (tmp_path / "llm.yaml").write_text(json.dumps({"mine": entry}))
        asking = ["fix", project, "--llm-config", tmp_path / "llm.yaml", "--terminal", "bubblewrap", "--apply"]
        done = run_debug_gym([*asking, "-p", "env.end_on_resolved=false"], tmp_path)
    assert done.returncode == 1 and f"error: nothing was applied, {project} has changed meanwhile: " in done.stderr
    kept = Path(shlex.split(done.stderr.split("The change is kept: ")[1])[0])
    assert "+    return a + b" in (tmp_path / kept).read_text() and "applied to" not in done.stdout
    assert (project / "calc.py").read_text() == "def add(a, b):\n    return sum([a, b])\n"


@pytest.mark.people
def test_nobody_to_ask(project: Path) -> None:
    before = state(project)
    done = run_debug_gym(words(project, RIGHT), project.parent)
    refused = "not applied, as standard input has no answer; it is kept: git -C"
    assert done.returncode == 0 and refused in done.stdout and state(project) == before
    done = run_debug_gym(words(project, RIGHT), project.parent, typed="n\n")
    assert done.returncode == 0 and f"Apply it to {project}? [y/N]: n\n" in done.stderr
    assert "\nnot applied; it is kept: " in done.stdout and state(project) == before
    done = run_debug_gym(words(project, RIGHT, more=("--apply",)), project.parent)
    assert done.returncode == 0 and f"applied to {project}" in done.stdout, done.stdout + done.stderr
    assert state(project) == fixed(before)
    (project / "calc.py").write_bytes(before["calc.py"])
    done = run_debug_gym(words(project, RIGHT), project.parent, typed="y\n")
    assert done.returncode == 0 and f"applied to {project}" in done.stdout and state(project) == fixed(before)
    done = run_debug_gym(words(project, RIGHT, more=("--apply",)), project.parent)
    assert done.returncode == 0 and done.stdout == "nothing to fix: the 2 tests of project pass\n"


@pytest.mark.people
def test_what_does_not_pass_is_not_applied_unasked(project: Path) -> None:
    before = state(project)
    done = run_debug_gym(words(project, WRONG, more=("--apply",)), project.parent)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 of 2 tests fail with this change: test_calc.py::test_add" in done.stdout
    assert "not applied; it is kept" in done.stdout and state(project) == before
    done = run_debug_gym(words(project), project.parent)
    assert done.returncode == 1 and "1 of 2 tests fail and nothing was changed" in done.stdout
    assert "the person left, or the script ended, before the tests passed" in done.stdout


@pytest.mark.people
def test_a_file_that_was_changed_meanwhile(project: Path) -> None:
    child = at_a_terminal(project.parent, words(project, RIGHT))
    child.expect(r"\[y/N\]: ")
    (project / "calc.py").write_text("def add(a, b):\n    return sum([a, b])\n")
    before = state(project)
    child.sendline("y")
    said, status = ended(child)
    assert status == 1 and "nothing was applied" in said and "calc.py" in said and "The change is kept: " in said
    assert state(project) == before


def test_a_change_that_puts_directories_in_the_place_of_files_has_byproducts_too(project: Path, tmp_path: Path) -> None:
    (project / ".gitignore").write_text("*.log\n")
    change = tmp_path / "change.diff"
    new = FileState(b"x\n", 0o644)
    made = [".gitignore/foo", "calc.py/bar", "some.log", f"{'d' * 250}/{'e' * 250}/a.py"]
    change.write_bytes(patch.make(dict.fromkeys(made), dict.fromkeys(made, new)))
    assert without_byproducts(change, project)[1] == ["some.log"]


def test_the_rest_of_an_index_that_is_split_is_looked_at_too(project: Path, tmp_path: Path) -> None:
    (project / ".gitignore").write_text("*.log\n")
    (project / "known.log").write_text("x\n")
    (project / "links").mkdir()
    (project / "links" / "a").write_text("x\n")
    git(project, "add", "-f", "known.log")
    git(project, "-c", "splitIndex.maxPercentChange=100", "update-index", "--split-index")
    git(project, "add", "links")
    git(project, "write-tree")  # which writes down the directories behind it
    [shared] = (project / ".git").glob("sharedindex.*")
    (project / ".git" / f"sharedindex.{'0' * 40}").write_bytes(b"an old one")
    index = (project / ".git" / "index").read_bytes()
    assert index.index(bytes.fromhex(shared.suffix[1:])) < index.rindex(b"link"), "the name of a file looks like it"
    change = tmp_path / "change.diff"
    before, after = FileState(b"x\n", 0o644), FileState(b"y\n", 0o644)
    old = {"known.log": before, "some.log": None}
    change.write_bytes(patch.make(old, dict.fromkeys(old, after)))
    assert without_byproducts(change, project)[1] == ["some.log"]


@pytest.mark.people
def test_programs_that_the_repositorys_settings_name_are_not_run(project: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    program.chmod(0o755)
    (project / ".gitattributes").write_text("*.py filter=mine\n")
    for setting in ("core.fsmonitor", "filter.mine.clean", "filter.mine.smudge"):
        git(project, "config", setting, str(program))
    change = tmp_path / "change.diff"
    change.write_bytes(
        patch.make({"calc.py": FileState((CALC + "# not committed\n").encode(), 0o644)}, {"calc.py": None})
    )
    assert without_byproducts(change, project) == (change, [])
    apply_patch(change, project)
    assert not (project / "calc.py").exists()
    made = (
        {"other.py": None, "some.log": None},
        {"other.py": FileState(b"x = 1\n", 0o644), "some.log": FileState(b"x\n", 0o644)},
    )
    change.write_bytes(patch.make(*made))
    kept, left_out = without_byproducts(change, project)
    assert left_out == ["some.log"]
    apply_patch(kept, project)
    assert (project / "other.py").read_text() == "x = 1\n"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("where", [".", "a part", "a part/git", "link", "outside"])
def test_the_command_to_apply_a_change_by_hand_does(project: Path, tmp_path: Path, where: str) -> None:
    """Also in a directory of a larger repository, for which git takes the paths wherever it is started."""
    (tmp_path / "outside").mkdir()
    for name in ("a part", "a part/git"):
        (project / name).mkdir()
    git(project / "a part/git", "init", "-q")
    (project / "link").symlink_to("a part")
    directory = tmp_path / where if where == "outside" else project / where
    (directory / "some.py").write_text("x = 1\n")
    change = tmp_path / "change.diff"
    change.write_bytes(patch.make({"some.py": FileState(b"x = 1\n")}, {"some.py": FileState(b"x = 2\n")}))
    subprocess.run(shlex.split(by_hand(change, directory)), check=True, cwd="/")
    assert (directory / "some.py").read_text() == "x = 2\n"


def test_git_is_not_asked_in_a_repository_that_wants_to_be(project: Path, tmp_path: Path) -> None:
    """An object that is not there is fetched by a program of the settings; a pipe is waited at."""
    (project / "lazy").mkdir()
    (project / "lazy" / ".gitignore").write_text("*.txt\n")
    git(project, "add", "lazy")
    name = git(project, "rev-parse", ":lazy/.gitignore").strip()
    git(project, "update-index", "--skip-worktree", "lazy/.gitignore")
    (project / "lazy" / ".gitignore").unlink()
    (project / ".git" / "objects" / name[:2] / name[2:]).unlink()
    program = f"touch {tmp_path}/ran #"
    settings = {"url": ".", "promisor": "true", "uploadpack": program}
    for key, value in {**{f"remote.origin.{key}": value for key, value in settings.items()}}.items():
        git(project, "config", key, value)
    git(project, "config", "core.repositoryFormatVersion", "1")
    git(project, "config", "extensions.partialClone", "origin")
    subprocess.run(["git", "check-ignore", "lazy/x.txt"], cwd=project, capture_output=True)
    (tmp_path / "ran").unlink()  # it was there
    (project / ".git" / "info" / "exclude").unlink(missing_ok=True)
    os.mkfifo(project / ".git" / "info" / "exclude")
    (project / "pipe").mkdir()
    os.mkfifo(project / "pipe" / ".gitignore")
    change = tmp_path / "change.diff"
    made = {"lazy/x.txt": FileState(b"1\n"), "pipe/x.py": FileState(b"1\n"), "some.log": FileState(b"1\n")}
    change.write_bytes(patch.make({}, made))
    kept, left_out = without_byproducts(change, project)
    assert left_out == ["some.log"] and not (tmp_path / "ran").exists()
    (project / "some.log").unlink()
    apply_patch(kept, project)
    assert (project / "lazy" / "x.txt").read_text() == "1\n"
    os.mkfifo(project / "lazy" / ".gitattributes")
    change.write_bytes(patch.make({}, {"lazy/y.txt": FileState(b"1\n")}))
    with pytest.raises(DebugGymError, match=r"lazy/\.gitattributes is a pipe: remove it"):
        apply_patch(change, project)


def test_an_added_work_tree_ignores_what_the_repository_does(project: Path, tmp_path: Path) -> None:
    git(project, "worktree", "add", "-q", "--detach", str(tmp_path / "added"))
    (project / ".git" / "info").mkdir(exist_ok=True)
    (project / ".git" / "info" / "exclude").write_text("*.tmp\n")
    change = tmp_path / "change.diff"
    names = ("a.tmp", "b.log", "c.py", "notes.txt")
    change.write_bytes(patch.make({}, {name: FileState(b"1\n") for name in names}))
    for directory in (project, tmp_path / "added"):
        assert without_byproducts(change, directory)[1] == ["a.tmp", "b.log"]


def test_a_package_in_somebodys_repository_has_no_commit(project: Path, tmp_path: Path) -> None:
    package = project / ".venv" / "lib" / "python3.11" / "site-packages" / "debug_gym_core"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    git(project, "add", "-f", ".venv")
    git(project, "update-index", "--fsmonitor")
    git(project, "config", "core.fsmonitor", f"touch {tmp_path}/ran #")
    assert commit(package) is None
    assert not (tmp_path / "ran").exists()
    git(project, "ls-files", "--error-unmatch", "calc.py")
    assert (tmp_path / "ran").exists()


@pytest.mark.people
def test_a_directory_of_a_larger_repository_and_one_of_none(project: Path, tmp_path: Path) -> None:
    inner = project / "packages" / "inner"
    plain = tmp_path / "plain"
    for directory in (inner, plain):
        directory.mkdir(parents=True)
        (directory / "calc.py").write_text(CALC)
        (directory / "test_calc.py").write_text(TESTS)
        above = (project / "calc.py").read_bytes()
        done = run_debug_gym(words(directory, RIGHT, more=("--apply",)), tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (directory / "calc.py").read_text() == CALC.replace("a - b", "a + b")
        assert (project / "calc.py").read_bytes() == above
