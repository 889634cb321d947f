"""The edit tool in a live environment."""

from __future__ import annotations

import codecs
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from debug_gym_core import Tool, hookimpl
from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.tasks.task import Task
from debug_gym_core.tools.action import ToolCall, as_text, parse
from debug_gym_core.tools.editing import LARGEST
from debug_gym_core.tools.observation import TEXT_LIMIT, Observation
from debug_gym_core.workspace.edits import Edit as BreakpointEdit
from debug_gym_tool_edit import Edit
from debug_gym_tool_edit.replacement import Text

Use = Callable[..., Observation]

APP = b"def one():\n    x = 1\n    return x\n\n\ndef two():\n    x = 2\n    return x\n"


class Watch(Tool):
    """Says what changed."""

    name = "watch"

    def use(self, env: RepoEnv) -> str:
        return ""

    @hookimpl
    def on_file_changed(self, env: RepoEnv, path: str, edits: Sequence[BreakpointEdit]) -> str:
        return f"{path} {list(edits)}"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RepoEnv]:
    root = tmp_path_factory.mktemp("repo")
    (root / "test_app.py").write_text("a\n")
    (root / "secret.py").write_text("a\n")
    (root / "src").mkdir()
    (root / "src" / "other.py").write_text("a\n")
    (root / ".debugreadonly").write_text("test_*.py\n")
    (root / ".debugignore").write_text("secret*\n")
    task = Task("tests", "edit", root, entrypoint="python -c pass", max_score=1)
    with_edit = RepoEnv(task, [Edit(), Watch()], "local", trusted=True)
    with_edit.reset(seed=0)
    yield with_edit
    with_edit.close()


@pytest.fixture
def env(live: RepoEnv) -> RepoEnv:
    live.workspace.write_bytes("app.py", APP)
    live.step("watch")  # hears of that
    return live


@pytest.fixture
def use(env: RepoEnv) -> Use:
    def act(old: str, new: str, **arguments: object) -> Observation:
        env.step(ToolCall("edit", {"path": "app.py", "old": old, "new": new, **arguments}))
        return env.last_observations[0]

    return act


def content(env: RepoEnv) -> bytes:
    return env.workspace.read_bytes("app.py")


# -- what is replaced


def test_a_text_that_is_there_once_is_replaced_and_the_diff_shown(env: RepoEnv, use: Use) -> None:
    seen = use("    x = 1\n    return x\n", "    return 1\n")
    assert content(env) == APP.replace(b"    x = 1\n    return x\n", b"    return 1\n", 1)
    assert seen.text == (
        "app.py edited; it has 7 lines\n--- a/app.py\n+++ b/app.py\n@@ -1,6 +1,5 @@\n"
        " def one():\n-    x = 1\n-    return x\n+    return 1\n \n \n def two():"
    )
    assert seen.data == {"path": "app.py", "lines": [2], "changed": True}


def test_count_says_how_many_there_are(env: RepoEnv, use: Use) -> None:
    seen = use("return x", "return y", count=2)
    assert content(env) == APP.replace(b"return x", b"return y")
    assert seen.text.startswith("app.py edited in 2 places; it has 8 lines\n") and seen.data["lines"] == [3, 8]
    for count in (1, 3):
        seen = use("return y", "z", count=count)
        assert seen.error and f"old is in app.py 2 times, at lines 3, 8, not {count}; nothing was changed" in seen.text
        assert "say count=2; to replace one, take in lines around it" in seen.text
    seen = use("def two", "z", count=2)
    assert seen.error and "old is in app.py once, at line 6, not 2" in seen.text and "count=1" in seen.text


def test_an_empty_new_deletes(env: RepoEnv, use: Use) -> None:
    use("    x = 1\n", "")
    assert content(env) == APP.replace(b"    x = 1\n", b"")


def test_the_last_newline_can_be_taken_away_and_put_back(env: RepoEnv, use: Use) -> None:
    use("2\n    return x\n", "2\n    return x")
    assert content(env) == APP[:-1]
    use("2\n    return x", "2\n    return x\n")
    assert content(env) == APP


