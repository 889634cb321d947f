"""The rewrite tool in a live environment."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from debug_gym_core import Observation, RepoEnv
from debug_gym_core.tools.editing import LARGEST
from debug_gym_core.tools.observation import TEXT_LIMIT
from debug_gym_tool_rewrite import Rewrite

pytest_plugins = ["debug_gym_core.testing.fixtures"]
Use = Callable[..., Observation]


@pytest.fixture(scope="module")
def live(make_shared_env: Callable[..., RepoEnv]) -> RepoEnv:
    files = {
        "test_app.py": "a\n",
        "secret.py": "",
        "src/x.py": "",
        ".debugreadonly": "test_*.py\n",
        ".debugignore": "secret*\n",
    }
    return make_shared_env([Rewrite()], files=files)


@pytest.fixture
def env(live: RepoEnv) -> RepoEnv:
    for name in ("app.py", "new"):
        live.session.remove(name)
    live.workspace.write_bytes("app.py", b"one\ntwo\nthree\nfour\nfive\n")
    return live


def content(env: RepoEnv) -> bytes:
    return env.workspace.read_bytes("app.py")


def test_a_range_is_replaced_and_the_diff_is_shown(env: RepoEnv, use: Use) -> None:
    seen = use(path="app.py", start=2, end=3, new_code="zwei\n  drei\nextra")
    assert content(env) == b"one\nzwei\n  drei\nextra\nfour\nfive\n"
    assert seen.text == (
        "app.py rewritten; it has 6 lines\n--- a/app.py\n+++ b/app.py\n@@ -1,5 +1,6 @@\n"
        " one\n-two\n-three\n+zwei\n+  drei\n+extra\n four\n five"
    )
    assert seen.data == {"path": "app.py", "start": 2, "end": 3, "created": False, "changed": True}


def test_only_start_replaces_that_line(env: RepoEnv, use: Use) -> None:
    use(path="app.py", start=5, new_code="fünf")
    assert content(env) == "one\ntwo\nthree\nfour\nfünf\n".encode()


def test_without_lines_the_whole_file_is_replaced(env: RepoEnv, use: Use) -> None:
    use(path="app.py", new_code="all\nnew")
    assert content(env) == b"all\nnew\n"


def test_one_past_the_end_appends(env: RepoEnv, use: Use) -> None:
    use(path="app.py", start=6, new_code="six")
    use(path="app.py", start=7, end=7, new_code="seven\n")
    assert content(env) == b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


def test_empty_code_deletes(env: RepoEnv, use: Use) -> None:
    use(path="app.py", start=1, end=4, new_code="")
    assert content(env) == b"five\n"
    use(path="app.py", new_code="")
    assert content(env) == b""
    use(path="app.py", start=1, new_code="again\n")
    assert content(env) == b"again\n"


def test_a_new_path_is_created_with_its_directories(env: RepoEnv, use: Use) -> None:
    seen = use(path="new/deep/file.py", new_code="x = 1\n")
    assert env.workspace.read_bytes("new/deep/file.py") == b"x = 1\n"
    assert seen.text.startswith("new/deep/file.py created; it has 1 line\n--- /dev/null\n+++ b/new/deep/file.py\n")
    assert use(path="new/deep/other.py", start=1, new_code="y").data["created"]


def test_the_text_form_with_a_range_and_a_block(env: RepoEnv) -> None:
    env.step("rewrite app.py 4:5 <<<\n    -n\nDEBUGGYM_EOF\n$(touch INJECTED)\n>>>")
    assert content(env) == b"one\ntwo\nthree\n    -n\nDEBUGGYM_EOF\n$(touch INJECTED)\n"
    assert env.session.stat("INJECTED") is None


def test_windows_line_ends_stay(env: RepoEnv, use: Use) -> None:
    env.workspace.write_bytes("app.py", b"a\r\nb\r\nc")
    use(path="app.py", start=1, new_code="x\ny")
    assert content(env) == b"x\r\ny\r\nb\r\nc"


def test_undecodable_bytes_stay(env: RepoEnv, use: Use) -> None:
    env.workspace.write_bytes("app.py", b"caf\xe9\n\x00\x0c\nlast")
    seen = use(path="app.py", start=3, new_code="end")
    assert content(env) == b"caf\xe9\n\x00\x0c\nend"
    assert r" caf\xe9" in seen.text.splitlines()


def test_of_a_file_in_utf_16_no_part_is_replaced(env: RepoEnv, use: Use) -> None:
    data = "one\ntwo\n".encode("utf-16")
    env.workspace.write_bytes("app.py", data)
    seen = use(path="app.py", start=1, new_code="x")
    assert seen.error and "app.py is UTF-16, of which no part can be replaced; replace the whole file" in seen.text
    assert content(env) == data


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_file_in_utf_16_that_is_replaced_whole_keeps_its_encoding(env: RepoEnv, use: Use, encoding: str) -> None:
    env.workspace.write_bytes("app.py", "\ufeffone\r\ntwo\r\n".encode(encoding))
    seen = use(path="app.py", new_code="one\ncaf\u00e9 \U0001f600")
    assert content(env) == "\ufeffone\r\ncaf\u00e9 \U0001f600\r\n".encode(encoding)
    first, *diff, note = seen.text.splitlines()
    assert first == "app.py rewritten; it has 2 lines"
    assert [line for line in diff if line.startswith(("+", "-"))][2:] == ["-two", "+caf\u00e9 \U0001f600"]
    assert note == f"[note: the file is {encoding[:6].upper()} with its byte order mark, as it was]"
    assert "unchanged" in use(path="app.py", new_code="\ufeffone\r\ncaf\u00e9 \U0001f600\r\n").text
    use(path="app.py", new_code="")
    assert content(env) == "\ufeff".encode(encoding)


def test_half_a_character_of_utf_16_does_not_keep_a_file_from_being_replaced(env: RepoEnv, use: Use) -> None:
    env.workspace.write_bytes("app.py", "one\n".encode("utf-16") + b"\x00")
    use(path="app.py", new_code="two\n")
    assert content(env) == "two\n".encode("utf-16")
    assert use(path="app.py", new_code="\udc80").error
    assert content(env) == "two\n".encode("utf-16")


def test_utf_8_in_a_file_that_is_not_is_told(env: RepoEnv, use: Use) -> None:
    said = "[note: the file is not valid UTF-8, and what was written is]"
    env.workspace.write_bytes("app.py", b"caf\xe9\nx\n")
    assert said not in use(path="app.py", start=2, new_code="y").text
    assert said in use(path="app.py", start=2, new_code="\u00e9").text
    assert said not in use(path="app.py", new_code="\u00e9").text
    env.workspace.write_bytes("app.py", b"# coding: latin-1\n# caf\xe9\n# x\n")
    seen = use(path="app.py", start=3, new_code="# \u00e9").text
    assert said not in seen and seen.endswith(" # coding: latin-1\n # café\n-# x\n+# é")
    assert content(env) == b"# coding: latin-1\n# caf\xe9\n# \xe9\n"


@pytest.mark.parametrize(
    ("was", "now", "kept", "told"),
    [
        ("# coding: latin-1", "# coding: utf-8", b"caf\xe9", ("utf-8", "iso8859-1")),
        ("#", "# coding: cp1252", "café".encode(), ("cp1252", "utf-8")),
        ("# coding: latin-1", "# coding: cp1252", b"caf\xe9", ()),
        ("#", "# coding: latin-1", b"caf\xe9", ()),  # which mends it
    ],
)
def test_another_encoding_that_is_declared_for_lines_that_stay_is_told(
    env: RepoEnv, use: Use, was: str, now: str, kept: bytes, told: tuple[str, ...]
) -> None:
    env.workspace.write_bytes("app.py", was.encode() + b"\n# " + kept + b"\n")
    text = use(path="app.py", start=1, new_code=now).text
    said = "\n[note: by its declaration the file is {} now; lines that stayed as they were are {}]"
    assert said.format(*told) in text if told else "[note" not in text
    assert content(env) == now.encode() + b"\n# " + kept + b"\n"


def test_an_encoding_that_knows_no_other_bytes_counts_as_none(env: RepoEnv, use: Use) -> None:
    env.workspace.write_bytes("app.py", b"# coding: idna\nx\n")
    use(path="app.py", start=2, new_code="\u00e9")
    assert content(env) == "# coding: idna\n\u00e9\n".encode()


def test_a_file_does_not_become_too_large(env: RepoEnv, use: Use) -> None:
    seen = use(path="app.py", start=1, new_code="x" * LARGEST)
    assert seen.error and f"rewrite: app.py would have {LARGEST + 21} bytes; {LARGEST} is the most" in seen.text
    assert len(content(env)) == 24


def test_a_rewrite_without_effect_says_so(env: RepoEnv, use: Use) -> None:
    use(path="app.py", start=1, new_code="eins")
    before = env.session.stat("app.py")
    rewrites = env.rewrites
    seen = use(path="app.py", start=2, new_code="two")
    assert seen.text == "app.py is unchanged: the new lines equal the old ones"
    assert not seen.data["changed"] and not seen.error
    assert env.session.stat("app.py") == before and env.rewrites == rewrites


def test_permissions_stay(env: RepoEnv, use: Use) -> None:
    env.session.run("chmod 751 app.py")
    use(path="app.py", start=1, new_code="x")
    entry = env.session.stat("app.py")
    assert entry is not None and entry.mode == 0o751


def test_a_long_diff_is_bounded(use: Use) -> None:
    seen = use(path="new/long.py", new_code="".join(f"line {number}\n" for number in range(100_000)))
    assert len(seen.text) < TEXT_LIMIT
    assert "more lines of the diff; view new/long.py shows the file]" in seen.text
    assert len(use(path="new/wide.py", new_code="x" * 1_000_000).text) < TEXT_LIMIT


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"start": 0}, "lines are numbered from 1; app.py has 5 lines"),
        ({"start": -1}, "lines are numbered from 1; app.py has 5 lines"),
        ({"start": 4, "end": 2}, "end 2 is before start 4; app.py has 5 lines"),
        ({"start": 3, "end": 6}, "line 6 is beyond the end: app.py has 5 lines"),
        ({"start": 7}, "line 7 is beyond the end: app.py has 5 lines (start 6 appends)"),
        ({"end": 3}, "start is missing; app.py has 5 lines"),
        ({"path": "new/x.py", "start": 2}, "new/x.py does not exist yet"),
        ({"path": "test_app.py"}, "test_app.py is read-only"),
        ({"path": "test_new.py"}, "test_new.py is read-only"),
        ({"path": "secret.py"}, "secret.py is ignored"),
        ({"path": "../out.py"}, "outside the workspace"),
        ({"path": "src"}, "src is a directory"),
        ({"new_code": None}, "missing argument 'new_code'"),
        ({"new_code": "\ud800"}, "U+D800"),
        ({"start": "x"}, "start"),
    ],
)
def test_what_cannot_be_done_is_an_error_and_changes_nothing(
    env: RepoEnv, use: Use, arguments: dict[str, object], reason: str
) -> None:
    seen = use(**{"path": "app.py", "new_code": "x", **arguments})
    assert seen.error and reason in seen.text
    assert content(env) == b"one\ntwo\nthree\nfour\nfive\n"
    assert env.session.stat("new") is None and env.session.stat("test_new.py") is None


pieces = st.sampled_from([b"a", b"\xe9", b"\r", b"\x0c", b"\x00", b"\n", b"\r\n", "\u2028".encode(), b"\x85", b"-n"])


@examples(60)
@given(st.lists(pieces, min_size=1, max_size=12).map(b"".join), st.data(), st.text(st.sampled_from("xé\n"), max_size=5))
def test_every_byte_of_other_lines_stays(env: RepoEnv, use: Use, data: bytes, draw: st.DataObject, code: str) -> None:
    env.workspace.write_bytes("app.py", data)
    lines = data.split(b"\n")
    lines = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    start = draw.draw(st.integers(1, len(lines)))
    end = draw.draw(st.integers(start, len(lines)))
    assert not use(path="app.py", start=start, end=end, new_code=code).error
    new = content(env)
    assert new.startswith(b"".join(lines[: start - 1]))
    assert new.endswith(b"".join(lines[end:]))
    middle = new[len(b"".join(lines[: start - 1])) : len(new) - len(b"".join(lines[end:]))]
    assert middle.replace(b"\r\n", b"\n").removesuffix(b"\n") == code.encode().removesuffix(b"\n")
