"""Read-only files end every step unchanged, whatever a program did; what programs change is seen."""

from __future__ import annotations

import json
import os
import shlex
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, python_in, reason_not_to_use, terminals

import debug_gym_core
from debug_gym_core import RepoEnv, Tool, hookimpl
from debug_gym_core.sandbox.replies import CommandLost

READONLY = "test_*.py\n/data/\n*.ro\n/sealed/*/\n"
FILES = {
    ".debugreadonly": READONLY,
    ".debugignore": "/hidden/\n",
    "app.py": "def double(number):\n    twice = number * 3\n    return twice\n",
    "test_app.py": "from app import double\n\n\ndef test_double():\n    assert double(2) == 4\n",
    "pkg/__init__.py": "",
    "pkg/inner/test_deep.py": "DEEP = 1\n",
    "pkg/inner/free.py": "FREE = 1\n",
    "pkg/conf/.debugreadonly": "*.cfg\n!mine.cfg\n",
    "pkg/conf/a.cfg": "a\n",
    "pkg/conf/mine.cfg": "mine\n",
    "data/a.txt": "a\n",
    "data/sub/b c.txt": "b\n",
    "sealed/box/x.txt": "x\n",
    "odd/with space.ro": "1\n",
    "odd/naïve ☃.ro": "2\n",
    "odd/new\nline.ro": "3\n",
    "odd/free.txt": "free\n",
    "tool.ro": "#!/bin/sh\n",
    "hidden/secret.py": "SECRET = 'hush'\n\n\ndef reveal(number):\n    inside = SECRET\n    return number / 0\n",
}


class Run(Tool):
    """Run a command, as a third party's tool might."""

    name = "run"

    def use(self, env: RepoEnv, command: str) -> str:
        """Run a command.

        Args:
            env: the environment
            command: for the shell
        """
        result = env.terminal.run(command, timeout=60)
        return f"exit status {result.exit_status}\n{result.output}"


class Start(Tool):
    """Start a program that goes on."""

    name = "start"

    def use(self, env: RepoEnv, command: str) -> str:
        """Start it.

        Args:
            env: the environment
            command: for the shell
        """
        self.process = env.terminal.process(["sh", "-c", command], channel=False)
        return "started"


class Seen(Tool):
    """Remembers which files changed."""

    name = "seen"

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.changes: list[tuple[str, list[tuple[int, int, int]]]] = []

    def use(self, env: RepoEnv) -> str:
        """Do nothing."""
        return "nothing"

    @hookimpl
    def on_file_changed(self, path: str, edits: Any) -> None:
        self.changes.append((path, [(edit.start, edit.old, edit.new) for edit in edits]))

    def take(self) -> list[tuple[str, list[tuple[int, int, int]]]]:
        taken, self.changes = self.changes, []
        return taken


OUTSIDE = f"/tmp/debug-gym-test-readonly-{os.getpid()}"
"""A directory that commands may use beside the workspace; `local` has no /tmp of its own."""


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def start(terminal: object, root: Path, **more: Any) -> RepoEnv:
    env = debug_gym_core.make(
        "repo",
        ["view", "rewrite", "listdir", "eval", "pdb", "bash", Run(), Start(), Seen()],
        terminal,
        path=root,
        entrypoint=more.pop("entrypoint", "python -m pytest -q -p no:cacheprovider"),
        python=python_in(terminal),
        allow_unsandboxed=True,
        **more,
    )
    env.reset(seed=0)
    return env


def run(command: str) -> dict[str, Any]:
    return {"name": "run", "arguments": {"command": command}}


def run_output(env: RepoEnv, command: str) -> str:
    return env.step(run(command))[0]["text"]


def pdb(command: str) -> dict[str, Any]:
    return {"name": "pdb", "arguments": {"command": command}}


def isolates(env: RepoEnv) -> bool:
    return env.terminal_name != "local"


@pytest.fixture(scope="module", params=terminals())
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RepoEnv]:
    """A live environment of each terminal, whose read-only files must be the same after every test."""
    reason = reason_not_to_use(request.param)
    if reason:
        pytest.skip(reason)
    root = write(tmp_path_factory.mktemp("repository"), FILES)
    (root / "tool.ro").chmod(0o755)
    (root / "odd/with space.ro").chmod(0o600)
    (root / "link.ro").symlink_to("app.py")
    docker = {"docker": {"image": os.environ.get("DEBUG_GYM_TEST_IMAGE")}}
    env = start(docker if request.param == "docker" else request.param, root)
    yield env
    env.close()