def test_the_text_form(env: RepoEnv) -> None:
    env.step("edit app.py 'x = 1' <<<\nx = 3\n    y = 4\n>>>")
    env.step('edit app.py "    y = 4\n" ""')
    env.step("edit app.py return yield count=2")
    assert content(env) == APP.replace(b"x = 1", b"x = 3").replace(b"return", b"yield")


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("edit app.py 'x = 1' <<<\nx = 3\n>>>", b"    x = 3\n"),
        ("edit app.py 'x = 1' <<<\r\nx = 3\r\n>>>", b"    x = 3\n"),
        ("edit app.py 'x = 1' <<<\nx = 3\n\n>>>", b"    x = 3\n\n"),
        ("edit app.py new='x = 3' old=<<<\nx = 1\n>>>", b"    x = 3\n"),
        ("edit app.py '    x = 1\n' <<<\n    x = 3\n>>>", b"    x = 3\n"),
        ("edit app.py 'x = 1\n' <<<x = 3\n>>>", b"    x = 1\n"),
        ("edit app.py new= old=<<<\n    x = 1\n>>>", b""),
    ],
)
def test_a_block_ends_with_a_line_end_where_the_text_that_it_replaces_does(env: RepoEnv, text: str, new: bytes) -> None:
    env.step(text)
    assert content(env) == APP.replace(b"    x = 1\n", new)
    env.step("edit app.py 'def one' <<<\ndef first\n>>>")
    assert content(env).startswith(b"def first():\n")


@pytest.mark.parametrize("old", ["x = 1", "x = 1\n"])
@pytest.mark.parametrize("new", ["a\nb", "a\nb\n", "a\nb\n\n", "\n"])
def test_an_edit_written_as_text_is_the_same_edit(old: str, new: str) -> None:
    call = ToolCall("edit", {"path": "app.py", "old": old, "new": new})
    assert parse(as_text(call, {"edit": Edit}), {"edit": Edit}) == call


def test_the_event_says_which_lines_were_replaced(env: RepoEnv, use: Use) -> None:
    use("def one():\n", "def one():\n    # first\n    # second\n")
    assert env.last_observations[1].text == f"app.py {[BreakpointEdit(2, 0, 2)]}"
    use("return x", "return y", count=2)
    assert env.last_observations[1].text == f"app.py {[BreakpointEdit(5, 1, 1), BreakpointEdit(10, 1, 1)]}"


def test_an_edit_without_effect_says_so(env: RepoEnv, use: Use) -> None:
    before, rewrites = env.session.stat("app.py"), env.rewrites
    seen = use("x = 1", "x = 1")
    assert seen.text == "app.py is unchanged: new equals old" and not seen.error
    assert env.session.stat("app.py") == before and env.rewrites == rewrites


def test_permissions_stay(env: RepoEnv, use: Use) -> None:
    env.session.run("chmod 751 app.py")
    use("x = 1", "x = 3")
    entry = env.session.stat("app.py")
    assert entry is not None and entry.mode == 0o751


# -- bytes


@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
        (b"a\r\nb\r\n", "a", "x\ny", b"x\r\ny\r\nb\r\n"),
        (b"a\r\nb", "b", "x\ny", b"a\r\nx\r\ny"),
        (b"a", "a", "x\r\ny", b"x\ny"),
        (b"a\r\nb\nc\r\n", "a\nb\nc", "a\nB\nc", b"a\r\nB\nc\r\n"),
        (b"a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "A\nb\nc\nD\n", b"A\r\nb\nc\r\nD\n"),
        (b"a\nb\nc\r\n", "a\nb\nc", "A\nB\nC", b"A\nB\nC\r\n"),
        (b"a\r\nb\nc\r\n", "b\nc", "x\ny\nz", b"a\r\nx\ny\nz\r\n"),
        (b"a\nb\r\nc\nd\n", "b\nc", "x\ny\nz", b"a\nx\r\ny\r\nz\nd\n"),
        (b"x\ra\r\n\rb\r\n", "a\n\rb", "q", b"x\rq\r\n"),
        (b"a\r\r\nb", "a\r\nb", "a\nb", b"a\r\r\nb"),
        (codecs.BOM_UTF8 + b"a\nb\n", "a\n", "x\n", codecs.BOM_UTF8 + b"x\nb\n"),
        (b"\xe9a\x00\x0c\xe9\n", "a", "b", b"\xe9b\x00\x0c\xe9\n"),
        (b"\xe9a\n", "\udce9", "e", b"ea\n"),
        ("a\u2028b\x85c".encode(), "\u2028b", "x", "ax\x85c".encode()),
        (b"# coding: latin-1\n'\xe9'\n", "'é'", "'ü'", b"# coding: latin-1\n'\xfc'\n"),
        (b"# coding: latin-1\n'\xe9'\n", "latin-1\n'é'", "utf-8\n'é'", b"# coding: utf-8\n'\xe9'\n"),
        (b"# coding: cp1252\n'\xe9' \x81\n", "'é'", "'ü'", b"# coding: cp1252\n'\xfc' \x81\n"),
        (b"# coding: latin-1\nx\n", "latin-1\nx", "utf-8\n\u2192", "# coding: utf-8\n\u2192\n".encode()),
        (
            "# coding: shift_jis\n'表'\n".encode("shift_jis"),
            "表",
            "ソ",
            "# coding: shift_jis\n'ソ'\n".encode("shift_jis"),
        ),
        ("# coding: utf-8\n'\u4e00'\n".encode().replace(b"utf-8", b"ascii"), "\u4e00", "x", b"# coding: ascii\n'x'\n"),
    ],
)
def test_bytes_and_line_ends(env: RepoEnv, use: Use, data: bytes, old: str, new: str, expected: bytes) -> None:
    env.workspace.write_bytes("app.py", data)
    seen = use(old, new)
    assert content(env) == expected, seen.text


