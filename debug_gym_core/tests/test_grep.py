"""Searching files in the guest: which lines and files are found, what is passed over, how every search ends."""

from __future__ import annotations

import itertools
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from debug_gym_core.errors import ActionError
from debug_gym_core.sandbox.grep import Found, Glob, InvalidPattern, Query
from debug_gym_core.sandbox.guest import matching
from debug_gym_core.sandbox.guest.search import LONGEST, PIECE, Search
from debug_gym_core.sandbox.patterns import Patterns
from debug_gym_core.sandbox.session import Session
from debug_gym_core.workspace.lines import body_of, split
from debug_gym_core.workspace.rules import Rules

NOTHING = Rules().ignore_patterns()

quick = examples(80)


def search(session: Session, pattern: str, path: str = ".", rules: Rules | None = None, **fields: object) -> Found:
    ignored = rules.ignore_patterns() if rules is not None else NOTHING
    return session.grep(path, Query(pattern, **fields), ignored)  # type: ignore[arg-type]


def rows(found: Found) -> list[tuple[str, int, str]]:
    return [(file.path, line.number, line.text) for file in found.files for line in file.lines if line.matches]


def names(found: Found) -> list[str]:
    return [file.path for file in found.files]


# -- which lines


def test_lines_end_at_newlines_only(session: Session) -> None:
    session.write("a.txt", "x\fy\rx\x1cx\u2028x\x85\r\n\r\nlast x".encode())
    assert rows(search(session, "x")) == [("a.txt", 1, "x\fy\rx\x1cx\u2028x\x85"), ("a.txt", 3, "last x")]
    assert rows(search(session, "^$")) == [("a.txt", 2, "")]
    assert rows(search(session, "x$"))[0][1] == 3


def test_each_line_is_searched_by_itself(session: Session) -> None:
    session.write("a.txt", b"ab\ncd\n")
    assert rows(search(session, r"b\sc")) == rows(search(session, r"b[^x]c")) == []
    assert [number for _, number, _ in rows(search(session, r"\A\w+\Z"))] == [1, 2]
    assert [number for _, number, _ in rows(search(session, "b(?!.)"))] == [1]


def test_plain_text_and_case(session: Session) -> None:
    session.write("a.txt", "f(x)+\nF(X)+\nÄpfel\nÜBER\n\u212aelvin\n".encode())
    assert [number for _, number, _ in rows(search(session, "f(x)+", regex=False))] == [1]
    assert [number for _, number, _ in rows(search(session, "F(x)", regex=False, case_sensitive=False))] == [1, 2]
    assert [number for _, number, _ in rows(search(session, "äPFEL|über", case_sensitive=False))] == [3, 4]
    # The Kelvin sign is a k when case is ignored: no shortcut over ASCII may pass over it.
    assert [number for _, number, _ in rows(search(session, "kelvin", case_sensitive=False))] == [5]


def test_bytes_that_are_no_utf8_are_latin_1(session: Session) -> None:
    session.write("a.txt", b"caf\xe9 \xe2\x82\n\xef\xbb\xbf\n")
    for pattern in ("café", r"caf\xe9", r"caf. ..$", r"\bcaf\w\b"):
        found = rows(search(session, pattern))
        assert found == [("a.txt", 1, "caf\udce9 \udce2\udc82")]
        assert found[0][2].encode("utf-8", "surrogateescape") == b"caf\xe9 \xe2\x82"


