"""Whatever an agent does, with tools or in a shell: edits keep what they do not touch, and the patch is the workspace.

Repositories and what is done to them are generated; git on the other side must make of the original exactly the files
that the agent left.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, reason_not_to_use

from debug_gym_core import RepoEnv, Task, ToolCall
from debug_gym_core.plugins import default_plugins
from debug_gym_core.workspace.lines import split
from debug_gym_core.workspace.patch import takes_name

pytestmark = pytest.mark.grading

File = tuple[str, bytes, bool]
"""Kind, content or target, whether it is executable."""
Tree = dict[str, File]

NAMES = [
    *("a", "b.py", "c.txt", "a space", " lead", "trail ", 'quote"d', "it's", "back\\slash", "tab\t", "line\nend"),
    *("-dash", "--help", "#hash", "#", "%41", "*", "[x]", "a:b", "~", "$HOME", "caf\u00e9", "cafe\u0301", "caf\udce9"),
    *("\u2028", "\u202e", "\x7f", "\x01", "\U0001f600", "a" * 200, "ends.", "...", "b/a.py", "-d/-f", "d d/e e"),
]
LONG = [f"line {number} of a longer file" for number in range(60)]
PIECES = [
    *("", "x = 1", "    return y", "caf\u00e9", "\u4e16\u754c", "# coding: latin-1", "a\x0cb", "a\x0bb", "a\u2028b"),
    *("a\x85b", "nul\x00nul", "\x1b[31m", "\ufeff", "tail  ", "\ttab"),
    *("-- ", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "\\ No newline"),
    *("w" * 70_000, "\U0001f600", "=======", "<<<<<<< x", "Binary files differ", "x" * 300),
]
ENDS = ["\n", "\r\n", "\r", "\n\n", ""]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "shift_jis"]


def encoded(pieces: list[tuple[str, str]], encoding: str, end: str) -> bytes:
    """A text with some line ends, or everywhere the same one."""
    text = "".join(piece + (end or own) for piece, own in pieces)
    return text.encode(encoding, "replace")


texts = st.builds(
    encoded,
    st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(ENDS)), max_size=6),
    st.sampled_from(ENCODINGS),
    st.sampled_from(["", "\n", "\r\n"]),
)
long_texts = st.builds(
    lambda end, gone, tail: (end.join(LONG[:gone] + LONG[gone + 1 :]) + tail).encode(),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(0, 60),
    st.sampled_from(["", "\n", "\r\n", "more"]),
)
contents = st.one_of(texts, texts, long_texts, st.binary(max_size=40), st.just(b""))
names = st.sampled_from(NAMES)
paths = st.lists(names, min_size=1, max_size=2).map("/".join)
# No link to itself: git apply cannot put a directory in its place ("Too many levels of symbolic links").
targets = st.sampled_from(["target", "../out", "/etc/passwd", "b.py", "caf\udce9 \n", "d d"])
entries = st.one_of(
    st.tuples(st.just("file"), contents, st.booleans()),
    st.tuples(st.just("file"), contents, st.booleans()),
    st.builds(lambda target: ("link", encode(target), False), targets),
)


def consistent(tree: Tree) -> Tree:
    """Without what would need a path to be a file and a directory."""
    return {path: entry for path, entry in tree.items() if not any(other.startswith(path + "/") for other in tree)}


trees = st.dictionaries(paths, entries, max_size=6).map(consistent)
codes = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(ENDS)), max_size=3).map(
    lambda pieces: "".join(piece + end for piece, end in pieces)
)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("rewrite"), st.integers(0, 9), st.integers(-1, 7), st.integers(0, 3), codes),
        st.tuples(st.just("edit"), st.integers(0, 9), st.integers(0, 40), st.integers(1, 20), codes),
        st.tuples(st.just("create"), paths, contents),
        st.tuples(st.just("append"), st.integers(0, 9), contents),
        st.tuples(st.sampled_from(["delete", "+x", "-x", "dos", "binary"]), st.integers(0, 9)),
        st.tuples(st.sampled_from(["rename", "copy", "move directory"]), st.integers(0, 9), paths),
        st.tuples(st.just("link"), paths, targets),
        st.tuples(st.just("to directory"), st.integers(0, 9), names, contents),
        st.tuples(st.just("to file"), st.integers(0, 9), contents),
    ),
    max_size=8,
)

SHELL = {
    "create": 'mkdir -p -- "$(dirname -- "$1")" && [ ! -d "$1" ] && rm -f -- "$1" && cat > "$1"',
    "append": '[ -f "$1" ] && cat >> "$1"',
    "delete": 'rm -rf -- "$1"',
    "+x": '[ -h "$1" ] || chmod 755 -- "$1"',
    "-x": '[ -h "$1" ] || [ -d "$1" ] || chmod 600 -- "$1"',
    "dos": '[ ! -h "$1" ] && sed -i "s/$/\\r/" -- "$1"',
    "binary": '[ ! -h "$1" ] && head -c 3000 /dev/zero >> "$1"',
    "rename": 'mkdir -p -- "$(dirname -- "$2")" && mv -T -- "$1" "$2"',
    "copy": 'mkdir -p -- "$(dirname -- "$2")" && cp -a -T -- "$1" "$2"',
    "move directory": 'mv -T -- "$(dirname -- "$1")" "$2"',
    "link": 'mkdir -p -- "$(dirname -- "$1")" && [ ! -d "$1" ] && ln -sfn -- "$2" "$1"',
    "to directory": 'rm -rf -- "$1" && mkdir -- "$1" && cat > "$1/$2"',
    "to file": 'd=$(dirname -- "$1"); [ "$d" = . ] || { rm -rf -- "$d" && cat > "$d"; }',
}
"""What is done in a shell; each may be refused where it makes no sense, as it is to an agent."""


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def write(root: Path, tree: Tree) -> None:
    """Make files of a tree."""
    for path, (kind, data, executable) in tree.items():
        place = Path(os.fsdecode(os.fsencode(root) + b"/" + encode(path)))
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind == "link":
            place.symlink_to(os.fsdecode(data))
        else:
            place.write_bytes(data)
            place.chmod(0o755 if executable else 0o644)


def read(root: Path) -> Tree:
    """All files below a directory but for git's own."""
    found: Tree = {}
    for place in root.rglob("*"):
        path = os.fsencode(place.relative_to(root)).decode("utf-8", "surrogateescape")
        if path.split("/")[0] == ".git" or (place.is_dir() and not place.is_symlink()):
            continue
        if place.is_symlink():
            found[path] = ("link", os.fsencode(place.readlink()), False)
        else:
            found[path] = ("file", place.read_bytes(), bool(place.stat().st_mode & 0o100))
    return found


