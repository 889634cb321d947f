"""Files as lines: no byte is lost that an edit does not touch."""

from __future__ import annotations

import codecs
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from debug_gym_core.errors import ActionError
from debug_gym_core.workspace.edits import diff
from debug_gym_core.workspace.lines import (
    beginning,
    body_of,
    declared_encoding,
    decode,
    encode,
    end_of,
    escaped,
    replace,
    show,
    shown,
    shown_encoding,
    split,
)

pieces = st.sampled_from([b"a", b"b = 1", b"\xe9", b"\r", b"\x0c\x00\x1c\x85", b"\n", b"\r\n", "\u2028".encode()])
contents = st.lists(pieces).map(b"".join)
letters = st.lists(st.sampled_from("abcdefgh"), max_size=30)


@given(contents)
def test_lines_joined_are_the_content(data: bytes) -> None:
    lines = split(data)
    assert b"".join(lines) == data
    assert all(b"\n" not in body_of(line) for line in lines)
    assert all(end_of(line) for line in lines[:-1])
    assert b"".join(body_of(line) + end_of(line) for line in lines) == data


def test_only_newlines_end_lines() -> None:
    data = "a\fb\rc\x1cd\u2028e\x85f\r\ng\n".encode()
    assert split(data) == ["a\fb\rc\x1cd\u2028e\x85f\r\n".encode(), b"g\n"]
    assert split(b"") == [] and split(b"\n") == [b"\n"] and split(b"a") == [b"a"]


@given(st.binary())
def test_text_and_content_are_each_others_reverse(data: bytes) -> None:
    assert encode(decode(data)) == data


@examples(150)
@given(contents, st.data())
def test_an_edit_touches_nothing_else(data: bytes, draw: st.DataObject) -> None:
    lines = split(data)
    start = draw.draw(st.integers(1, len(lines) + 1))
    end = draw.draw(st.integers(start - 1, len(lines)))
    code = draw.draw(st.text(st.sampled_from("xy\n é"), max_size=8))
    before, after = lines[: start - 1], lines[end:]
    head, tail = b"".join(before), b"".join(after)
    new = replace(data, start, end, code)
    assert new.startswith(head) and new.endswith(tail) and len(new) >= len(head) + len(tail)
    middle = new[len(head) : len(new) - len(tail)].replace(b"\r\n", b"\n").decode()
    if code and before and not end_of(before[-1]):
        assert middle.startswith("\n")
        middle = middle[1:]
    assert middle in (code, code + "\n")
    assert not (code and after) or middle.endswith("\n")


def test_new_lines_end_as_those_around_them() -> None:
    assert replace(b"a\r\nb\r\nc\r\n", 2, 2, "x\ny") == b"a\r\nx\r\ny\r\nc\r\n"
    assert replace(b"a\nb\n", 1, 1, "x\r\ny\r\n") == b"x\ny\nb\n"
    assert replace(b"a\r\nb", 3, 2, "c") == b"a\r\nb\r\nc"
    assert replace(b"a\r\nb\n", 2, 2, "x") == b"a\r\nx\n"
    assert replace(b"a\r\n", 1, 1, "x\ny\n") == b"x\r\ny\r\n"
    assert replace(b"", 1, 0, "x\r\ny\n") == b"x\r\ny\n"


def test_the_last_newline_stays_as_it_was() -> None:
    assert replace(b"a\nb\n", 2, 2, "x") == b"a\nx\n"
    assert replace(b"a\nb", 2, 2, "x") == b"a\nx"
    assert replace(b"a\nb", 2, 2, "x\n") == b"a\nx\n"
    assert replace(b"a\nb", 1, 1, "x") == b"x\nb"
    assert replace(b"a\nb", 3, 2, "c") == b"a\nb\nc"
    assert replace(b"a\nb\n", 1, 2, "x") == b"x\n"
    assert replace(b"a\nb\n", 1, 2, "") == b""
    assert replace(b"", 1, 0, "x") == b"x"


def test_a_byte_order_mark_stays() -> None:
    bom = codecs.BOM_UTF8
    assert replace(bom + b"a\nb\n", 1, 1, "x") == bom + b"x\nb\n"
    assert replace(bom + b"a\n", 1, 1, "\ufeffx") == bom + b"x\n"
    assert replace(bom + b"a\nb\n", 1, 1, "") == bom + b"b\n"
    assert replace(bom + b"a\nb\n", 2, 2, "x") == bom + b"a\nx\n"


def test_python_source_is_written_in_the_encoding_that_it_declares() -> None:
    source = b"# -*- coding: latin-1 -*-\nname = '\xe9'\n"
    assert replace(source, 3, 2, "other = 'ü'") == source + b"other = '\xfc'\n"
    with pytest.raises(ActionError, match="U\\+2192"):
        replace(source, 2, 2, "'→'")
    assert replace(source, 2, 2, "'→'", python=False) == b"# -*- coding: latin-1 -*-\n'\xe2\x86\x92'\n"
    assert replace(source, 1, 2, "'→'\n") == "'→'\n".encode()


# No encodings of text, unknown ones, then those in which what looks like ASCII may be something else.
NONE = [
    *("utf-16", "rot13", "hex", "zip", "nonsense", "utf-8-sig", "utf-8-unix", "idna", "punycode", "undefined", "mbcs"),
    *("unicode_escape", "cp037", "mac_arabic", "mac-farsi", "..", "-", "x" * 10_000),
]
UNLIKE_ASCII = ["raw_unicode_escape", "utf-7", "hz", "shift_jis_2004", "cp864", "iso2022_kr"]
SOME = ["latin-1", "cp1252", "ascii", "shift_jis", "gbk", "gb18030", "big5", "iso2022_jp", "euc_kr", "koi8-r"]


