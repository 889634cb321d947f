"""What a guest says, understood: every header and every body comes through here before anything believes it.

Whatever speaks in the sandbox, what has not the form of an answer ends in `SandboxLost`, never in an error of ours.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, ParamSpec, TypeVar, get_args

from debug_gym_core.errors import SandboxLost
from debug_gym_core.sandbox.guest.declared import line_codec_of

LARGEST = (1 << 63) - 1
"""No number that a guest has to say is further from 0."""

EntryKind = Literal["file", "directory", "link", "other"]

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


class Answer(dict[str, Any]):
    """The header of a frame from the sandbox; to ask it for a field that it lacks is a `SandboxLost`."""

    def __missing__(self, field: str) -> NoReturn:
        raise SandboxLost(f"the guest's answer lacks {field!r}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a directory walk.

    Attributes:
        path: relative to the workspace, `/` between parts
        kind: what it is
        size: bytes (of a file)
        mode: permission bits
        mtime_ns: time of last change
        target: where a symbolic link points
        stamp: differs whenever the entry was changed or replaced: size, mode, times and inode, joined
    """

    path: str
    kind: EntryKind
    size: int
    mode: int
    mtime_ns: int
    target: str | None = None
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class FileLines:
    """Some lines of a file.

    Attributes:
        real: absolute path of the file in the sandbox, links resolved
        total: how many lines the file has
        data: the lines with their ends, up to the limit asked for
        length: bytes that the lines have in the file
        declared: what Python source calls its encoding; empty: it does not say, or is none
    """

    real: str
    total: int
    data: bytes
    length: int
    declared: str = ""

    @property
    def encoding(self) -> str:
        """The encoding of the lines: the declared one, where lines can be read by themselves in it, else UTF-8."""
        return line_codec_of(self.declared)


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A line that matches, or is near one.

    Attributes:
        number: from 1
        matches: whether the pattern is in it
        text: without its end, in the file's encoding; bytes that are none in it as surrogates
        before: how many characters of it are left out before the text
        behind: how many behind it
    """

    number: int
    matches: bool
    text: str
    before: int = 0
    behind: int = 0


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file with matching lines.

    Attributes:
        path: relative to the root
        binary: whether it holds NULs at its beginning; of such a file no lines are returned
        count: how many lines match; 1 or more for a binary one
        lines: those that are returned, from the top
    """

    path: str
    binary: bool
    count: int
    lines: tuple[FoundLine, ...]


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


def _is_time(value: object) -> bool:
    """Nanoseconds, of which a file may have more than 64 bits: its seconds have as many."""
    return type(value) is int and abs(value) < 1 << 96


def _is_whole(value: object) -> bool:
    return type(value) is int and -LARGEST <= value <= LARGEST


def _is_number(value: object) -> bool:
    return _is_whole(value) or (type(value) is float and math.isfinite(value))


def _is_text(value: object) -> bool:
    return type(value) is str


