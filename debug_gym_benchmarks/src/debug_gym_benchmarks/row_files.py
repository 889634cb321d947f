"""Files of rows: json, jsonl, parquet. Each gives its ids, and a row at a time."""

from __future__ import annotations

import abc
import contextlib
import functools
import importlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from debug_gym_benchmarks.packages import first_line, package
from debug_gym_benchmarks.row_cache import indexed, state_of
from debug_gym_benchmarks.row_fields import JSON_NAMES, Field, checked
from debug_gym_core import UsageError
from debug_gym_core.names import nearest

_PART = re.compile(r"-\d{5}-of-\d{5}$")


def files_of(source: Path, split: str, usual: str) -> list[Path]:
    """The files of a split.

    Args:
        source: a file, which is the split, or a directory with files by split
        split: its name
        usual: the one that is meant where none is named; each file is taken for it

    Raises:
        UsageError: there is no such file or directory, or no such split in it
    """
    if source.is_file():
        if source.suffix not in _FORMATS:
            raise UsageError(f"benchmark.source: {source} is no {', '.join(_FORMATS)} file")
        if split not in (usual, _split_of(source)):
            hint = "leave it out, or name a directory with a file a split"
            raise UsageError(f"benchmark.split: {source} is a single file, which has no split {split!r}; {hint}")
        return [source]
    if not source.is_dir():
        raise UsageError(f"benchmark.source: there is no file or directory {source}")
    found: dict[str, list[Path]] = {}
    for directory in (source, source / "data"):
        for path in sorted(directory.glob("*")):
            if path.suffix in _FORMATS and path.is_file():
                found.setdefault(_split_of(path), []).append(path)
    if not found:
        raise UsageError(f"benchmark.source: no {', '.join(_FORMATS)} file in {source}")
    if split not in found:
        raise UsageError(f"benchmark.split: there is no split {split!r} in {source}{nearest(split, found)}")
    return found[split]


def _split_of(path: Path) -> str:
    """The split that a file is one of or a part of, by its name."""
    return _PART.sub("", path.stem)


class RowFile(abc.ABC):
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
            raise UsageError(f"{where}: the row must be an object, and is {JSON_NAMES.get(type(row), 'null')}")
        return str(checked(row, {self.key: Field()}, where=where)[self.key])


class _Json(RowFile):
    """A list of rows, or an object of them by id."""

    def ids(self) -> Sequence[str]:
        return indexed(self.path, self.key, self._ids)

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


class _Lines(RowFile):
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
        return list(indexed(self.path, self.key, lambda: list(self._read())))

    def _read(self) -> Iterator[tuple[str, int, int]]:
        offset = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    where = f"{self.path}, line {number}"
                    yield self.id_of(_parsed(line, where), where), offset, number
                offset += len(line)


class _Parquet(RowFile):
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
            known = self._group  # another thread may read, and keep, another one meanwhile
            if known is None or known[0] != group:
                self._group = known = group, file.read_row_group(group).to_pylist()
        return known[1][position]

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        arrow = package("pyarrow", extra="parquet", why=f"{self.path} is a parquet file")
        parquet = importlib.import_module("pyarrow.parquet")
        try:
            with parquet.ParquetFile(self.path) as file:
                yield file
        except (arrow.ArrowException, OSError) as error:
            raise UsageError(f"{self.path}: no readable parquet file: {first_line(error)}") from error


_FORMATS: dict[str, type[RowFile]] = {".json": _Json, ".jsonl": _Lines, ".parquet": _Parquet}


def places_of(paths: Iterable[Path], key: str) -> Mapping[str, tuple[RowFile, int]]:
    """The file and the position of each row, by id; a file that did not change since is not read again.

    Args:
        paths: of the files, in their order
        key: the field with the id

    Raises:
        UsageError: a file cannot be read, or an id is missing or there twice
        RequirementError: the package that a file needs is missing
    """
    return _places_in(tuple(_opened(str(path), *state_of(path), key) for path in paths))


@functools.lru_cache(maxsize=16)
def _opened(path: str, changed: int, size: int, key: str) -> RowFile:
    """A file as it is now, read once."""
    return _FORMATS[Path(path).suffix](Path(path), key)


@functools.lru_cache(maxsize=16)
def _places_in(files: tuple[RowFile, ...]) -> Mapping[str, tuple[RowFile, int]]:
    places: dict[str, tuple[RowFile, int]] = {}
    for file in files:
        for position, id in enumerate(file.ids()):
            if id in places:
                first, before = places[id]
                raise UsageError(f"{file.where(position)} ({id}): the {file.key} is that of {first.where(before)}, too")
            places[id] = file, position
    return places


def _parsed(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise UsageError(f"{where}: no readable JSON: too many brackets within each other") from None
    except ValueError as error:  # UnicodeDecodeError is one, too
        raise UsageError(f"{where}: no readable JSON: {first_line(error)}") from None