def test_half_a_character_is_no_match(env: RepoEnv, use: Use) -> None:
    """The second byte of this character is a backslash in Shift JIS."""
    data = "# coding: shift_jis\n'表'\n".encode("shift_jis")
    env.workspace.write_bytes("app.py", data)
    assert b"\\" in data and use("\\", "/").error
    assert content(env) == data


PIECES = ["a", "b", "ab", "é", "\udce9", "\r", "\f", "\0", "\n", "\n", "\r\n", "\r\n", "    ", "\t", "\u2028"]
contents = st.builds(
    lambda bom, pieces: (codecs.BOM_UTF8 if bom else b"") + "".join(pieces).encode("utf-8", "surrogateescape"),
    st.booleans(),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=14),
)
texts = st.text(st.sampled_from("aabxé\n\r\t "), max_size=6)
quick = examples(200)


@quick
@given(contents, st.data(), texts)
def test_every_byte_outside_of_what_is_replaced_stays(
    env: RepoEnv, use: Use, data: bytes, draw: st.DataObject, new: str
) -> None:
    env.workspace.write_bytes("app.py", data)
    plain = data.replace(b"\r\n", b"\n").decode("utf-8", "surrogateescape")
    start = draw.draw(st.integers(0, len(plain) - 1))
    end = draw.draw(st.integers(start + 1, len(plain)))
    old = plain[start:end]
    places = [index for index in range(len(plain)) if plain.startswith(old, index)]
    apart = all(b - a >= len(old) for a, b in pairwise(places))
    seen = use(old.replace("\r\n", "\r\r\n"), new, count=len(places))  # where a lone \r is before a line's end
    if not apart:
        assert seen.error and content(env) == data
        return
    assert not seen.error, seen.text
    expected = "".join(new.replace("\r\n", "\n") if part is None else part for part in _parts(plain, old, places))
    after = content(env)
    encoded = expected.encode("utf-8", "surrogateescape")
    assert re.sub(rb"\r+\n", b"\n", after) == re.sub(rb"\r+\n", b"\n", encoded)
    head, tail = _original(data, plain, 0, places[0]), _original(data, plain, places[-1] + len(old), len(plain))
    assert after.startswith(head) and after.endswith(tail)
    for before, behind in pairwise(places):
        assert _original(data, plain, before + len(old), behind) in after


def _parts(plain: str, old: str, places: list[int]) -> Iterator[str | None]:
    last = 0
    for place in places:
        yield plain[last:place]
        yield None
        last = place + len(old)
    yield plain[last:]


def _original(data: bytes, plain: str, start: int, end: int) -> bytes:
    """The bytes of a part of the text, found by walking through both."""
    places, index = [], 0
    for character in plain:
        places.append(index)
        size = len(character.encode("utf-8", "surrogateescape"))
        index += 2 if character == "\n" and data[index : index + 2] == b"\r\n" else size
    places.append(index)
    return data[places[start] : places[end]]