def live(env: RepoEnv) -> Tree:
    """All files of the workspace, as they are in the sandbox."""
    found: Tree = {}
    for entry in env.session.walk():
        if entry.kind == "link":
            found[entry.path] = ("link", encode(entry.target or ""), False)
        elif entry.kind == "file":
            found[entry.path] = ("file", env.session.read(entry.path), bool(entry.mode & 0o100))
    return found


def git(directory: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git as a user without any configuration of their own does."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(directory.parent),
    }
    done = subprocess.run(["git", *arguments], input=stdin, cwd=directory, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return done.stdout


@dataclass
class Case:
    """One original, and what is done to it."""

    env: RepoEnv
    original: Tree

    def act(self, operation: tuple[Any, ...]) -> None:
        """Do one thing; what it does not touch stays as it was."""
        what, *rest = operation
        known = live(self.env)
        existing = sorted(known) or ["none"]
        if isinstance(rest[0], int):
            rest[0] = existing[rest[0] % len(existing)]
        path = rest[0]
        if what in ("rewrite", "edit"):
            if what in self.env.tools:
                self.tool(what, known, path, *rest[1:])
            return
        words = [f"./{one}" if isinstance(one, str) else "" for one in rest]
        if what in ("link", "to directory"):
            words[1] = rest[1]
        data = rest[-1] if isinstance(rest[-1], bytes) else b""
        self.env.terminal.run(["sh", "-c", SHELL[what], "sh", *filter(None, words)], stdin=data, timeout=30)

    def tool(self, name: str, known: Tree, path: str, first: int, length: int, code: str) -> None:
        """Use a tool that edits."""
        old = known[path][1] if path in known and known[path][0] == "file" else None
        lines = split(old or b"")
        arguments: dict[str, Any]
        if name == "rewrite":
            arguments = {"path": path, "new_code": code}
            if first >= 0:
                arguments["start"] = min(first, len(lines)) + 1
                arguments["end"] = min(arguments["start"] + length, max(len(lines), 1)) if length else None
        else:
            text = (old or b"").decode("utf-8", "surrogateescape")
            start, end = min(first, len(text)), min(first + length, len(text))
            start -= text[start - 1 : start + 1] == "\r\n"  # line ends are whole: the file's, whichever are given
            end += text[end - 1 : end + 1] == "\r\n"
            arguments = {"path": path, "old": text[start:end], "new": code}
        self.env.step(ToolCall(name, arguments))
        assert self.env.failure is None
        now = live(self.env)
        changed = {one for one in {*known, *now} if known.get(one) != now.get(one)}
        seen = self.env.last_observations[0]
        if seen.error or old is None:
            assert len(changed) <= (not seen.error), (arguments, changed)
            return
        assert changed <= {path}, (arguments, changed)
        kind, new, executable = now[path]
        assert (kind, executable) == ("file", known[path][2])
        if name == "rewrite" and first >= 0:
            start, end = arguments["start"], arguments["end"] or arguments["start"]
            before, after = b"".join(lines[: start - 1]), b"".join(lines[end:])
            assert new.startswith(before) and new.endswith(after), (old, new, arguments)
            assert len(new) <= len(before) + len(after) + 4 * len(encode(code)) + 16, (old, new, arguments)
        elif name == "edit":
            what = encode(arguments["old"])
            place = old.find(what)
            assert new.startswith(old[:place]) and new.endswith(old[place + len(what) :]), (old, new, arguments)

    def is_kept(self) -> None:
        """The host knows what another sandbox would have to be made of, from what was touched alone."""
        self.env.step(ToolCall("no_such_tool"))
        known, changes = self.env._sandbox.kept.changes, self.env.workspace.changes()
        assert known is not None
        assert (dict(known), known.left_out) == (dict(changes), changes.left_out)

    def check(self) -> None:
        """Hold the patch against the workspace."""
        reached, patch = live(self.env), self.env.patch
        assert bool(patch) == (reached != self.original)
        assert not self.env.workspace.changes().left_out
        for way in (self.applied, self.applied_to_index):
            assert way(patch) == reached
        # What git does to line ends it does before it compares a binary file with the patch's idea of it.
        if b"GIT binary patch" not in patch:
            value = ("true", "input")[len(patch) % 2]
            made = self.applied(patch, f"core.autocrlf={value}")
            assert normal(made) == normal(reached)
            if value == "true":
                kept = {path: entry for path, entry in reached.items() if not is_normalised(entry)}
                assert {path: made[path] for path in kept} == kept
        self.env.reset()
        assert live(self.env) == self.original and self.env.patch == b""
        self.env.workspace.apply(patch)
        assert live(self.env) == reached
        assert self.env.patch == patch

    def applied(self, patch: bytes, setting: str = "core.autocrlf=false") -> Tree:
        """What git makes of a copy of the original."""
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            write(root, self.original)
            if patch:
                git(root, "-c", setting, "apply", "--whitespace=nowarn", "-", stdin=patch)
            return read(root)

    def applied_to_index(self, patch: bytes) -> Tree:
        """What git makes of a repository with the original, in its index and its work tree."""
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            write(root, self.original)
            git(root, "init", "-q")
            git(root, "add", "-A", "-f")
            if patch:
                git(root, "apply", "--index", "--whitespace=nowarn", "-", stdin=patch)
            assert git(root, "diff-files", "--name-only") == b""
            assert git(root, "ls-files", "-o") == b""
            return read(root)


def normal(tree: Tree) -> Tree:
    """A tree with line ends as git's `core.autocrlf` may make them."""
    return {path: (kind, data.replace(b"\r\n", b"\n"), mode) for path, (kind, data, mode) in tree.items()}


def is_normalised(entry: File) -> bool:
    """Whether `core.autocrlf` tells git to touch a file's line ends: a text with LF in it."""
    kind, data, _ = entry
    return kind == "file" and b"\n" in data.replace(b"\r\n", b"")


def open_env(root: Path, terminal: Any) -> RepoEnv:
    tools = [name for name in ("rewrite", "edit") if name in default_plugins().tools]
    env = RepoEnv(Task("tests", "patch", root, "python -c pass", max_score=1), tools, terminal, trusted=True)
    env.reset(seed=0)
    return env


def play(terminal: Any, original: Tree, done: list[tuple[Any, ...]]) -> None:
    """One episode, from the original to the check."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "repo"
        root.mkdir()
        write(root, original)
        env = open_env(root, terminal)
        try:
            case = Case(env, original)
            assert live(env) == original and env.patch == b""
            for operation in done:
                case.act(operation)
                case.is_kept()
            case.check()
        finally:
            env.close()
        assert read(root) == original


@examples(150)
@given(trees, operations)
def test_the_patch_is_the_workspace(original: Tree, done: list[tuple[Any, ...]]) -> None:
    play("local", original, done)


FILE = ("file", b"x = 1\n", False)
OUTWARDS = ("link", b"/etc/passwd", False)
SEVERAL: dict[str, tuple[Tree, list[tuple[Any, ...]]]] = {
    "a link becomes a directory": ({"a": OUTWARDS, "b": FILE}, [("to directory", 0, "c", b"y\n"), ("link", "b", "x")]),
    "a link in a directory becomes one": ({"d/a": OUTWARDS}, [("to directory", 0, "c", b"y\n")]),
    "a directory becomes a link": ({"d/a": FILE, "d/b": FILE}, [("move directory", 0, "e"), ("link", "d", "/etc")]),
    "a directory becomes a file": ({"d/a": FILE, "e": FILE}, [("to file", 0, b"x = 1\n")]),
    "a file moves below its name": ({"a": FILE}, [("rename", 0, "b"), ("rename", 0, "a/c")]),
    "an empty file where a name ends with a space": ({}, [("create", "trail /c.txt", b""), ("+x", 0)]),
    "one that only becomes a program there": ({"trail /c d": FILE}, [("+x", 0)]),
    "binary files change names": ({"a": ("file", b"\0" * 99, True)}, [("rename", 0, "\n/b"), ("binary", 0)]),
}
"""What is rare among what is generated, and what was wrong once."""


@pytest.mark.parametrize(("original", "done"), SEVERAL.values(), ids=SEVERAL)
def test_what_is_rare(original: Tree, done: list[tuple[Any, ...]]) -> None:
    play("local", original, done)


@pytest.mark.parametrize("name", ["bubblewrap", "docker"])
def test_the_patch_is_the_workspace_in_a_sandbox(name: str) -> None:
    reason = reason_not_to_use(name)
    if reason:
        pytest.skip(reason)
    terminal = {"docker": {"image": os.environ["DEBUG_GYM_TEST_IMAGE"]}} if name == "docker" else name

    @examples(24)
    @given(trees, operations)
    def check(original: Tree, done: list[tuple[Any, ...]]) -> None:
        play(terminal, original, done)

    check()


GITS_NAMES = [
    *(".git", ".GIT/x", "a/.Git", ".git ", ".git. .", ".git:x", "git~1", "GIT~1/x", "a/git~1 ", "a\\.git", "a\\git~1"),
    *(".gi\u200ct", "\u200e.git/x", ".git\ufeff", "a\\.git\\x", ".git\\x"),
    *(".gitignore", "git", "git~2", "agit~1", ".gitx", "a.git", "x.git/y", ".github/x", "a\\b", "a\u200cb", ".git-"),
    *(".gitmodules", "a/.gitmodules", ".GitModules", ".gitmodules ", "gitmod~1", "gitmod~5", "gi7eba~1", "gi7eb~12"),
]


@pytest.mark.parametrize("mode", ["100644", "120000"])
def test_names_that_git_refuses_are_known(tmp_path: Path, mode: str) -> None:
    answers = {}
    for name in GITS_NAMES:
        quoted = "".join(f"\\{byte:03o}" for byte in encode(name))
        patch = f'diff --git "a/{quoted}" "b/{quoted}"\nnew file mode {mode}\n--- /dev/null\n+++ "b/{quoted}"\n'
        command = ["git", "-c", "core.protectHFS=true", "apply", "--cached", "-"]
        git(tmp_path, "init", "-q")
        done = subprocess.run(
            command, input=f"{patch}@@ -0,0 +1 @@\n+x\n".encode(), cwd=tmp_path, capture_output=True, text=False
        )
        answers[name] = done.returncode == 0
        shutil.rmtree(tmp_path / ".git")
    assert {name: takes_name(name, link=mode == "120000") for name in GITS_NAMES} == answers
    assert len(set(answers.values())) == 2


def test_a_name_that_git_refuses_does_not_cost_the_patch(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\n")
    env = open_env(tmp_path, "local")
    try:
        env.terminal.run("mkdir .GIT a; touch .GIT/config 'git~1' 'a/.git '; ln -s x .gitmodules; echo y = 2 >> a.py")
        assert sorted(env.workspace.changes().left_out) == [".GIT/config", ".gitmodules", "a/.git ", "git~1"]
        assert Case(env, read(tmp_path)).applied(env.patch) == {"a.py": ("file", b"x = 1\ny = 2\n", False)}
    finally:
        env.close()