@pytest.fixture
def env(terminal: object, tmp_path: Path) -> Iterator[RepoEnv]:
    """A fresh environment of each terminal."""
    made = start(terminal, write(tmp_path / "repository", FILES))
    yield made
    made.close()


def state(env: RepoEnv) -> dict[str, tuple[Any, ...]]:
    """Kind, permissions and content of all that is read-only, and of what matches a read-only pattern."""
    found: dict[str, tuple[Any, ...]] = {}
    for entry in env.session.walk():
        is_dir = entry.kind == "directory"
        if not env.workspace.is_readonly(entry.path) and not (
            is_dir and env.workspace._rules.readonly(entry.path, True)
        ):
            continue
        if env.workspace._rules.ignored(entry.path, is_dir):
            continue
        content = entry.target if entry.kind == "link" else None if is_dir else env.session.read(entry.path)
        found[entry.path] = (entry.kind, entry.mode, content)
    return found


def changes_of(env: RepoEnv) -> list[tuple[str, list[tuple[int, int, int]]]]:
    seen = env.tools["seen"]
    assert isinstance(seen, Seen)
    return seen.take()


# What one process of the sandbox's user may try; each must fail at once where there is a sandbox.
DIRECT = {
    "write": "echo x > test_app.py",
    "append": "echo x >> pkg/inner/test_deep.py",
    "truncate": "truncate -s 0 test_app.py",
    "remove": "rm -f test_app.py",
    "rename": "mv test_app.py other",
    "rename the directory above": "mv pkg pkg2",
    "rename the inner directory above": "mv pkg/inner pkg/inner2",
    "shadow by a new directory": "mv pkg pkg2 && mkdir -p pkg/inner && echo x > pkg/inner/test_deep.py",
    "chmod and write": "chmod 666 test_app.py && echo x > test_app.py",
    "make it executable": "chmod 755 test_app.py",
    "link over it": "ln -sf app.py test_app.py",
    "hard link over it": "ln -f app.py test_app.py",
    "rename over it": "echo x > new && mv -f new test_app.py",
    "os.replace": "python -c \"import os; open('new', 'w').close(); os.replace('new', 'test_app.py')\"",
    "write through a hard link": "ln test_app.py hard && echo x >> hard",
    "write through a symbolic link": "ln -sf test_app.py soft && echo x >> soft",
    "new file in a read-only directory": "echo x > data/new",
    "new directory in a read-only directory": "mkdir data/new",
    "remove in a read-only directory": "rm -rf data/sub",
    "write in a read-only directory": "echo x >> 'data/sub/b c.txt'",
    "rename a read-only directory": "mv data data2",
    "rename above a read-only directory": "mv sealed sealed2",
    "replace a read-only directory by a link": (
        f"mkdir -p {OUTSIDE}; mv data {OUTSIDE}; ln -s {OUTSIDE}/data data; test -L data"
    ),
    "chmod a read-only directory": "chmod 700 data",
    "nested rules": "echo x > pkg/conf/a.cfg",
    "a name with a space": "echo x > 'odd/with space.ro'",
    "a name that is not ASCII": "echo x > odd/naïve*.ro",
    "a name with a newline": "echo x > $'odd/new\\nline.ro'",
    "the rule files": "echo > .debugreadonly",
    "nested rule files": "rm -f pkg/conf/.debugreadonly",
    "an executable": "echo x >> tool.ro",
    "map it": "python -c \"import mmap; f = open('test_app.py', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0:1] = b'X'\"",
    "time of change": "touch -d 2001-01-01 tool.ro",
}