@pytest.mark.parametrize(
    ("encoding", "line"),
    [
        ("latin-1", "café \\d K"),
        ("shift_jis", "表 \\d K"),  # the second byte of this character is a backslash
        ("iso2022_jp", "表 \\d K"),
        ("iso2022_jp_2", "ς\\d K"),
        ("gbk", "誠\\d K"),
        ("cp1252", "€\x81 \\d K"),
    ],
)
def test_python_source_is_searched_in_the_encoding_that_it_declares(session: Session, encoding: str, line: str) -> None:
    data = b"\x81".join(part.encode(encoding) for part in line.split("\x81"))
    between = [b"x" * 63] * (PIECE // 32)  # twice as much as is read at once
    source = b"\r\n".join([f"# coding: {encoding}".encode(), data, b"\n".join([*between, data])])
    for name in ("a.py", "a.txt"):
        session.write(name, source)
    text = line.replace("\x81", "\udc81")
    expected = [("a.py", 2, text), ("a.py", 3 + len(between), text)]
    assert rows(search(session, line[:2], regex=False))[:2] == expected
    assert rows(search(session, re.escape(line[0]) + r".*\\d k$", case_sensitive=False))[:2] == expected
    assert rows(search(session, r"\\d", path="a.py")) == expected


def test_escapes_of_iso_2022_end_with_their_line_and_hide_nothing(session: Session) -> None:
    session.write("a.py", b'# coding: iso2022_jp\n\x1b$B$"\nsought\nsou\x1b(Bght\n')
    expected = [("a.py", 3, "sought"), ("a.py", 4, "sought")]
    assert rows(search(session, "sought")) == rows(search(session, "SOUGHT", case_sensitive=False)) == expected
    session.write("a.py", b"# coding: iso2022_jp\nsou\x1b(Bght\n")
    assert rows(search(session, "sought")) == [("a.py", 2, "sought")]


def test_encodings_that_are_none_do_no_harm_to_a_search(session: Session) -> None:
    names = ["rot13", "hex", "zip", "nonsense", "utf-7", "unicode_escape", "raw_unicode_escape", "idna", "punycode"]
    for name in names:
        session.write(f"{name}.py", b"# coding: " + name.encode() + b"\nx = '\\n\\u0041+AGE-\xe9'\n")
    found = rows(search(session, r"^x = '\\n\\u0041\+AGE-é'$"))
    assert found == [(f"{name}.py", 2, "x = '\\n\\u0041+AGE-\udce9'") for name in sorted(names)]


def test_a_byte_order_mark_is_no_part_of_the_first_line(session: Session) -> None:
    session.write("a.txt", b"\xef\xbb\xbfimport x\n")
    assert rows(search(session, "^import")) == [("a.txt", 1, "import x")]


def test_context_joins_across_pieces_of_a_large_file(session: Session) -> None:
    lines = [f"line {number} {'x' * 60}" for number in range(1, 60_001)]
    session.write("big.txt", "\n".join(lines).encode())
    ends = itertools.accumulate(len(line) + 1 for line in lines)
    edge = next(number for number, end in enumerate(ends, 1) if end > PIECE)
    for number in (1, 2, edge - 1, edge, edge + 1, 60_000):
        found = search(session, f"line {number} ", context=2)
        shown = [(line.number, line.matches) for line in found.files[0].lines]
        assert shown == [(n, n == number) for n in range(max(1, number - 2), min(60_000, number + 2) + 1)]
        assert [line.text for line in found.files[0].lines] == [lines[n - 1] for n, _ in shown]


def test_context_of_near_matches_is_shown_once(session: Session) -> None:
    session.write("a.txt", b"".join(b"%d\n" % number for number in range(1, 20)))
    found = search(session, "^(5|7|15)$", context=2)
    assert [line.number for line in found.files[0].lines] == [3, 4, 5, 6, 7, 8, 9, 13, 14, 15, 16, 17]
    assert [line.number for line in found.files[0].lines if line.matches] == [5, 7, 15]


def test_long_lines_are_cut_around_the_match(session: Session) -> None:
    session.write("a.txt", b"a" * 5000 + b"needle" + b"b" * 400 + b"\n" + b"needle" + b"c" * 1000 + b"\n")
    first, second = search(session, "needle", width=300).files[0].lines
    assert len(first.text) == 300 and "needle" in first.text
    assert first.before + len(first.text) + first.behind == 5406 and first.before and first.behind
    assert (second.before, second.behind, second.text[:7]) == (0, 706, "needlec")


def test_lines_longer_than_a_piece_are_searched_up_to_a_bound(session: Session) -> None:
    session.write("a.txt", b"first\n" + b"a" * 3_000_000 + b"needle\n" + b"last needle\n")
    found = search(session, "needle")
    assert [number for _, number, _ in rows(found)] == [2, 3] and found.cut_lines == 0
    session.write("a.txt", b"first\n" + b"a" * (2 * LONGEST) + b"needle\n" + b"last needle\n")
    found = search(session, "needle")
    assert [number for _, number, _ in rows(found)] == [3] and found.cut_lines == 1


def test_what_is_returned_is_bounded_and_the_rest_counted(session: Session) -> None:
    for number in range(30):
        session.write(f"{number:02}.txt", b"match\n" * 50)
    found = search(session, "match", lines=60)
    assert (found.matching_files, found.matching_lines, found.searched) == (30, 1500, 30)
    assert [len(file.lines) for file in found.files][:3] == [50, 10, 0]
    found = search(session, "match", lines=1000, characters=500)
    assert found.matching_lines == 1500 and len(rows(found)) < 50


# -- which files


def test_files_come_before_what_is_below_and_names_sorted(session: Session) -> None:
    for path in ("b/x", "a/z", "a/b/c", "z", "a.txt", "\udce9"):
        session.write(path, b"x\n")
    assert names(search(session, "x")) == ["a.txt", "z", "\udce9", "a/z", "a/b/c", "b/x"]
    assert names(search(session, "x", "a")) == ["a/z", "a/b/c"]
    assert names(search(session, "x", "a/z")) == ["a/z"]


def test_binary_files_are_named_only(session: Session) -> None:
    session.write("a.bin", b"x\0x\nx\n")
    session.write("b.txt", b"x\n")
    found = search(session, "x")
    assert [(file.path, file.binary, len(file.lines)) for file in found.files] == [
        ("a.bin", True, 0),
        ("b.txt", False, 1),
    ]
    assert found.matching_lines == 1 and found.matching_files == 2


def test_links_and_what_is_no_file_are_passed_over(session: Session, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("x\n")
    session.write("d/a.txt", b"x\n")
    root = Path(session.root)
    (root / "out").symlink_to(tmp_path)
    (root / "file").symlink_to(tmp_path / "outside")
    (root / "d" / "loop").symlink_to(root)
    (root / "again").symlink_to("d/a.txt")
    os.mkfifo(root / "pipe")
    found = search(session, "x")
    assert names(found) == ["d/a.txt"] and found.searched == 1
    for path in ("out", "file", "out/outside"):
        with pytest.raises(PermissionError):
            search(session, "x", path)
    with pytest.raises(FileNotFoundError):
        search(session, "x", "nothing")


def test_a_link_that_takes_a_files_place_is_not_followed(tmp_path: Path) -> None:
    """Between the listing of a directory and the opening of a file a program may put a link there."""
    (tmp_path / "file").write_text("x\n")
    (tmp_path / "link").symlink_to("file")
    query = {"context": 0, "lines": 1, "characters": 100}
    looking = Search(None, None, query)  # type: ignore[arg-type]
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        looking._file(directory, b"link", "link")
    finally:
        os.close(directory)
    assert (looking.files, looking.unreadable) == (0, 1)


def test_unreadable_files_are_counted(session: Session) -> None:
    session.write("a.txt", b"x\n")
    session.write("d/b.txt", b"x\n")
    session.run("chmod 0 a.txt d")
    found = search(session, "x")
    assert found.unreadable == (0 if os.geteuid() == 0 else 2)


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("*.py", ".", ["top.py", "src/a.py", "src/deep/er/b.py"]),
        ("src/**/*.py", ".", ["src/a.py", "src/deep/er/b.py"]),
        ("./src/*.py", ".", ["src/a.py"]),
        ("/testbed/src/*.py", ".", ["src/a.py"]),
        ("/*.py", ".", ["top.py"]),
        ("src", ".", ["src/a.py", "src/deep/x.toml", "src/deep/er/b.py"]),
        ("deep/", ".", ["src/deep/x.toml", "src/deep/er/b.py"]),
        ("**/er/*", ".", ["src/deep/er/b.py"]),
        ("*.{py,toml}", ".", ["top.py", "src/a.py", "src/deep/x.toml", "src/deep/er/b.py"]),
        ("{src,top}*", ".", ["top.py", "src/a.py", "src/deep/x.toml", "src/deep/er/b.py"]),
        ("!*.py", ".", ["#x", "src/deep/x.toml"]),
        ("#x", ".", ["#x"]),
        ("[ab].py", ".", ["src/a.py", "src/deep/er/b.py"]),
        ("er/*.py", "src/deep", ["src/deep/er/b.py"]),
        ("src/deep/er/*.py", "src/deep", ["src/deep/er/b.py"]),
        ("*.rs", ".", []),
    ],
)
def test_globs(session: Session, glob: str, path: str, expected: list[str]) -> None:
    for name in ("top.py", "#x", "src/a.py", "src/deep/x.toml", "src/deep/er/b.py"):
        session.write(name, b"x\n")
    assert names(search(session, "x", path, glob=Glob.parse(glob))) == expected


