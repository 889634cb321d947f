"""Rows of a data set: from a local file or directory, or from the hub.

A file is read once in a process. The ids of a large json or jsonl file are kept in the cache, so that the next process
has the names without reading it; a parquet file gives its ids by itself.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import hashlib
import importlib
import json
import os
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from debug_gym_core import UsageError
from debug_gym_core.errors import RequirementError
from debug_gym_core.names import nearest
from debug_gym_core.progress import tell
from debug_gym_core.sandbox.kept_setups import directory as kept_setups_directory

INDEXED = 4 << 20
"""Bytes from which on the ids of a json or jsonl file are kept in the cache."""

LOOK = 1.0
"""Seconds between two looks at how much has come from the hub."""

_KINDS = {str: "a text", list: "a list of texts", dict: "an object", int: "a whole number"}
_JSON_NAMES = {bool: "a truth value", float: "a number", **_KINDS, list: "a list"}
_PART = re.compile(r"-\d{5}-of-\d{5}$")


@dataclass(frozen=True)
class Field:
    """What a field of a row must be.

    Attributes:
        type: `str`; `int`; `list`, of texts; `dict`. The JSON text of a list or object is one, too
        required: whether it must be there and not null; else it is None where it is not
    """

    type: type = str
    required: bool = True


class Rows:
    """The rows of one split of a data set, by id.

    Example:
        >>> rows = Rows("rows.jsonl", hub="owner/name", split="test", fields={"patch": Field()}, key="instance_id")
        >>> rows.row(rows.ids()[0])["patch"]
    """

    def __init__(
        self,
        source: str | None,
        *,
        hub: str,
        split: str,
        revision: str | None = None,
        fields: Mapping[str, Field],
        key: str,
    ) -> None:
        """Nothing is read before it is asked for.

        Args:
            source: a .json (a list of rows, or an object of them by id), .jsonl or .parquet file, or a directory with a
                file a split (`test.jsonl`, `test-00000-of-00001.parquet`, also in its `data`); `hub:OWNER/NAME`:
                another data set of the hub; None: the published one
            hub: id of the published data set
            split: which split; of no meaning for a single file
            revision: branch, tag or commit on the hub; None: the newest when it is fetched
            fields: what is checked of each row that is asked for
            key: the field with the row's id
        """
        self._source = None if source is None else Path(source).expanduser()
        self._hub = hub
        if source is not None and source.startswith("hub:"):
            self._source, self._hub = None, source.removeprefix("hub:")
        self._split = split
        self._revision = revision
        self._fields = {key: Field(), **fields}
        self._key = key

    def ids(self) -> list[str]:
        """The ids of all rows, in their order.

        Raises:
            UsageError: the source is not there or cannot be read, or an id is missing or there twice
            RequirementError: a package is missing, or the hub cannot be reached
        """
        return list(self._places())

    def row(self, id: str) -> dict[str, Any]:
        """The row of an id, its fields checked.

        Raises:
            UsageError: there is no such row, or a field is missing or not what it should be
            RequirementError: as for `ids`
        """
        file, position = self._place(id)
        return checked(file.row(position), self._fields, where=f"{file.where(position)} ({id})")

    def where(self, id: str) -> str:
        """Names the file and the row of an id, for errors about what is in it."""
        file, position = self._place(id)
        return f"{file.where(position)} ({id})"

    def _place(self, id: str) -> tuple[_File, int]:
        places = self._places()
        if id not in places:
            raise UsageError(f"{self._source or self._hub}: there is no row {id!r}{nearest(id, places)}")
        return places[id]

    def _places(self) -> Mapping[str, tuple[_File, int]]:
        """File and position of each row, by id."""
        paths = [self._fetched()] if self._source is None else files_of(self._source, self._split)
        return _places_in(tuple(_opened(str(path), *_state(path), self._key) for path in paths))

    def _fetched(self) -> Path:
        """The split as a parquet file in the cache; fetched when it is not there."""
        name = "--".join((self._hub.replace("/", "--"), self._revision or "newest", self._split)).replace("/", "--")
        path = cache() / f"{name}.parquet"
        if not path.exists():
            fetch(self._hub, self._split, self._revision, path)
        return path


def checked(row: Mapping[str, Any], fields: Mapping[str, Field], *, where: str) -> dict[str, Any]:
    """A row whose fields are what they should be.

    Args:
        row: as it was read; fields that nobody declared stay as they are
        fields: what is declared
        where: names file and row

    Raises:
        UsageError: a field is missing or not what it should be
    """
    result = dict(row)
    for name, field in fields.items():
        value = row.get(name)
        if value is None:
            if field.required:
                lack = f"the field {name!r} is null" if name in row else f"there is no field {name!r}"
                raise UsageError(f"{where}: {lack}{'' if name in row else nearest(name, row)}")
            result[name] = None
            continue
        if isinstance(value, str) and field.type in (list, dict):
            with contextlib.suppress(ValueError):  # what is no JSON is the text that it is, which is told below
                value = json.loads(value)
        wrong = _wrong(value, field.type)
        if wrong is not None:
            raise UsageError(f"{where}: the field {name!r} must be {_KINDS[field.type]}, and is {wrong}")
        result[name] = value
    return result


def _wrong(value: Any, wanted: type) -> str | None:
    """What a value is instead of what is wanted; None: it is that."""
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is int):
        return _JSON_NAMES.get(type(value), f"a {type(value).__name__}")
    if isinstance(value, list):
        for place, item in enumerate(value, start=1):
            if not isinstance(item, str):
                return f"a list with {_JSON_NAMES.get(type(item), 'null')} at place {place}"
    return None


def files_of(source: Path, split: str) -> list[Path]:
    """The files of a split.

    Args:
        source: a file, which is the split, or a directory with files by split
        split: its name

    Raises:
        UsageError: there is no such file or directory, or no such split in it
    """
    if source.is_file():
        if source.suffix not in _FORMATS:
            raise UsageError(f"benchmark.source: {source} is no {', '.join(_FORMATS)} file")
        return [source]
    if not source.is_dir():
        raise UsageError(f"benchmark.source: there is no file or directory {source}")
    found: dict[str, list[Path]] = {}
    for directory in (source, source / "data"):
        for path in sorted(directory.glob("*")):
            if path.suffix in _FORMATS and path.is_file():
                found.setdefault(_PART.sub("", path.stem), []).append(path)
    if not found:
        raise UsageError(f"benchmark.source: no {', '.join(_FORMATS)} file in {source}")
    if split not in found:
        raise UsageError(f"benchmark.split: there is no split {split!r} in {source}{nearest(split, found)}")
    return found[split]


def cache() -> Path:
    """Where data sets and indexes are kept: `debug-gym/rows` below `$XDG_CACHE_HOME`, or `~/.cache`."""
    return kept_setups_directory().with_name("rows")


class _File(abc.ABC):
    """A file of rows.

    Attributes:
        path: where it is
        key: the field with the id
    """

    unit: ClassVar[str] = "row"

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self.key = key

    def where(self, position: int) -> str:
        """Names file and row."""
        return f"{self.path}, {self.unit} {self.number(position)}"

    def number(self, position: int) -> int:
        """The number of a row, from 1."""
        return position + 1

    @abc.abstractmethod
    def ids(self) -> Sequence[str]:
        """The id of each row, at its position."""

    @abc.abstractmethod
    def row(self, position: int) -> Mapping[str, Any]:
        """The row at a position."""

    def id_of(self, row: object, where: str) -> str:
        """The id of a row."""
        if not isinstance(row, Mapping):
            raise UsageError(f"{where}: the row must be an object, and is {_JSON_NAMES.get(type(row), 'null')}")
        return str(checked(row, {self.key: Field()}, where=where)[self.key])


class _Json(_File):
    """A list of rows, or an object of them by id."""

    def ids(self) -> Sequence[str]:
        return _indexed(self.path, self.key, self._ids)

    def _ids(self) -> Sequence[str]:
        return [self.id_of(row, self.where(position)) for position, row in enumerate(self._rows)]

    def row(self, position: int) -> Mapping[str, Any]:
        row: Mapping[str, Any] = self._rows[position]
        return row

    @functools.cached_property
    def _rows(self) -> list[Any]:
        value = _parsed(self.path.read_bytes(), str(self.path))
        if isinstance(value, dict):
            return [{self.key: id, **row} if isinstance(row, dict) else row for id, row in value.items()]
        if not isinstance(value, list):
            raise UsageError(f"{self.path}: this is neither a list of rows nor an object of rows by id")
        return value


class _Lines(_File):
    """A row a line; the index says where each begins."""

    unit = "line"

    def number(self, position: int) -> int:
        return int(self._index[position][2])

    def ids(self) -> Sequence[str]:
        return [str(entry[0]) for entry in self._index]

    def row(self, position: int) -> Mapping[str, Any]:
        with self.path.open("rb") as file:
            file.seek(self._index[position][1])
            row: Mapping[str, Any] = _parsed(file.readline(), self.where(position))
        return row

    @functools.cached_property
    def _index(self) -> list[Any]:
        """Id, offset and number of the line of each row."""
        return list(_indexed(self.path, self.key, lambda: list(self._read())))

    def _read(self) -> Iterator[tuple[str, int, int]]:
        offset = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    where = f"{self.path}, line {number}"
                    yield self.id_of(_parsed(line, where), where), offset, number
                offset += len(line)


class _Parquet(_File):
    """A parquet file, read by row group."""

    _group: tuple[int, list[dict[str, Any]]] | None = None

    def ids(self) -> Sequence[str]:
        with self._opened() as file:
            names = file.schema_arrow.names
            if self.key not in names:
                raise UsageError(f"{self.path}: there is no field {self.key!r}{nearest(self.key, names)}")
            values = file.read(columns=[self.key]).column(0).to_pylist()
        return [self.id_of({self.key: value}, self.where(position)) for position, value in enumerate(values)]

    def row(self, position: int) -> Mapping[str, Any]:
        with self._opened() as file:
            group = 0
            while position >= (count := file.metadata.row_group(group).num_rows):
                position, group = position - count, group + 1
            if self._group is None or self._group[0] != group:
                self._group = group, file.read_row_group(group).to_pylist()
        return self._group[1][position]

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        arrow = _package("pyarrow", extra="parquet", why=f"{self.path} is a parquet file")
        parquet = importlib.import_module("pyarrow.parquet")
        try:
            with parquet.ParquetFile(self.path) as file:
                yield file
        except (arrow.ArrowException, OSError) as error:
            raise UsageError(f"{self.path}: no readable parquet file: {_line(error)}") from error


_FORMATS: dict[str, type[_File]] = {".json": _Json, ".jsonl": _Lines, ".parquet": _Parquet}


@functools.lru_cache(maxsize=16)
def _opened(path: str, changed: int, size: int, key: str) -> _File:
    """A file as it is now, read once."""
    return _FORMATS[Path(path).suffix](Path(path), key)


@functools.lru_cache(maxsize=16)
def _places_in(files: tuple[_File, ...]) -> Mapping[str, tuple[_File, int]]:
    places: dict[str, tuple[_File, int]] = {}
    for file in files:
        for position, id in enumerate(file.ids()):
            if id in places:
                first, before = places[id]
                raise UsageError(f"{file.where(position)} ({id}): the {file.key} is that of {first.where(before)}, too")
            places[id] = file, position
    return places


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _parsed(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:  # UnicodeDecodeError is one, too
        raise UsageError(f"{where}: no readable JSON: {_line(error)}") from None


def _indexed(path: Path, key: str, read: Any) -> Sequence[Any]:
    """What `read` returns, kept in the cache as long as a large file stays the same."""
    state = _state(path)
    if state[1] < INDEXED:
        result: Sequence[Any] = read()
        return result
    facts = [str(path.resolve()), *state, key]
    place = cache() / f"index-{hashlib.sha256(json.dumps([facts[0], key]).encode()).hexdigest()[:32]}.json"
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):  # none, or one that a crash cut: made again
        kept = json.loads(place.read_bytes())
        if kept["of"] == facts:
            result = kept["index"]
            return result
    result = read()
    with contextlib.suppress(OSError):  # a cache that cannot be written costs time, no more
        place.parent.mkdir(parents=True, exist_ok=True)
        with _written(place) as temporary:
            temporary.write_text(json.dumps({"of": facts, "index": result}), encoding="utf-8")
    return result


@contextlib.contextmanager
def _written(path: Path) -> Iterator[Path]:
    """A file that takes the place of `path` when the block ends without an error."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def fetch(hub: str, split: str, revision: str | None, path: Path) -> None:
    """Fetch a split from the hub.

    Args:
        hub: id of the data set
        split: its split
        revision: branch, tag or commit; None: the newest
        path: the parquet file that is made; its directory may be missing

    Raises:
        UsageError: there is no such data set, revision or split
        RequirementError: the package `datasets` is missing, or the hub cannot be reached
    """
    instead = "or say benchmark.source: a local .json, .jsonl or .parquet file"
    datasets = _package("datasets", extra="hub", why=f"the data set {hub} comes from the hub", instead=f"; {instead}")
    about = hub if revision is None else f"{hub} at {revision}"
    bars = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()  # they would tear the command line's own table
    try:
        with _told(
            hub, f"fetching the data set {about}, split {split}, from the hub (once, it is kept for later runs)"
        ):
            splits = datasets.get_dataset_split_names(hub, revision=revision)
            if split not in splits:
                raise UsageError(f"benchmark.split: {about} has no split {split!r}{nearest(split, splits)}")
            rows = datasets.load_dataset(hub, split=split, revision=revision)
            path.parent.mkdir(parents=True, exist_ok=True)
            with _written(path) as temporary:
                rows.to_parquet(str(temporary))
    except datasets.exceptions.DatasetNotFoundError as error:
        raise UsageError(f"benchmark.{'source' if revision is None else 'revision'}: {_line(error)}") from error
    except OSError as error:  # ConnectionError, the hub's own errors of HTTP, and a full disk
        raise RequirementError(
            f"the data set {about} cannot be fetched: {_line(error)}; connect to the hub, {instead}"
        ) from error
    finally:
        if bars:
            datasets.enable_progress_bars()


@contextlib.contextmanager
def _told(hub: str, line: str) -> Iterator[None]:
    """Tell how much of a data set has come while the block runs."""
    cache = Path(importlib.import_module("huggingface_hub.constants").HF_HUB_CACHE)
    files = cache / f"datasets--{hub.replace('/', '--')}" / "blobs"
    done = threading.Event()

    def look() -> None:
        while not done.wait(LOOK):
            with contextlib.suppress(OSError):  # a part is renamed when it is whole
                size = sum(file.stat().st_size for file in files.glob("*"))
                tell(hub, f"{line}: {size / 1e6:.1f} MB")

    tell(hub, line)
    looking = threading.Thread(target=look, name="progress of a data set", daemon=True)
    looking.start()
    try:
        yield
    finally:
        done.set()
        looking.join()
        tell(hub, None)


def _package(name: str, *, extra: str, why: str, instead: str = "") -> Any:
    """A package that is imported when first used."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise RequirementError(
            f"{why}, which needs the package {name}: pip install 'debug-gym-benchmarks[{extra}]'{instead}"
        ) from None


def _line(error: BaseException) -> str:
    """The first line of an error's text."""
    return next((line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()), type(error).__name__)[
        :300
    ]