def test_declared_encodings() -> None:
    assert declared_encoding(b"#!/bin/x\n# vim: set fileencoding=cp1252 :\n") == "cp1252"
    assert declared_encoding(b"x = 1\n# coding: cp1252\n") == "utf-8"
    assert declared_encoding(b"\n\n# coding: cp1252\n") == "utf-8"
    assert declared_encoding(b"# -*- coding: latin-1-unix -*-\r\n") == "iso8859-1"
    assert declared_encoding(b"# coding: cp1252" + b" " * (1 << 20) + b"\n") == "cp1252"
    for name in NONE:
        assert declared_encoding(b"# coding: " + name.encode() + b"\n") == "utf-8", name
    for name in NONE + UNLIKE_ASCII:
        assert shown_encoding(b"# coding: " + name.encode() + b"\n") == "utf-8", name
    for name in SOME:
        source = b"# coding: " + name.encode() + b"\n"
        assert shown_encoding(source) == declared_encoding(source) != "utf-8"
    assert declared_encoding(codecs.BOM_UTF8 + b"# coding: cp1252\n") == "utf-8"


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(ActionError, match=r"character 2 is U\+D800"):
        encode("a\ud800")


def test_what_cannot_be_seen_is_escaped() -> None:
    assert show(b"a\tb\x00\x1b[1m\xe9\x0c") == (r"a" + "\t" + r"b\x00\x1b[1m\xe9\x0c", True)
    assert show("é\u2028\u202e".encode()) == (r"é\u2028\u202e", False)
    assert show(b"\xc3\xa9\x85", "ascii") == (r"\xc3\xa9\x85", True)
    assert show(b"\xe9\x85", "iso8859-1") == (r"é\x85", False)
    assert show("表\\".encode("shift_jis") + b"\x81", "shift_jis") == ("表\\\\x81", True)
    assert decode(b'\x1b$B$"\n$"\x1b(B', "iso2022_jp") == 'あ\n$"'
    assert shown("a\nb\udce9") == r"a\x0ab\xe9"
    assert len(shown("x" * 5000)) < 250


@examples(200)
@given(
    st.sampled_from(SOME + NONE + UNLIKE_ASCII),
    st.lists(st.sampled_from([b"\x1b$B", b"\x1b(B", b"\x0e", b"\\u000a"]) | st.binary()),
)
def test_any_line_is_shown_on_one_line_in_any_encoding(name: str, parts: list[bytes]) -> None:
    line, encoding = b"".join(parts).replace(b"\n", b""), shown_encoding(f"# coding: {name}\n".encode())
    text, undecodable = show(line, encoding)
    assert not set(text.encode()) & {*range(9), *range(10, 32)}
    assert undecodable or escaped(line.decode(encoding)) == text
    assert decode(line + b"\n" + line, encoding) == f"{decode(line, encoding)}\n{decode(line, encoding)}"
    for size in range(len(line) + 2):
        assert line.startswith(beginning(line, size, encoding)) and len(beginning(line, size, encoding)) <= size


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "shift_jis", "gb18030", "iso2022_jp"])
def test_a_line_is_not_cut_within_a_character(encoding: str) -> None:
    text = "é" if encoding == "cp1252" else "表é" if encoding == "gb18030" else "表"
    line = f"x{text}".encode(encoding)
    for size in range(len(line) + 2):
        begun, undecodable = show(beginning(line, size, encoding), encoding)
        assert not undecodable and f"x{text}".startswith(begun)
    assert beginning(line, len(line), encoding) == line


@examples(40)
@given(letters, letters, st.booleans())
def test_the_diff_is_one_that_git_applies(old: list[str], new: list[str], ended: bool) -> None:
    before = "\n".join(old).encode() + (b"\n" if ended and old else b"")
    after = "\n".join(new).encode() + (b"\n" if not ended and new else b"")
    text = "".join(f"{line}\n" for line in diff("f", before, after))
    if before == after:
        assert text == ""
        return
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "f").write_bytes(before)
        command = ["git", "apply", "--whitespace=nowarn"]
        subprocess.run(command, input=text.encode(), cwd=directory, check=True)
        assert (Path(directory) / "f").read_bytes() == after


def test_diff_of_new_and_removed_files() -> None:
    assert list(diff("f", None, b"a\n")) == ["--- /dev/null", "+++ b/f", "@@ -0,0 +1 @@", "+a"]
    assert list(diff("f", b"a\nb", None))[:3] == ["--- a/f", "+++ /dev/null", "@@ -1,2 +0,0 @@"]
    assert list(diff("f", None, b"")) == ["--- /dev/null", "+++ b/f"]


def test_each_side_of_a_diff_is_shown_in_the_encoding_that_it_declares() -> None:
    old, new = b"# coding: latin-1\n'\xe9'\n'\xfc'\n", b"# coding: utf-8\n'\xe9'\n'\xc3\xbc'\n"
    assert list(diff("f", old, new, python=True))[3:] == [
        *("-# coding: latin-1", "+# coding: utf-8", " 'é'", "-'ü'", "+'ü'"),
    ]
    assert list(diff("f", old, new))[5:] == [r" '\xe9'", r"-'\xfc'", "+'ü'"]