@pytest.mark.parametrize("glob", ["!", "/", "x" * 20_000, "{a,b}" * 7, "a\n", "!!"])
def test_globs_that_are_none(glob: str) -> None:
    try:
        assert Glob.parse(glob).expressions
    except ActionError as error:
        assert "glob" in str(error)


def test_what_is_below_an_ignored_directory_costs_nothing(session: Session) -> None:
    """Not one of the files below is looked at: it would be found if it were."""
    session.write("a.py", b"x\n")
    session.write("sub/.venv/lib/deep/b.py", b"x\n")
    session.write("sub/keep/c.py", b"x\n")
    rules = Rules({"sub": b".venv/\n"}, ignore=("!c.py",))
    deep = Path(session.root, "sub/.venv")
    os.utime(deep, ns=(0, 0))
    found = search(session, "x", rules=rules)
    assert names(found) == ["a.py", "sub/keep/c.py"] and found.searched == 2
    if "relatime" in Path("/proc/mounts").read_text():
        assert deep.stat().st_atime_ns == 0  # it was not even opened


PATTERNS = "*.py a a/ /a a/b **/b a/** a/**/b !a !*.py [!a] b* * !a/ ? #"
patterns = st.lists(st.sampled_from(PATTERNS.split()), max_size=4)
files = st.lists(
    st.lists(st.sampled_from(["a", "b", "a.py", "\n", "x y"]), min_size=1, max_size=4).map("/".join),
    min_size=1,
    max_size=8,
    unique=True,
)


