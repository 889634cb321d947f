"""Rows of a data set: from a local file or directory, or from the hub.

A file is read once in a process. The ids of a large json or jsonl file are kept in the cache, so that the next process
has the names without reading it; a parquet file gives its ids by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from debug_gym_benchmarks.hub import fetch, unavailable
from debug_gym_benchmarks.row_cache import cache
from debug_gym_benchmarks.row_fields import Field, checked
from debug_gym_benchmarks.row_files import RowFile, files_of, places_of
from debug_gym_core import UsageError
from debug_gym_core.names import nearest
from debug_gym_core.places import expanded


class Rows:
    """The rows of one split of a data set, by id.

    Example:
        >>> rows = Rows("rows.jsonl", hub="owner/name", fields={"patch": Field()}, key="instance_id")
        >>> rows.row(rows.ids()[0])["patch"]
    """

    def __init__(
        self,
        source: str | None,
        *,
        hub: str,
        split: str | None = None,
        usual: str = "test",
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
            split: which split; None: the usual one
            usual: the split that is meant where none is named; each single file is taken for it
            revision: branch, tag or commit on the hub; None: the newest when it is fetched
            fields: what is checked of each row that is asked for
            key: the field with the row's id
        """
        self._source = None if source is None else expanded(Path(source))
        self._hub = hub
        if source is not None and source.startswith("hub:"):
            self._source, self._hub = None, source.removeprefix("hub:")
        self._split = split or usual
        self._usual = usual
        self._revision = revision
        self._fields = {key: Field(), **fields}
        self._key = key

    def unavailable(self) -> str | None:
        """Say what is missing here to have the rows; None: nothing that is known, and nothing is fetched."""
        here = self._source is not None or self._kept().exists()
        return None if here else unavailable(self._hub)

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

    def _place(self, id: str) -> tuple[RowFile, int]:
        places = self._places()
        if id not in places:
            raise UsageError(f"{self._source or self._hub}: there is no row {id!r}{nearest(id, places)}")
        return places[id]

    def _places(self) -> Mapping[str, tuple[RowFile, int]]:
        """File and position of each row, by id."""
        source = self._source
        paths = [self._fetched()] if source is None else files_of(source, self._split, self._usual)
        places = places_of(paths, self._key)
        if not places:
            raise UsageError(f"{self._source or self._hub}: there are no rows in it")
        return places

    def _fetched(self) -> Path:
        """The split as a parquet file in the cache; fetched when it is not there."""
        path = self._kept()
        if not path.exists():
            fetch(self._hub, self._split, self._revision, path)
        return path

    def _kept(self) -> Path:
        name = "--".join((self._hub.replace("/", "--"), self._revision or "newest", self._split)).replace("/", "--")
        return cache() / f"{name}.parquet"