# What the system lets pass, or only in part.
OTHERS = {
    "a link": "ln -sfn pkg link.ro",
    "a link becomes a file": "rm -f link.ro; echo x > link.ro",
    "new files that match": "echo x > test_new.py; mkdir -p fresh/deep; echo > fresh/deep/test_b.py; echo > fresh/x.ro",
    "a new directory that matches": "mkdir -p fresh/y.ro/z; echo x > fresh/y.ro/z/w",
    "a directory closed": "chmod 000 pkg",
    "an inner directory closed": "chmod 000 pkg/inner; chmod 000 odd",
    "a hard link from elsewhere": (
        f"mkdir -p {OUTSIDE}; ln test_app.py {OUTSIDE}/h && echo x >> {OUTSIDE}/h; rm -f {OUTSIDE}/h"
    ),
    "all of it": "rm -rf ./* .debug*; mkdir -p pkg; touch data test_app.py",
    "a background job": "(sleep 0.2; echo x > test_app.py; rm -f odd/*.ro) & wait",
    "a copy of all": f"cp -r . {OUTSIDE}; rm -rf pkg data odd; ln -s {OUTSIDE}/pkg pkg; ln -s {OUTSIDE}/odd odd",
    "the workspace's own mode": "chmod 755 .; echo x > test_app.py",
    "another name in a copied tree": "mkdir t; cp -al pkg t/ && echo x >> t/pkg/inner/test_deep.py",
}


def undo(env: RepoEnv) -> None:
    """Give what is not read-only its first content again."""
    env.terminal.run(f"rm -rf new other hard soft t pkg2 data2 sealed2 fresh test_new.py pkg/pkg odd/odd {OUTSIDE}")
    for path, text in FILES.items():
        if not env.workspace.is_readonly(path) and not path.startswith("hidden"):
            env.session.write(path, text.encode())
    env.step("seen")
    changes_of(env)


@pytest.mark.parametrize("attack", DIRECT)
def test_a_direct_change_fails_at_once_where_there_is_a_sandbox(shared: RepoEnv, attack: str) -> None:
    before = state(shared)
    result = shared.terminal.run(f"{DIRECT[attack]}\n")
    if isolates(shared):
        assert result.exit_status != 0, result.output
        assert state(shared) == before
    shared.step("seen")
    assert state(shared) == before
    undo(shared)


@pytest.mark.parametrize("attack", [*DIRECT, *OTHERS])
def test_readonly_files_end_every_step_unchanged(shared: RepoEnv, attack: str) -> None:
    before = state(shared)
    shared.step(run({**DIRECT, **OTHERS}[attack]))
    assert state(shared) == before
    undo(shared)
    assert state(shared) == before


def test_the_agent_is_told_what_was_put_back(shared: RepoEnv) -> None:
    observation, *_ = shared.step(run("echo > test_new.py; echo > fresh.ro; mkdir -p fresh; echo > fresh/a.ro"))
    said = [part for part in json.loads(observation["json"]) if part["source"] == "env"]
    assert said[0]["text"] == ("Read-only files were changed and are put back: fresh.ro, fresh/a.ro, test_new.py")
    assert said[0]["data"] == {"restored": ["fresh.ro", "fresh/a.ro", "test_new.py"]}
    undo(shared)


PROGRAM = """
import os, shutil
def attempt(do, *arguments):
    try:
        do(*arguments)
    except OSError:
        pass
attempt(lambda: open("test_app.py", "w").write("x"))
attempt(os.replace, "app.py", "test_app.py")
attempt(os.rename, "pkg", "pkg9")
attempt(os.chmod, "tool.ro", 0o600)
attempt(shutil.rmtree, "data")
attempt(os.symlink, "/etc", "test_link.py")
attempt(lambda: open("test_made.py", "w").write("x"))
"""


def test_code_under_eval_changes_nothing_readonly(env: RepoEnv) -> None:
    before = state(env)
    env.workspace.write_bytes("app.py", PROGRAM.encode() + b"def double(number):\n    return 4\n")
    observation, *_ = env.step("eval")
    assert state(env) == before
    assert "test_made.py" in observation["text"]  # it is told
    # The program moves itself away: where nothing hinders it, a clean copy has nothing left to test.
    assert env.score == isolates(env)


@pytest.mark.parametrize("persistent", [False, True])
def test_pdb_commands_change_nothing_readonly(env: RepoEnv, persistent: bool) -> None:
    before = state(env)
    env.step(pdb("b app.py:2\nc"))
    commands = ["!open('test_app.py','w').write('x')", "!import os; os.rename('pkg', 'pkg9')", "!os.remove('tool.ro')"]
    if persistent:
        commands = ["\n".join(commands)]
    for command in commands:
        env.step(pdb(command))
        assert state(env) == before
    assert env.step(pdb("p number"))[0]["text"].startswith("2")  # the session went on


