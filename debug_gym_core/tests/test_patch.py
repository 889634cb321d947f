"""Patches: git on the other side must make of the old files exactly the new ones."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from debug_gym_core.errors import ActionError, RequirementError
from debug_gym_core.workspace import patch as patches
from debug_gym_core.workspace.snapshot import FileState

LONG = b"".join(b"line %d\n" % number for number in range(40))

names = st.sampled_from(
    ["a", "b.py", "a space", 'quote"d', "caf\u00e9", "caf\udce9", "line\nend", "tab\t", "back\\slash", "-dash", "a b/c"]
)
paths = st.lists(names, min_size=1, max_size=2).map("/".join)
files = st.builds(
    FileState,
    st.one_of(
        st.binary(max_size=20),
        st.sampled_from(
            [LONG, LONG + b"more\n", LONG.replace(b"\n", b"\r\n"), LONG[:-1], b"\x00bin" + LONG, b"a\x0cb\n"]
        ),
    ),
    st.sampled_from([0o644, 0o755, 0o600]),
)
# No link to itself: git apply cannot make a directory of one ("Too many levels of symbolic links").
targets = st.sampled_from([b"target", b"../out", b"/etc/passwd", b"caf\xe9x"])
links = targets.map(lambda to: FileState(to, 0o777, "link"))


def consistent(tree: dict[str, FileState]) -> dict[str, FileState]:
    """Without what would need a path to be a file and a directory."""
    return {path: state for path, state in tree.items() if not any(other.startswith(path + "/") for other in tree)}


trees = st.dictionaries(paths, st.one_of(files, files, links), max_size=4).map(consistent)


def write(root: Path, tree: dict[str, FileState]) -> None:
    for path, state in tree.items():
        place = Path(os.fsdecode(os.fsencode(root) + b"/" + path.encode("utf-8", "surrogateescape")))
        place.parent.mkdir(parents=True, exist_ok=True)
        if state.kind == "link":
            place.symlink_to(os.fsdecode(state.data))
        else:
            place.write_bytes(state.data)
            place.chmod(state.mode)


def read(root: Path) -> dict[str, tuple[str, bytes, bool]]:
    """All files: kind, content, executable."""
    found = {}
    for place in root.rglob("*"):
        path = str(place.relative_to(root))
        if place.is_symlink():
            found[path] = ("link", os.fsencode(place.readlink()), False)
        elif place.is_file():
            found[path] = ("file", place.read_bytes(), bool(place.stat().st_mode & 0o100))
    return found


def facts(tree: dict[str, FileState]) -> dict[str, tuple[str, bytes, bool]]:
    return {path: (state.kind, state.data, state.executable) for path, state in tree.items()}


@examples(50)
@given(trees, trees)
def test_git_makes_the_new_files_of_the_old_ones(before: dict[str, FileState], after: dict[str, FileState]) -> None:
    patch = patches.make(before, after)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        write(root, before)
        if patch:
            command = ["git", "apply", "--whitespace=nowarn", "-"]
            environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
            subprocess.run(command, input=patch, cwd=root, check=True, env=environment)
        assert read(root) == facts(after)


@examples(30)
@given(trees, trees)
def test_apply_is_the_reverse_of_make(before: dict[str, FileState], after: dict[str, FileState]) -> None:
    patch = patches.make(before, after)
    if not patch:
        assert facts(before) == facts(after)
        return
    touched = patches.touched(patch)
    assert set(touched) == {path for path in {*before, *after} if facts(before).get(path) != facts(after).get(path)}
    result = patches.apply(patch, {path: before.get(path) for path in touched})
    merged = {path: state for path, state in {**before, **result}.items() if state is not None}
    assert facts(merged) == facts(after)


def test_a_renamed_file_is_told_as_one() -> None:
    patch = patches.make({"old.py": FileState(LONG)}, {"pkg/new.py": FileState(LONG + b"more\n")})
    assert b"rename from old.py\nrename to pkg/new.py\n" in patch


def test_permissions_stay_as_far_as_git_does_not_say_otherwise() -> None:
    before = {"f": FileState(b"a\n", 0o600), "g": FileState(b"", 0o640), "h": FileState(b"", 0o751)}
    after = {"f": FileState(b"b\n", 0o600), "g": FileState(b"", 0o755), "h": FileState(b"", 0o644)}
    changed = {"f": FileState(b"b\n", 0o600), "g": FileState(b"", 0o750), "h": FileState(b"", 0o640)}
    assert patches.apply(patches.make(before, after), before) == changed


@pytest.mark.parametrize(("made", "wanted"), [(0o644, 0o640), (0o755, 0o750)])
@pytest.mark.parametrize("new", ["pkg/new.py", 'caf\u00e9 "\udce9"\t\\1'])
def test_a_renamed_file_keeps_its_permissions(new: str, made: int, wanted: int) -> None:
    for old, now in (("old.py", new), (new, "old.py")):
        before, data = {old: FileState(LONG, 0o640)}, LONG + b"more\n"
        patch = patches.make(before, {now: FileState(data, made)})
        assert patches.renamed(patch) == {now: old}
        assert patches.apply(patch, {**before, now: None}) == {old: None, now: FileState(data, wanted)}


def test_what_a_patch_begins_with_may_look_like_a_renamed_file() -> None:
    patch = b'rename from "\\x\\u1234\nrename to \xff\n' + patches.make(
        {"f": FileState(b"a\n")}, {"f": FileState(b"b\n")}
    )
    assert patches.apply(patch, {"f": FileState(b"a\n", 0o600)}) == {"f": FileState(b"b\n", 0o600)}


def test_a_plain_diff_applies() -> None:
    patch = b"--- a/x.py\t2020-01-01\n+++ b/x.py\t2020-01-02\n@@ -1 +1 @@\n-a\n+b\n"
    assert patches.touched(patch) == ["x.py"]
    assert patches.apply(patch, {"x.py": FileState(b"a\n")}) == {"x.py": FileState(b"b\n")}


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        (b"nonsense\n", "[Nn]o valid patches"),
        (b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n", "corrupt patch"),
        (b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-other\n+b\n", "does not apply"),
        (b"--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n", "x: "),
        (b"--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b\n", "already exists"),
    ],
)
def test_a_patch_that_does_not_fit_is_refused_with_gits_reason(patch: bytes, reason: str) -> None:
    with pytest.raises(ActionError, match=reason):
        patches.apply(patch, {"x": FileState(b"a\n")})


def test_the_users_git_configuration_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = {"a.py": FileState(b"a\n")}, {"a.py": FileState(b"b\n"), ".gitattributes": FileState(b"* -diff\n")}
    expected = patches.make(before, after)
    (tmp_path / ".gitconfig").write_text(
        "[diff]\n\tnoprefix = true\n\tmnemonicPrefix = true\n\texternal = false\n[color]\n\tui = always\n"
        "[core]\n\tautocrlf = true\n\tquotePath = false\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert patches.make(before, after) == expected
    assert b"-a\n+b\n" in expected


def test_without_git_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(RequirementError, match="apt install git"):
        patches.make({}, {"a": FileState(b"")})


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    patches.make({}, {"a": FileState(b"")})
    with pytest.raises(ActionError):
        patches.apply(b"nonsense", {})
    assert list(tmp_path.iterdir()) == []


MAKING = """
import sys, tempfile, threading
from debug_gym_core.workspace.patch import make
from debug_gym_core.workspace.snapshot import FileState
tempfile.tempdir = sys.argv[1]
threading.Thread(target=make, args=({}, {"a": FileState(b"1", 0o644)}), daemon=True).start()
sys.stdin.read()
"""


@pytest.fixture
def making(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[subprocess.Popen[bytes], int, Path]]:
    """A process whose git, in the midst of a patch, computes and does not look: it, git's number, the directory."""
    programs, directory = tmp_path / "programs", tmp_path / "temporary"
    programs.mkdir()
    directory.mkdir()
    os.mkfifo(tmp_path / "started")
    (programs / "git").write_text(f"#!/bin/sh\necho $$ >{tmp_path}/started\nexec sleep 600\n")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with subprocess.Popen([sys.executable, "-c", MAKING, str(directory)], stdin=subprocess.PIPE) as process:
        git = int((tmp_path / "started").read_text())
        watched = os.pidfd_open(git)
        try:
            yield process, watched, directory
        finally:
            process.kill()
            if not select.select([watched], [], [], 0)[0]:
                signal.pidfd_send_signal(watched, signal.SIGKILL)
            os.close(watched)


