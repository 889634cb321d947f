"""The view tool in a live environment."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import repeated

from debug_gym_core import Observation, RepoEnv, Tool, ToolCall
from debug_gym_core.tools.observation import TEXT_LIMIT
from debug_gym_tool_view import LINE, PAGE, View

pytest_plugins = ["debug_gym_core.testing.fixtures"]
Say = Callable[[str], Observation]


@pytest.fixture
def tools() -> list[Tool]:
    return [View()]


@pytest.fixture
def files() -> dict[str, str | bytes]:
    return {
        "src/app.py": "".join(f"x = {number}\n" for number in range(1, 98)),
        "big.py": "".join(f"line {number}\n" for number in range(1, 1001)),
        "test_app.py": "a\n\nb\n",
        "empty.py": "",
        "odd.txt": b"\xef\xbb\xbfcaf\xe9\x0cx\r\ny\x00\rz",
        ".debugreadonly": "test_*.py\n",
        ".debugignore": "secret*\n",
        "secret.py": "",
    }


def test_lines_are_numbered_under_a_header(say: Say) -> None:
    seen = say("view src/app.py 9 11")
    assert seen.text == "src/app.py, lines 9-11 of 97 (editable)\n   9  x = 9\n  10  x = 10\n  11  x = 11"
    assert seen.data == {
        **{"path": "src/app.py", "start": 9, "end": 11, "total": 97},
        **{"readonly": False, "breakpoints": []},
    }


def test_breakpoints_are_marked(env: RepoEnv, say: Say) -> None:
    env.breakpoints.add("src/app.py", 10)
    env.breakpoints.add("src/app.py", 50)
    seen = say("view /testbed/src/app.py 9 11")
    assert seen.text.splitlines()[1:] == ["   9  x = 9", "B 10  x = 10", "  11  x = 11"]
    assert seen.data["breakpoints"] == [10]


def test_numbers_can_be_left_out(say: Say) -> None:
    assert say("view src/app.py 1 2 line_numbers=false").text == "src/app.py, lines 1-2 of 97 (editable)\nx = 1\nx = 2"


def test_readonly_files_and_blank_lines(say: Say) -> None:
    assert say("view test_app.py").text == "test_app.py, lines 1-3 of 3 (read-only)\n  1  a\n  2\n  3  b"


@pytest.mark.parametrize(("path", "pages"), [("big.py", [PAGE, PAGE]), ("long.py", [232, 230, 230, 230])])
def test_pages_name_the_next_call_until_the_end(env: RepoEnv, say: Say, path: str, pages: list[int]) -> None:
    env.workspace.write_text("long.py", "".join(f"line {number} {'x' * 60}\n" for number in range(1, 1001)))
    action, numbers, texts = f"view {path}", [], []
    while action:
        seen = say(action)
        numbers += range(seen.data["start"], seen.data["end"] + 1)
        texts.append(seen.text)
        last = seen.text.splitlines()[-1]
        action = last.partition("next: ")[2].removesuffix("]")
    assert f"[{1000 - pages[0]} more lines; next: view {path} {pages[0] + 1}]" in texts[0]
    assert numbers == list(range(1, 1001)) and [len(text.splitlines()) - 2 for text in texts[:-1]] == pages


def test_a_range_that_is_too_long_is_paged_to_its_own_end(say: Say) -> None:
    assert say("view big.py 100 200").text.endswith(" 200  line 200")
    assert say("view big.py 100 600").text.endswith("next: view big.py 500:600]")
    assert say("view big.py 100 600 line_numbers=false").text.endswith("next: view big.py 500 600 false]")
    assert "\nline 500\n" in say("view big.py 500 600 false").text
    assert say("view big.py 990 2000").text.endswith("1000  line 1000")


def test_a_page_is_bounded_in_characters_and_long_lines_are_cut(env: RepoEnv, say: Say) -> None:
    env.workspace.write_bytes("wide.py", (b"y" * 900 + b"\n") * 100 + "é".encode() * 300_000 + b"\nlast\n")
    seen = say("view wide.py")
    assert len(seen.text) < TEXT_LIMIT
    following = seen.data["end"] + 1
    assert f"next: view wide.py {following}]" in seen.text
    seen = say("view wide.py 101")
    assert seen.text.splitlines()[1] == "  101  " + "é" * LINE + " [... more than 262144 bytes in this line]"
    assert seen.text.endswith("next: view wide.py 102]")
    assert "UTF-8" not in seen.text.splitlines()[0]
    assert say("view wide.py 102").text.endswith("102  last")


@pytest.mark.parametrize(
    "name",
    [
        "start=3",
        "new\nline.txt",
        *repeated("faults", "two words", "a\x1bb", b"\xff.txt".decode("utf-8", "surrogateescape")),
    ],
)
def test_the_next_call_can_be_given_whatever_the_file_is_called(env: RepoEnv, say: Say, name: str) -> None:
    env.workspace.write_text(name, "x\n" * 500)
    first = env.step(ToolCall("view", {"path": name}))[0]["text"]
    following = first.splitlines()[-1].partition("next: ")[2].removesuffix("]")
    seen = say(following)
    assert (seen.data["path"], seen.data["start"], seen.data["end"]) == (name, 401, 500), following


def test_odd_bytes_are_escaped_and_told(say: Say) -> None:
    header, *lines = say("view odd.txt").text.splitlines()
    assert header.startswith("odd.txt, lines 1-2 of 2 (editable); ")
    for note in (r"not valid UTF-8: undecodable bytes are shown as \xNN", "BOM", "CRLF", "no newline at the end"):
        assert note in header
    assert lines == [r"  1  caf\xe9\x0cx", r"  2  y\x00\x0dz"]


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (b"a\r\nb\nc\r\nd\n", "; mixed line ends, CRLF and LF"),
        (b"a\nb\r\nc", "; mixed line ends, CRLF and LF; no newline at the end"),
        (b"a\r\nb\r\n", "; CRLF line ends"),
        (b"a\r\nb", "; CRLF line ends; no newline at the end"),
        (b"a\nb\n", ""),
    ],
)
def test_line_ends_that_are_mixed_are_told(env: RepoEnv, say: Say, content: bytes, note: str) -> None:
    env.workspace.write_bytes("ends.txt", content)
    assert say("view ends.txt").text.split("\n")[0].partition("(editable)")[2] == note


def test_a_file_of_which_no_part_can_be_edited_is_told(env: RepoEnv, say: Say) -> None:
    env.workspace.write_bytes("wide.txt", "a\n".encode("utf-16"))
    header = say("view wide.txt").text.split("\n")[0]
    assert "(editable); UTF-16, of which no part can be replaced, only the whole; not valid" in header


def test_python_source_is_shown_in_the_encoding_that_it_declares(env: RepoEnv, say: Say) -> None:
    env.workspace.write_bytes("l1.py", b"# coding: Latin-1\n" + b"# caf\xe9\x85\n" * PAGE)
    header = f"l1.py, lines 1-{PAGE} of {PAGE + 1} (editable); Latin-1 (declared)"
    assert say("view l1.py").text.splitlines()[:3] == [header, "    1  # coding: Latin-1", r"    2  # café\x85"]
    assert say(f"view l1.py {PAGE + 1}").text == (
        f"l1.py, lines {PAGE + 1}-{PAGE + 1} of {PAGE + 1} (editable); Latin-1 (declared)\n" + r"  401  # café\x85"
    )
    env.workspace.write_bytes("jp.py", "# coding: shift_jis\n表\n".encode("shift_jis") + b"\x81\n")
    note = r"shift_jis (declared); not valid shift_jis: undecodable bytes are shown as \xNN"
    assert say("view jp.py 2").text == f"jp.py, lines 2-3 of 3 (editable); {note}\n  2  表\n" + r"  3  \x81"
    env.workspace.write_bytes("jp.py", b"# coding: shift_jis\n" + ("x" + "表" * 2_500).encode("shift_jis"))
    header, line = say("view jp.py 2").text.splitlines()
    assert "not valid" not in header and line == "  2  x" + "表" * (LINE - 1) + " [... 5001 bytes in this line]"


def test_an_empty_file(say: Say) -> None:
    assert say("view empty.py").text == "empty.py, 0 lines (editable)"


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("view src/app.py 98", "src/app.py has 97 lines; line 98 is behind its end"),
        ("view src/app.py 0", "numbered from 1"),
        ("view src/app.py 5 4", "end is 4, before start 5"),
        ("view app.py", "did you mean src/app.py?"),
        ("view src", "src is a directory"),
        ("view secret.py", "ignored"),
        ("view ../../etc/passwd", "outside the workspace"),
        ("view", "missing argument 'path'"),
        ("view src/app.py one", "start"),
    ],
)
def test_what_cannot_be_shown_is_an_error_with_the_reason(say: Say, action: str, reason: str) -> None:
    seen = say(action)
    assert seen.error and reason in seen.text


def test_every_view_of_a_huge_file_is_small(env: RepoEnv, say: Say) -> None:
    env.session.run("yes 'a line of some text' | head -c 100000000 > huge.txt")
    seen = say("view huge.txt 4000000 4000001")
    assert seen.text.startswith("huge.txt, lines 4000000-4000001 of 5000000 (editable)")
    assert len(seen.text) < 200