@examples(300)
@given(patterns, st.sampled_from(["a", "b", "a/b/a.py", "\n", "x y/a"]), st.booleans())
def test_the_guest_reads_patterns_as_the_host_does(lines: list[str], path: str, is_dir: bool) -> None:
    ours = Patterns(lines)
    theirs = matching.PathPatterns(list(ours))
    assert theirs.match(path.replace("\n", "\r") + ("/" if is_dir else "")) == ours.match(path, is_dir)


@quick
@given(files, patterns, patterns, st.sampled_from(["a", "b", "a/b"]))
def test_the_same_files_are_ignored_as_anywhere(
    session: Session, paths: list[str], top: list[str], below: list[str], directory: str
) -> None:
    for name in [entry.path for entry in session.walk(depth=1)]:
        session.remove(name)
    made = []
    for path in paths:
        try:
            session.write(path, b"x\n")
            made.append(path)
        except OSError:  # it is a directory, or below a file
            continue
    rules = Rules({"": "\n".join(top).encode(), directory: "\n".join(below).encode()})
    listed = {entry.path: entry.kind for entry in session.walk()}
    expected = sorted(path for path, kind in listed.items() if kind == "file" and not rules.ignored(path))
    assert sorted(names(search(session, "x", rules=rules))) == expected


pieces = st.sampled_from(
    [b"ab", b"a", b"B", b" ", b"\n", b"\r\n", b"\r", b"\xe9", "é".encode(), b"\x0c", b"\xef\xbb\xbf", b"(", b"\\"]
)
literals = st.text(st.sampled_from(["a", "b", "B", " ", "é", "(", "\\", "\r", "."]), min_size=1, max_size=3)


@quick
@given(st.lists(pieces, max_size=30).map(b"".join), literals, st.booleans())
def test_literals_are_found_as_a_simple_search_finds_them(
    session: Session, data: bytes, pattern: str, case_sensitive: bool
) -> None:
    session.write("file", data)
    expected = []
    content = data[3:] if data.startswith(b"\xef\xbb\xbf") else data
    for number, line in enumerate(split(content), 1):
        text = body_of(line).decode("utf-8", "surrogateescape").translate({0xDC00 + n: n for n in range(128, 256)})
        sought, text = (pattern, text) if case_sensitive else (pattern.lower(), text.lower())
        if sought in text:
            expected.append(number)
    found = search(session, pattern, regex=False, case_sensitive=case_sensitive)
    assert [number for _, number, _ in rows(found)] == expected
    assert found.matching_lines == len(expected)


PARTS = r"a b ab c . a* b+ a? (ab) (a|b) (ab)? (?:b)* a{2} b{0,1} [ab] []a] [^]b] \. \( \w \b ^ $ | (?=a) (?i:a) { } ]"
MORE_PARTS = r"(?P<n>a) (?P=n) (?(1)a|b) (?!b) (?<=a) (?#b) a*? b+? b?? a{,2} \d \t \Z \\ A 2 | ( )"
ESCAPES = r"\x41 \x62c \u0041 \U00000041b \1 \2b \101 \1012 \060 \0 \07 [\x41] [\101b] (\x41)"
LISTED = [*PARTS.split(), *MORE_PARTS.split(), *ESCAPES.split(), r"\N{LATIN SMALL LETTER A}"]
expressions = st.lists(st.sampled_from(LISTED), min_size=1, max_size=6).map("".join)