def _stands_for_bytes(text: str) -> bool:
    """Whether what is no UTF-8 are surrogates, and there are no others."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _is_name(value: object) -> bool:
    return type(value) is str and "\0" not in value and _stands_for_bytes(value)


def _is_flag(value: object) -> bool:
    return type(value) is bool


def _is_list(value: object) -> bool:
    return type(value) is list


def _or_none(holds: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or holds(value)


_COUNTS = (
    *("id", "version", "pid", "cut", "head", "output", "count", "total", "length"),
    *("files", "matching_files", "matching_lines", "unreadable", "cut_lines"),
)
_FIELDS: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(_COUNTS, _is_count),
    **dict.fromkeys(("t", "kind", "text", "errno", "magic", "real", "invalid", "at"), _is_text),
    **dict.fromkeys(("timed_out", "clean", "warm", "known", "echo"), _is_flag),
    **dict.fromkeys(("python", "notes"), _is_list),
    "path": _or_none(_is_text),
    "declared": lambda value: type(value) is str and re.fullmatch(r"[-\w.]*", value, re.ASCII) is not None,
    "stopped": lambda value: value in (None, "time", "memory"),
    "status": _is_whole,
    "seconds": _is_number,
    "position": _or_none(_is_count),
    "entry": _or_none(_is_list),
}
"""What the fields are of which the host reads something."""

_KINDS = frozenset(get_args(EntryKind))
_SHOWN = 120


def _understanding(make: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Have what a function cannot understand be a `SandboxLost`."""

    @functools.wraps(make)
    def understood(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        try:
            return make(*args, **kwargs)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            reason = str(error)[:_SHOWN]
            raise SandboxLost(f"the guest sent what cannot be understood ({reason})") from error

    return understood


@_understanding
def header_of(data: bytes | bytearray) -> Answer:
    """Understand a header.

    Args:
        data: JSON

    Raises:
        SandboxLost: it is none, or a field is of another kind than it has to be
    """
    header = json.loads(data)
    if type(header) is not dict:
        raise TypeError("a header that is no object")
    for name, value in header.items():
        holds = _FIELDS.get(name)
        if holds is not None and not holds(value):
            raise TypeError(f"{name!r} is {value!r:.60}")
    return Answer(header) if "id" in header and "t" in header else _refuse("a header without id and kind")


@_understanding
def entry_of(fields: Sequence[Any]) -> Entry:
    """Understand an entry.

    Args:
        fields: those of `Entry`, in order

    Raises:
        SandboxLost: it is none
    """
    path, kind, size, mode, time, target, stamp = fields
    texts = _is_name(path) and _is_text(stamp) and (target is None or _is_name(target))
    if not (texts and "-" in stamp and kind in _KINDS and _is_count(size) and _is_count(mode) and _is_time(time)):
        raise TypeError(f"an entry is {fields!r:.60}")
    return Entry(path, kind, size, mode, time, target, stamp)


@_understanding
def entries_of(body: bytes, above: str = ".") -> list[Entry]:
    """Understand a part of a walk.

    Args:
        body: JSON: the entries
        above: the directory below which it goes; their paths begin with it unless it is `.`

    Raises:
        SandboxLost: there is something else
    """
    entries = [entry_of(one) for one in _list_of(body)]
    above = above.rstrip("/")
    start = "" if above in ("", ".") else f"{above}/"
    for entry in entries:
        if not entry.path.startswith(start):
            raise ValueError(f"{entry.path!r:.60} is not below {above!r:.60}")
        _require_inside(entry.path[len(start) :])
    return entries


@_understanding
def changes_of(body: bytes) -> dict[str, Entry | None]:
    """Understand a part of what has changed.

    Args:
        body: JSON: pairs of a path and what is there now, null for nothing; empty when it is not known

    Raises:
        SandboxLost: there is something else
    """
    changes: dict[str, Entry | None] = {}
    for path, fields in _list_of(body) if body else ():
        entry = None if fields is None else entry_of(fields)
        _require_inside(path)
        if entry is not None and entry.path != path:
            raise ValueError(f"{entry.path!r:.60} at {path!r:.60}")
        changes[path] = entry
    return changes


@_understanding
def joined(parts: Iterable[bytes], longest: int) -> bytes:
    """Understand bytes that come in parts.

    Args:
        parts: in order
        longest: how many were asked for at most

    Raises:
        SandboxLost: there are more
    """
    data = b"".join(parts)
    return data if len(data) <= longest else _refuse(f"{len(data)} bytes, where {longest} at most were asked for")


@_understanding
def found_of(body: bytes) -> FoundFile:
    """Understand what a search found in a file.

    Args:
        body: JSON: the fields of `FoundFile`, lines as lists

    Raises:
        SandboxLost: it is something else
    """
    record = json.loads(body)
    path, binary, count, lines = (record[name] for name in ("path", "binary", "count", "lines"))
    if not (_is_name(path) and _is_flag(binary) and _is_count(count) and _is_list(lines)):
        raise TypeError(f"{path!r:.60} is no file that was found")
    return FoundFile(path, binary, count, tuple(_line_of(*line) for line in lines))


def _line_of(number: object, matches: object, text: object, before: object = 0, behind: object = 0) -> FoundLine:
    if not (type(matches) is bool and type(text) is str and _stands_for_bytes(text)):
        raise TypeError(f"a line is {text!r:.60}")
    if not (type(number) is int and type(before) is int and type(behind) is int):
        raise TypeError(f"the place of a line is {number!r:.60}")
    return FoundLine(number, matches, text, before, behind)


def _list_of(body: bytes) -> list[Any]:
    value = json.loads(body)
    return value if type(value) is list else _refuse("a list that is none")


def _require_inside(path: object) -> None:
    """Refuse a path that leads out of the workspace, or is none."""
    if type(path) is not str or not _is_name(path) or path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"{path!r:.60} is no path of the workspace")


def _refuse(what: str) -> NoReturn:
    raise TypeError(what)