@quick
@given(st.lists(st.sampled_from([b"\n", b"\r\n"]), min_size=1, max_size=12), st.data())
def test_lines_that_stay_keep_their_ends(ends: list[bytes], draw: st.DataObject) -> None:
    """Lines with all kinds of ends are replaced by as many, some of which are the same."""
    data = b"".join(b"%d%s" % (number, end) for number, end in enumerate(ends))
    text = Text(data, python=False)
    lines = text.text.split("\n")
    changed = draw.draw(st.lists(st.integers(0, len(ends) - 1), max_size=3, unique=True))
    new = "\n".join("changed" if number in changed else line for number, line in enumerate(lines))
    after = text.replaced([0], text.text, new)
    assert after == b"".join(
        b"%s%s" % (b"changed" if number in changed else b"%d" % number, end) for number, end in enumerate(ends)
    )


# -- what is refused


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            {"old": ""},
            "old is empty; to insert, give a line beside the place as old, and again in new; rewrite",
        ),
        ({"count": 0}, "count is 0"),
        ({"count": -3}, "count is -3"),
        ({"path": "test_app.py"}, "test_app.py is read-only"),
        ({"path": "secret.py"}, "secret.py is ignored"),
        ({"path": "../out.py"}, "outside the workspace"),
        ({"path": "src"}, "src is a directory"),
        ({"path": "other.py"}, "there is no file other.py; did you mean src/other.py?"),
        ({"path": "none/at/all.py"}, "there is no file none/at/all.py"),
        ({"new": None}, "missing argument 'new'"),
        ({"new": "\ud800"}, "U+D800"),
        ({"old": "\ud800"}, "U+D800"),
        ({"old": "\n\n", "new": "\n"}, "old is in app.py once, at line 3, not 2"),
    ],
)
def test_what_cannot_be_done_is_an_error_and_changes_nothing(
    env: RepoEnv, arguments: dict[str, object], reason: str
) -> None:
    if arguments.get("old") == "\n\n":
        arguments = {**arguments, "count": 2}
    env.step(ToolCall("edit", {"path": "app.py", "old": "x = 1", "new": "y", **arguments}))
    seen = env.last_observations[0]
    assert seen.error and reason in seen.text
    assert content(env) == APP and env.session.stat("none") is None


def test_a_text_that_overlaps_with_itself_is_refused(env: RepoEnv, use: Use) -> None:
    env.workspace.write_bytes("app.py", b"x\naaa\n")
    seen = use("aa", "b")
    assert seen.error and "overlaps with itself in app.py at line 2" in seen.text
    assert content(env) == b"x\naaa\n"
    use("aaa", "b")
    assert content(env) == b"x\nb\n"


def test_what_the_encoding_cannot_express_is_refused(env: RepoEnv, use: Use) -> None:
    env.workspace.write_bytes("app.py", b"# coding: latin-1\nx\n")
    assert "U+2192" in use("x", "\u2192").text
    assert content(env) == b"# coding: latin-1\nx\n"


def test_utf_16_and_what_is_no_utf_8(env: RepoEnv, use: Use) -> None:
    env.workspace.write_bytes("app.py", "x\n".encode("utf-16"))
    assert "app.py is UTF-16, of which no part can be replaced" in use("x", "y").text
    env.workspace.write_bytes("app.py", b"caf\xe9 x\n")
    assert "[note: the file is not valid UTF-8, and what was written is]" in use("x", "\u00e9").text


def test_large_files_and_results_are_refused(env: RepoEnv, use: Use) -> None:
    env.session.run(f"head -c {LARGEST + 1} /dev/zero > app.py")
    assert "cannot be edited" in use("x", "y").text
    env.workspace.write_bytes("app.py", b"x" * 1000)
    assert f"{LARGEST} is the most" in use("x", "y" * 100_000, count=1000).text
    assert content(env) == b"x" * 1000


# -- the nearest match