@examples(1000)
@given(expressions, st.data())
def test_what_must_be_in_a_match_is_in_every_match(pattern: str, data: st.DataObject) -> None:
    try:
        compiled = re.compile(pattern)
    except re.error:
        return
    # a text of the pattern's own, for random ones hardly ever match
    line = data.draw(st.text(st.sampled_from("abcAB.({}]|2\\0 "), max_size=12) | st.from_regex(compiled))
    if compiled.search(line):
        assert matching.required(pattern) in line


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"\x41bc", "Abc"),
        (r"\101bc", "Abc"),
        (r"\u0041bc", "Abc"),
        (r"\U00000041bc", "Abc"),
        (r"\060day", "0day"),
        (r"(A)\1bc", "AAbc"),
        (r"\\x41bc", r"\x41bc"),
        (r"[\x41]bc", "Abc"),
    ],
)
def test_characters_written_by_number_or_name_are_found(session: Session, pattern: str, line: str) -> None:
    session.write("file", line.encode() + b"\nother\n")
    assert [number for _, number, _ in rows(search(session, pattern))] == [1]


def test_characters_written_by_name_are_found_where_python_knows_them(session: Session) -> None:
    session.write("file", b"Abc\nother\n")
    if session.guest()["python"] >= [3, 8]:
        assert [number for _, number, _ in rows(search(session, r"\N{LATIN CAPITAL LETTER A}bc"))] == [1]
    else:
        with pytest.raises(InvalidPattern, match="bad escape"):
            search(session, r"\N{LATIN CAPITAL LETTER A}bc")


# -- how it ends


@pytest.mark.parametrize(
    ("pattern", "position"),
    [("foo(", 3), ("[", 0), ("a**", 2), ("(?P<a", 4), ("x{9999999999999999999}", None)],
)
def test_invalid_patterns_say_where(session: Session, pattern: str, position: int | None) -> None:
    with pytest.raises(InvalidPattern) as raised:
        search(session, pattern)
    assert raised.value.position == position or position is None
    assert str(raised.value)


@pytest.fixture
def hostile(session: Session) -> Iterator[Session]:
    session.write("a.txt", b"aaa\n")
    session.write("b.txt", b"a" * 40 + b"!\n")
    yield session
    session.write("b.txt", b"fine\n")
    assert names(search(session, "fine")) == ["b.txt"]
    assert session.restarts == 0


def test_a_pattern_that_takes_for_ever_is_stopped_and_what_was_found_is_kept(hostile: Session) -> None:
    started = time.monotonic()
    found = search(hostile, "(a|aa)+$", timeout=0.5)
    assert time.monotonic() - started < 30
    assert (found.stopped, found.at, names(found)) == ("time", "b.txt", ["a.txt"])


@pytest.mark.faults
def test_other_requests_are_served_meanwhile(hostile: Session) -> None:
    searching = threading.Thread(target=lambda: search(hostile, "(a|aa)+$", timeout=3))
    searching.start()
    for _ in range(20):
        assert hostile.read("a.txt") == b"aaa\n"
    assert hostile.run("echo there").output == "there\n"
    assert searching.is_alive()
    searching.join()


@pytest.mark.faults
def test_a_search_that_hears_no_signal_is_killed(hostile: Session) -> None:
    """A possessive repetition does not look for signals before it is through with a line, which takes minutes."""
    if hostile.guest()["python"] < [3, 11]:
        pytest.skip("needs Python 3.11 in the guest: DEBUG_GYM_TEST_PYTHONS names others")
    hostile.write("c.txt", b"ab" * 5_000_000 + b"\n")
    started = time.monotonic()
    found = search(hostile, "(?:a|b)*+[cd]", timeout=0.5)
    assert found.stopped == "time" and time.monotonic() - started < 30


@pytest.mark.faults
def test_a_search_that_takes_all_memory_is_stopped(hostile: Session) -> None:
    hostile.write("d.txt", b"ab" * 5_000_000 + b"\n")
    found = search(hostile, "((a)|(b))*[cd]", "d.txt", timeout=60)
    assert (found.stopped, found.at) == ("memory", "d.txt")


def test_nothing_of_a_search_is_left(hostile: Session) -> None:
    search(hostile, "a")
    search(hostile, "(a|aa)+$", timeout=0.2)
    guest = hostile.guest()["pid"]
    hostile.read("a.txt")
    end = time.monotonic() + 5
    while len(_children(guest)) > 3:  # the file worker and spare keepers
        assert time.monotonic() < end, _children(guest)


@pytest.mark.faults
def test_memory_does_not_grow_with_the_file(session: Session) -> None:
    session.run("yes 'some text of a line' | head -c 150000000 > huge.txt")
    found = search(session, "some .* line", timeout=60)
    assert found.matching_lines == 150_000_000 // len("some text of a line\n") and len(rows(found)) == 100
    session.run("head -c 150000000 /dev/zero | tr '\\0' a > huge.txt")
    found = search(session, "b", timeout=60)
    assert (found.matching_lines, found.cut_lines, found.stopped) == (0, 1, None)


def _children(pid: int) -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.add(int(entry.name))
    return found
