"""Patches are reversed as git would reverse them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from debug_gym_benchmarks.reversal import reverse
from debug_gym_core.workspace import patch as patches
from debug_gym_core.workspace.snapshot import FileState

LINES = st.sampled_from(
    [b"", b"a", b"b", b"-- a/x", b"++ b/x", b"\\ no", b"@@ -1 +1 @@", b"c\r", b"diff --git a/x b/x"]
)
CONTENT = st.builds(
    lambda lines, end: b"\n".join(lines) + (b"\n" if end and lines else b""),
    st.lists(LINES, max_size=12),
    st.booleans(),
)
FILES = st.dictionaries(st.sampled_from(["x.py", "y/z.py", "a file", "-"]), st.none() | CONTENT, min_size=1)


@examples(40)
@given(FILES, FILES)
def test_a_reversed_patch_takes_the_patch_back(old: dict[str, bytes | None], new: dict[str, bytes | None]) -> None:
    paths = old.keys() | new.keys()
    before = {path: None if (data := old.get(path)) is None else FileState(data) for path in paths}
    after = {path: None if (data := new.get(path)) is None else FileState(data) for path in paths}
    forward = patches.make(before, after)
    if not forward:
        return
    assert patches.apply(reverse(forward), after) == {path: before[path] for path in patches.touched(forward)}


def test_renames_and_modes_are_reversed(tmp_path: Path) -> None:
    def git(*arguments: str, stdin: bytes = b"") -> bytes:
        who = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
        return subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, input=stdin, capture_output=True, check=True
        ).stdout

    git("init", "-q")
    (tmp_path / "old name.py").write_text("one\ntwo\nthree\n" * 9 + "four\n")
    (tmp_path / "run.sh").write_text("true\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    (tmp_path / "old name.py").rename(tmp_path / "new.py")
    (tmp_path / "new.py").write_text("one\ntwo\nthree\n" * 9 + "4")
    (tmp_path / "run.sh").chmod(0o755)
    git("add", "-A")
    forward = git("diff", "--cached", "-M", "--full-index")
    assert b"rename from" in forward and b"old mode 100644" in forward
    git("commit", "-qm", "two")
    git("apply", "--index", "-", stdin=reverse(forward))
    assert git("diff", "--cached", "HEAD~1") == b""
    assert reverse(reverse(forward)) == forward


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        (b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n", "its last hunk is cut"),
        (b"diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 0\n", "'GIT binary patch'"),
        (b"diff --git a/x b/y\nsimilarity index 90%\ncopy from x\ncopy to y\n", "'copy from x'"),
    ],
)
def test_what_cannot_be_reversed_is_told(patch: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        reverse(patch)