@pytest.mark.parametrize(
    ("old", "said"),
    [
        (
            "\tx = 1\n\treturn x",
            "the nearest match is app.py:2-3, which differs only in whitespace (- the file, + old):\n"
            "-    x = 1\n-    return x\n+\tx = 1\n+\treturn x\n"
            "[line 2: indentation: 4 spaces in the file, 1 tab in old]\n"
            "[line 3: indentation: 4 spaces in the file, 1 tab in old]",
        ),
        ("    x = 1  \n", "\n[line 2: end of the line: nothing in the file, 2 spaces in old]"),
        ("    x = 1\r    \n", "[line 2: end of the line: nothing in the file, 1 carriage return and 4 spaces in old]"),
        ("    x =\u00a01", "[line 2: whitespace inside the line differs]"),
        ("def one():\n\n    x = 1", "app.py:1-2, which differs only in whitespace (- the file, + old):\n+"),
        (
            "def two():\n    x = 3\n    return x\n",
            "the nearest match is app.py:6-8, which differs (- the file, + old):\n-    x = 2\n+    x = 3",
        ),
        ("two():\n    x = 3\n    ret", "which differs (- the file, + old):\n-    x = 2\n+    x = 3"),
        ("DEF ONE():", "nothing like it"),
        ("retrun x", "which differs (- the file, + old):\n-    return x\n+retrun x"),
        ("def onee(", "which differs (- the file, + old):\n-def one():\n+def onee("),
        ("Def One():\n    X = 1\n    return x", "[line 1: upper and lower case differ]"),
        ("def onne():\n    x = \u2019\n    return x", "[line 2: character 9: U+0031 in the file, U+2019 in old]"),
        ("   2      x = 1\n   3      return x", "line numbers that view shows; leave them out"),
        ("2:    x = 1\n3:    return x", "line numbers that grep shows; leave them out"),
        (r"    x = 1\n    return x\n", "a backslash and an n where the file has line ends"),
        ("qqqqqqq", "there is nothing like it; view app.py shows what there is"),
        ("\n\n\n\n\n", "there is nothing like it"),
    ],
)
def test_what_is_not_there_is_compared_with_what_is_most_like_it(env: RepoEnv, use: Use, old: str, said: str) -> None:
    seen = use(old, "completely different")
    assert seen.error and seen.text.startswith("edit: old is not in app.py; nothing was changed\n")
    assert said in seen.text
    assert content(env) == APP


def test_a_missing_last_newline_and_a_done_edit_are_named(env: RepoEnv, use: Use) -> None:
    use("x = 1", "total = 12")
    seen = use("x = 1", "total = 12")
    assert seen.error and "new is there already, at line 2: was this edit made before?" in seen.text
    env.workspace.write_bytes("app.py", b"one\nlast line")
    assert "it ends with a line end, but the file ends without one" in use("last line\n", "x").text
    env.workspace.write_bytes("app.py", b"")
    assert "the file is empty; rewrite fills it" in use("x", "y").text


def test_escaped_bytes_as_view_shows_them_are_compared(env: RepoEnv, use: Use) -> None:
    env.workspace.write_bytes("app.py", b"name = 'caf\xe9'\n")
    assert r"-name = 'caf\xe9'" in use("name = 'café'", "x").text


def test_long_lines_are_cut_around_the_difference(env: RepoEnv, use: Use) -> None:
    line = "some text in a long line " * 400
    env.workspace.write_text("app.py", line + "\n")
    seen = use(line[:5000] + "XYZ" + line[5003:], "y")
    assert len(seen.text) < 1000 and "XYZ" in seen.text and "+[...] " in seen.text


def _words(size: int, seed: int) -> str:
    chance = random.Random(seed)
    words = ["".join(chance.choices("abcdefghij_", k=chance.randint(2, 9))) for _ in range(3000)]
    lines, length = [], 0
    while length < size:
        lines.append("    " * chance.randint(0, 3) + " ".join(chance.choices(words, k=chance.randint(0, 9))))
        length += len(lines[-1]) + 1
    return "\n".join(lines)


@pytest.mark.faults
def test_ten_megabytes_are_answered_in_bounded_time(env: RepoEnv, use: Use) -> None:
    size = 10_000_000
    text = _words(size, 1)
    lines = text.split("\n")
    env.workspace.write_text("app.py", text)
    cases = {
        lines[200_000] + "\n" + lines[200_001] + "q\n" + lines[200_002]: "200001-200003",
        text[: size // 2] + "CHANGED" + text[size // 2 :]: "1-",
        text.replace("    ", "\t"): "only in whitespace",
        text[::-1]: "",
    }
    for old, said in cases.items():
        started = time.monotonic()
        seen = use(old, "x")
        assert time.monotonic() - started < 30
        assert seen.error and said in seen.text and len(seen.text) < TEXT_LIMIT
    seen = use(text[1000 : size - 1000], "x")
    assert not seen.error and len(seen.text) < TEXT_LIMIT


@examples(100)
@given(contents, st.text(st.sampled_from("ab \t\n\ré\x00\u2028\udce9="), min_size=1, max_size=12))
def test_any_text_is_answered(env: RepoEnv, use: Use, data: bytes, old: str) -> None:
    env.workspace.write_bytes("app.py", data)
    seen = use(old, "new")
    assert "Traceback" not in seen.text and "failed:" not in seen.text
    if seen.error:
        assert content(env) == data