@pytest.mark.parametrize("tool", ["bash", "pdb", "eval"])
def test_what_a_tool_lets_be_written_to_a_readonly_file_is_not_seen_in_the_next_step(env: RepoEnv, tool: str) -> None:
    attack = "open('test_app.py', 'w').write('x')"
    if tool == "eval":
        env.step({"name": "run", "arguments": {"command": f'echo "{attack}" > app.py'}})
        env.step("eval")
    elif tool == "pdb":
        env.step(pdb("b app.py:2\nc"))
        env.step(pdb(f"!{attack}"))
    else:
        env.step({"name": "bash", "arguments": {"command": "cd pkg"}})
        env.step({"name": "bash", "arguments": {"command": f'cd ..; python -c "{attack}"'}})
    if not isolates(env):
        assert "Read-only files were changed and are put back: test_app.py" in env.last_text
    seen = env.step({"name": "view", "arguments": {"path": "test_app.py", "line_numbers": False}})[0]["text"]
    assert FILES["test_app.py"].rstrip("\n") in seen, seen


def test_a_live_program_changes_nothing_readonly_for_longer_than_a_step(env: RepoEnv) -> None:
    before = state(env)
    env.step({"name": "start", "arguments": {"command": "while :; do echo x > test_new.py; sleep 0.05; done"}})
    for _ in range(100):
        if env.session.stat("test_new.py"):
            break
        env.terminal.run("sleep 0.05")
    env.step("seen")
    start = env.tools["start"]
    assert isinstance(start, Start)
    start.process.kill()
    env.step("seen")
    assert state(env) == before


def test_what_is_not_readonly_can_be_changed_as_ever(shared: RepoEnv) -> None:
    result = shared.terminal.run(
        "set -e; echo 1 > app.py; echo 2 > pkg/inner/new.py; mv pkg/inner/new.py pkg/inner/newer.py;"
        "rm pkg/inner/newer.py; mv pkg/inner/free.py pkg/free.py; mv pkg/free.py pkg/inner/free.py; mkdir pkg/inner/d;"
        "rmdir pkg/inner/d; chmod 600 pkg/conf/mine.cfg; echo 3 > pkg/conf/mine.cfg; chmod 644 pkg/conf/mine.cfg;"
        "echo x > new; mv new other; mv other app.py; echo 1 >> app.py; cat test_app.py data/a.txt link.ro > /dev/null;"
        "ls data/sub odd pkg/inner > /dev/null; python -c 'import pkg.inner.test_deep';"
        "rm odd/free.txt; sed -i s/m/n/ pkg/conf/mine.cfg"
    )
    assert result.exit_status == 0, result.output
    shared.workspace.write_bytes("odd/free.txt", b"again\n")
    shared.workspace.write_bytes("pkg/inner/made.py", b"1\n")
    shared.workspace.remove("pkg/inner/made.py")
    patch = shared.patch
    assert b"app.py" in patch and b"mine.cfg" in patch and b"test_" not in patch
    undo(shared)
    shared.workspace.apply(patch)
    assert shared.patch == patch
    undo(shared)


def test_grading_agrees_with_the_episode(env: RepoEnv) -> None:
    env.workspace.write_bytes("app.py", b"def double(number):\n    return number * 2\n")
    env.workspace.write_bytes("pkg/inner/more.py", b"1\n")
    env.workspace.remove("pkg/inner/free.py")
    env.step("eval")
    assert (env.score, env.resolved) == (1, True)
    grade = env.grade()
    assert grade.resolved and grade.score == 1


@pytest.mark.faults
def test_a_thousand_readonly_files(terminal: object, tmp_path: Path) -> None:
    files = {f"d{n % 25}/f{n}.ro": f"{n}\n" for n in range(1000)}
    env = start(terminal, write(tmp_path, {".debugreadonly": "*.ro\n", "test_a.py": "def test_a(): pass\n", **files}))
    try:
        before = state(env)
        assert len(before) == 1001
        env.step(run("for f in */*.ro; do echo x >> $f; done; rm -rf d3; mv d4 d5/; echo > d6/new.ro"))
        assert state(env) == before
        noted = [note for note in env.notes if note.startswith("read-only")]
        assert [note.split(";")[0] for note in noted] == (
            ["read-only: more than 300 mounts would be needed"] if env.terminal_name == "bubblewrap" else []
        )
    finally:
        env.close()


