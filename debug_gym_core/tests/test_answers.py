"""What a guest says is understood, or the guest is given up: never an error of ours, never a wrong kind of value."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core.errors import SandboxLost
from debug_gym_core.sandbox.answers import (
    LARGEST,
    Entry,
    changes_of,
    entries_of,
    entry_of,
    found_of,
    header_of,
    joined,
)

FILE = ["src/a.py", "file", 12, 0o644, 7, None, "12-100644-7-7-3"]
FOUND = {"path": "a.py", "binary": False, "count": 1, "lines": [[3, True, "x = 1", 0, 0]]}

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 80), 1 << 80)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["..", "../x", "/x", "file", "path", "lines", "a.py", "1-2-3"]),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.sampled_from(sorted(FOUND)), inner, max_size=4),
    max_leaves=12,
)


def spoilt(value: Any, data: st.DataObject) -> Any:
    """The value with one part of it, at any depth, replaced by something else."""
    if isinstance(value, list) and value and data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], spoilt(value[place], data), *value[place + 1 :]]
    if isinstance(value, dict) and data.draw(st.booleans()):
        name = data.draw(st.sampled_from(sorted(value)))
        return {**value, name: spoilt(value[name], data)}
    return data.draw(JSON)


def is_entry(entry: object) -> bool:
    return (
        isinstance(entry, Entry)
        and (type(entry.path), type(entry.stamp)) == (str, str)
        and entry.kind in ("file", "directory", "link", "other")
        and all(type(one) is int and one <= LARGEST for one in (entry.size, entry.mode))
        and type(entry.mtime_ns) is int
        and min(entry.size, entry.mode) >= 0
        and (entry.target is None or type(entry.target) is str)
    )


def is_found(found: Any) -> bool:
    whole = all(type(one.number) is type(one.before) is type(one.behind) is int for one in found.lines)
    return type(found.path) is str and type(found.count) is int and whole


@pytest.mark.parametrize(
    ("understand", "right", "holds"),
    [
        pytest.param(entries_of, [FILE, FILE], lambda made: all(map(is_entry, made)), id="entries"),
        pytest.param(
            changes_of,
            [["src/a.py", FILE], ["b", None]],
            lambda made: all(type(path) is str and (one is None or is_entry(one)) for path, one in made.items()),
            id="changes",
        ),
        pytest.param(found_of, FOUND, is_found, id="found"),
    ],
)
@given(data=st.data())
def test_a_body_is_understood_or_the_guest_given_up(
    understand: Callable[[bytes], Any], right: Any, holds: Callable[[Any], bool], data: st.DataObject
) -> None:
    assert holds(understand(json.dumps(right).encode()))
    body = data.draw(st.binary(max_size=40) | st.builds(lambda: json.dumps(spoilt(right, data)).encode()))
    try:
        made = understand(body)
    except SandboxLost:
        return
    assert holds(made)


@given(fields=st.dictionaries(st.sampled_from(["status", "timed_out", "seconds", "cut", "head", "path", "x"]), JSON))
def test_the_fields_of_a_header_are_of_their_kind_or_the_guest_is_given_up(fields: dict[str, Any]) -> None:
    try:
        header = header_of(json.dumps({"id": 3, "t": "done", **fields}).encode())
    except SandboxLost:
        return
    assert type(header.get("status", 0)) is int
    assert type(header.get("timed_out", True)) is bool
    assert abs(header.get("seconds", 0)) < float("inf")
    assert min(header.get("cut", 0), header.get("head", 0)) >= 0
    assert isinstance(header.get("path"), str | None)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"7", id="a number"),
        pytest.param(b'{"t": "done"}', id="no id"),
        pytest.param(b'{"id": 1}', id="no kind"),
        pytest.param(b'{"id": 1e999, "t": "done"}', id="an infinite id"),
        pytest.param(b'{"id": true, "t": "done"}', id="an id that is a flag"),
        pytest.param(b'{"id": -1, "t": "done"}', id="an id below zero"),
        pytest.param(b'{"id": 1, "t": "done", "seconds": NaN}', id="no number"),
        pytest.param(b'{"id": 1, "t": "done", "cut": 9999999999999999999999}', id="a number of many digits"),
        pytest.param(b'{"id": ' + b"9" * 9999 + b', "t": "done"}', id="a number of too many digits"),
        pytest.param(b'{"id": 1, "t": ' + b"[" * 99_999 + b"]" * 99_999 + b"}", id="nested lists"),
        pytest.param(b'{"id": 1, "t": "\xff"}', id="no UTF-8"),
        pytest.param(b'{"id": 1, "t": "done", "declared": "latin\\n1"}', id="no encoding's name"),
    ],
)
def test_what_is_no_header(data: bytes) -> None:
    with pytest.raises(SandboxLost):
        header_of(data)


def test_a_field_that_an_answer_lacks_is_named() -> None:
    with pytest.raises(SandboxLost, match="lacks 'status'"):
        header_of(b'{"id": 1, "t": "done"}')["status"]


@pytest.mark.parametrize("path", ["/etc/passwd", "..", "../x", "a/../../x", "a\0b", "a\ud800", 7])
def test_paths_that_lead_out_of_the_workspace_are_not_believed(path: Any) -> None:
    fields = [path, *FILE[1:]]
    with pytest.raises(SandboxLost):
        entries_of(json.dumps([fields]).encode())
    with pytest.raises(SandboxLost):
        changes_of(json.dumps([[path, None]]).encode())


def test_more_bytes_than_were_asked_for_are_no_answer() -> None:
    assert joined([b"ab", b"", b"c"], 3) == b"abc"
    with pytest.raises(SandboxLost, match="4 bytes, where 3 at most were asked for"):
        joined([b"ab", b"cd"], 3)


def test_names_that_are_no_utf_8_are_kept() -> None:
    name = b"caf\xe9.py".decode("utf-8", "surrogateescape")
    assert entry_of([name, *FILE[1:]]).path == name
    assert entries_of(json.dumps([[name, *FILE[1:]]]).encode())[0].path == name


def test_of_a_walk_elsewhere_the_paths_are_below_it() -> None:
    there = json.dumps([["/usr/lib/a.py", *FILE[1:]]]).encode()
    assert entries_of(there, "/usr/lib/")[0].path == "/usr/lib/a.py"
    with pytest.raises(SandboxLost, match="not below '/usr/bin'"):
        entries_of(there, "/usr/bin")
    with pytest.raises(SandboxLost):
        entries_of(json.dumps([["/usr/lib/../x", *FILE[1:]]]).encode(), "/usr/lib")


@pytest.mark.parametrize("seconds", [(1 << 63) - 1, -(1 << 63), 253_402_300_799])
def test_a_file_may_be_of_any_time(seconds: int) -> None:
    """A program sets what it likes; where files are kept in memory, all of it is kept."""
    fields = ["a.py", "file", 12, 0o644, seconds * 10**9, None, f"12-100644-{seconds}-7-3"]
    assert entry_of(fields).mtime_ns == seconds * 10**9
