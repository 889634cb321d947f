"""Read-only files end every step unchanged, whatever a program did; of ignored ones no source is shown."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from readonly_repository import FILES, Start, changes_of, fresh_env, pdb, run, start, state, write
from support import examples, reason_not_to_use, repeated, terminals

from debug_gym_core import RepoEnv

OUTSIDE = f"/tmp/debug-gym-test-readonly-{os.getpid()}"
"""A directory that commands may use beside the workspace; `local` has no /tmp of its own."""


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
    yield from fresh_env(terminal, tmp_path)


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


@pytest.mark.parametrize("attack", [*OTHERS, *repeated("grading", *DIRECT)])
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


@pytest.mark.parametrize("persistent", [False, *repeated("grading", True)])
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


@pytest.mark.parametrize("tool", ["bash", *repeated("grading", "pdb", "eval")])
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


@pytest.mark.grading
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


@pytest.mark.debugger
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