# What is seen


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
    guest = "$(cut -d' ' -f4 /proc/$PPID/stat)"
    env.step(run(f"echo 1 > app.py; echo x > test_new.py; echo x > test_app.py; kill -9 {guest}; sleep 5"))
    assert env.session.restarts == (env.terminal_name != "bubblewrap")  # there nothing can kill it
    assert state(env) == before
    assert changes_of(env) == [("app.py", [(1, 3, 1)])]
    assert env.rewrites == 1


# A model: random commands of a shell, and what must hold after each step.

NAMES = [
    "app.py",
    "test_app.py",
    "pkg",
    "pkg/inner",
    "pkg/inner/test_deep.py",
    "pkg/inner/free.py",
    "data",
    "data/a.txt",
]
NAMES += ["new", "new/test_n.py", "odd/free.txt", "pkg/conf/a.cfg", "data/sub", "x.ro"]
NAME = st.sampled_from(NAMES)
COMMANDS = st.one_of(
    st.builds("echo {} > {}".format, st.integers(0, 3), NAME),
    st.builds("echo {} >> {}".format, st.integers(0, 3), NAME),
    st.builds("rm -rf {}".format, NAME),
    st.builds("mkdir -p {}".format, NAME),
    st.builds("mv -T {} {}".format, NAME, NAME),
    st.builds("cp -rT {} {}".format, NAME, NAME),
    st.builds("ln -sfnT {} {}".format, NAME, NAME),
    st.builds("ln -fT {} {}".format, NAME, NAME),
    st.builds("chmod {} {}".format, st.sampled_from(["000", "644", "755", "777", "400"]), NAME),
)


@examples(25)
@given(steps=st.lists(st.lists(COMMANDS, min_size=1, max_size=6), min_size=1, max_size=4))
@pytest.mark.grading
def test_random_commands_against_a_model(shared: RepoEnv, steps: list[list[str]]) -> None:
    undo(shared)
    before = state(shared)
    model = texts(shared)
    for commands in steps:
        shared.step(run("; ".join(commands) + "; true"))
        assert state(shared) == before
        now = texts(shared, model)
        told = changes_of(shared)
        differ = {path for path in {*model, *now} if model.get(path) != now.get(path)}
        assert {path for path, _ in told} == differ
        assert len(told) == len(differ)
        for path, edits in told:
            assert applied(model.get(path, b""), edits) == len(now.get(path, b"").splitlines())
        model = now
    shared.terminal.run("chmod -R u+rwX . ; find . -type l ! -name link.ro -delete; rm -rf new x.ro")
    shared.terminal.run("for d in pkg pkg/inner pkg/conf odd; do test -d $d || rm -rf $d; mkdir -p $d; done")
    for name in ("app.py", "pkg/inner/free.py", "odd/free.txt"):
        shared.terminal.run(f"rm -rf {name}")
    undo(shared)


def texts(env: RepoEnv, last: Mapping[str, bytes] = MappingProxyType({})) -> dict[str, bytes]:
    """Content of all files that are not ignored; the last known one of those that cannot be read."""
    found = {}
    for entry in env.session.walk():
        if entry.kind == "file" and not env.workspace.is_ignored(entry.path):
            try:
                found[entry.path] = env.session.read(entry.path)
            except PermissionError:
                found |= {entry.path: last[entry.path]} if entry.path in last else {}
    return found


def applied(old: bytes, edits: list[tuple[int, int, int]]) -> int:
    return len(old.splitlines()) + sum(new - gone for _, gone, new in edits)


# Ignored files


def test_the_source_of_ignored_files_is_not_shown(env: RepoEnv) -> None:
    call = "import sys\nsys.path.insert(0, 'hidden')\nfrom secret import reveal\n"
    call += "\n\ndef double(number):\n    return reveal(number)\n"
    env.workspace.write_bytes("app.py", call.encode())
    text = env.step("eval")[0]["text"]
    assert "hidden/secret.py:6 in reveal" in text and "ZeroDivisionError" in text
    shown = text.split("Output (")[0]
    assert "hush" not in shown and "inside" not in shown
    for commands in ("b app.py:7\nc\ns", "b app.py:7\nc\ns\nn\nl", "b app.py:7\nc\ns\nw\nll\nsource reveal"):
        env.step("pdb cl")
        env.step("pdb q")
        text = env.step(pdb(commands))[0]["text"]
        assert "hidden/secret.py" in text and "is ignored in th" in text
        assert "SECRET" not in text and "hush" not in text and "inside" not in text


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