def test_what_a_killed_process_left_is_removed(
    making: tuple[subprocess.Popen[bytes], int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    process, _, directory = making
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    (left,) = directory.iterdir()
    assert patches.reap() == [] and left.is_dir()
    process.kill()
    process.wait()
    assert patches.reap() == [left] and list(directory.iterdir()) == []


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is missing: apt-get install util-linux")
def test_git_ends_with_the_process_that_started_it(making: tuple[subprocess.Popen[bytes], int, Path]) -> None:
    process, git, _ = making
    process.kill()
    assert select.select([git], [], [], 20)[0]


def test_nothing_is_left_when_the_program_ends_while_a_patch_is_made(
    making: tuple[subprocess.Popen[bytes], int, Path],
) -> None:
    """As after a second Ctrl-C: the thread that makes the patch never comes to its end."""
    process, git, directory = making
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(20) == 0
    assert list(directory.iterdir()) == [] and select.select([git], [], [], 20)[0]


FAILING = """\
#!/bin/sh
case " $* " in *" {fails} "*) {how} ;; esac
exec {git} "$@"
"""


@pytest.mark.parametrize(
    ("fails", "how", "words"),
    [
        (
            "fast-import",
            "echo 'fatal: unknown option' >&2; exit 129",
            "git fast-import, .* ended with status 129: unknown",
        ),
        ("diff-tree", "kill -9 $$", "git diff-tree, which patches need, was killed by signal 9"),
        ("apply", "echo 'error: x: No space left on device' >&2; exit 128", "git apply, .*make room in"),
        ("apply", "kill -9 $$", "git apply, .* was killed by signal 9: it says nothing"),
    ],
)
def test_a_failure_of_git_is_not_the_patchs(
    fails: str, how: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = {"a": FileState(b"1\n", 0o644)}, {"a": FileState(b"2\n", 0o644)}
    patch = patches.make(old, new)
    git = shutil.which("git")
    assert git is not None
    (tmp_path / "git").write_text(FAILING.format(fails=fails, how=how, git=git))
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(RequirementError, match=words):
        patches.apply(patch, old)
        patches.make(old, new)
