"""Rows of data sets from local files: what is read, what is refused and how, and how little is read for the names."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from debug_gym_benchmarks import row_cache, row_files
from debug_gym_benchmarks.r2egym import R2EGym
from debug_gym_benchmarks.row_fields import Field
from debug_gym_benchmarks.rows import Rows
from debug_gym_benchmarks.swebench import SWEBench
from debug_gym_benchmarks.swesmith import SWESmith
from debug_gym_core import UsageError
from debug_gym_core.errors import RequirementError

FIELDS = {
    "patch": Field(),
    "tests": Field(list),
    "expected": Field(dict, required=False),
    "lines": Field(int, required=False),
}
SAMPLE: list[dict[str, Any]] = [
    {
        "id": "owner__a-1",
        "patch": "diff 1",
        "tests": '["t.py::a", "t.py::b"]',
        "expected": '{"a": "PASSED"}',
        "lines": 3,
    },
    {"id": "owner__a-2", "patch": "diff é", "tests": ["t.py::c"], "expected": None, "lines": None},
    {"id": "owner__b-1", "patch": "", "tests": []},
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "debug-gym" / "rows"


def rows(source: Path | str, **changes: Any) -> Rows:
    return Rows(str(source), **{"hub": "owner/name", "split": "test", "fields": FIELDS, "key": "id", **changes})


def written(path: Path, items: list[dict[str, Any]]) -> Path:
    """A file of rows in the format that its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        path.write_text(json.dumps(items))
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(item)}\n" for item in items))
    else:
        pyarrow = pytest.importorskip("pyarrow", reason="install debug-gym-benchmarks[parquet]")
        parquet = pytest.importorskip("pyarrow.parquet")
        texts = [
            {name: value if isinstance(value, str | int | None) else json.dumps(value) for name, value in item.items()}
            for item in items
        ]
        parquet.write_table(pyarrow.Table.from_pylist(texts), path, row_group_size=max(2, len(items) // 9))
    return path


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
def test_rows_of_each_format_are_the_same(tmp_path: Path, suffix: str) -> None:
    made = rows(written(tmp_path / f"rows{suffix}", SAMPLE))
    assert made.ids() == ["owner__a-1", "owner__a-2", "owner__b-1"]
    first, second, third = (made.row(id) for id in made.ids())
    assert first["tests"] == ["t.py::a", "t.py::b"] and first["expected"] == {"a": "PASSED"} and first["lines"] == 3
    assert second["patch"] == "diff é" and second["tests"] == ["t.py::c"]
    assert third["tests"] == [] and third["expected"] is None and third["lines"] is None


def test_threads_that_read_one_file_get_the_rows_they_ask_for(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.parquet", [{**SAMPLE[0], "id": f"a-{number}"} for number in range(40)])
    wrong, interval = [], sys.getswitchinterval()

    def read(first: int) -> None:
        made = rows(path)
        for number in range(first, first + 200):
            id = f"a-{number * 7 % 40}"
            if made.row(id)["id"] != id:
                wrong.append(id)

    threads = [threading.Thread(target=read, args=(13 * number,)) for number in range(6)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_an_object_of_rows_by_id_is_a_file_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"a-1": {"patch": "diff", "tests": []}}))
    assert rows(path).row("a-1")["id"] == "a-1"


def test_a_single_file_has_no_split_but_the_usual_one_and_that_of_its_name(tmp_path: Path) -> None:
    path = written(tmp_path / "dev.jsonl", SAMPLE)
    assert rows(path).ids() == rows(path, split="dev").ids() == rows(path, split="test").ids()
    with pytest.raises(
        UsageError, match=r"benchmark\.split: .*dev\.jsonl is a single file, which has no split 'train'; "
    ):
        rows(path, split="train").ids()


def test_lists_of_parquet_are_lists(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="install debug-gym-benchmarks[parquet]")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(
        pyarrow.Table.from_pylist([{"id": "a-1", "patch": "p", "tests": ["x", "y"]}]), tmp_path / "r.parquet"
    )
    assert rows(tmp_path / "r.parquet").row("a-1")["tests"] == ["x", "y"]


def test_a_directory_has_a_file_or_several_a_split(tmp_path: Path) -> None:
    written(tmp_path / "data" / "test-00000-of-00002.parquet", SAMPLE[:2])
    written(tmp_path / "data" / "test-00001-of-00002.parquet", SAMPLE[2:])
    written(tmp_path / "dev.jsonl", SAMPLE[:1])
    assert rows(tmp_path).ids() == ["owner__a-1", "owner__a-2", "owner__b-1"]
    assert rows(tmp_path, split="dev").ids() == ["owner__a-1"]
    with pytest.raises(UsageError, match=r"benchmark\.split: there is no split 'tests' in .*did you mean 'test'\?"):
        rows(tmp_path, split="tests").ids()


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
def test_a_missing_field_names_file_row_and_field(tmp_path: Path, suffix: str) -> None:
    path = written(
        tmp_path / f"rows{suffix}", [{("fix" if n == "patch" else n): v for n, v in row.items()} for row in SAMPLE]
    )
    unit = "line" if suffix == ".jsonl" else "row"
    with pytest.raises(UsageError) as refused:
        rows(path).row("owner__a-2")
    assert str(refused.value).startswith(f"{path}, {unit} 2 (owner__a-2): there is no field 'patch'")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"patch": 3}, "the field 'patch' must be a text, and is a whole number"),
        ({"patch": None}, "the field 'patch' is null"),
        ({"patch": ["x"]}, "the field 'patch' must be a text, and is a list"),
        ({"tests": "t.py::a"}, "the field 'tests' must be a list of texts, and is a text"),
        ({"tests": '{"a": 1}'}, "the field 'tests' must be a list of texts, and is an object"),
        (
            {"tests": ["a", 5]},
            "the field 'tests' must be a list of texts, and is a list with a whole number at place 2",
        ),
        ({"tests": ["a", None]}, "the field 'tests' must be a list of texts, and is a list with null at place 2"),
        ({"expected": "[]"}, "the field 'expected' must be an object, and is a list"),
        ({"lines": True}, "the field 'lines' must be a whole number, and is a truth value"),
        ({"lines": 1.5}, "the field 'lines' must be a whole number, and is a number"),
    ],
)
def test_a_mistyped_field_names_file_row_and_field(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    path = written(tmp_path / "rows.jsonl", [SAMPLE[0], {**SAMPLE[1], **change}])
    assert rows(path).row("owner__a-1")
    with pytest.raises(UsageError) as refused:
        rows(path).row("owner__a-2")
    assert str(refused.value) == f"{path}, line 2 (owner__a-2): {told}"


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
def test_a_missing_id_and_an_id_that_is_there_twice_are_refused(tmp_path: Path, suffix: str) -> None:
    unit = "line" if suffix == ".jsonl" else "row"
    path = written(tmp_path / f"rows{suffix}", [SAMPLE[0], SAMPLE[1], SAMPLE[0]])
    with pytest.raises(UsageError) as refused:
        rows(path).ids()
    assert str(refused.value) == f"{path}, {unit} 3 (owner__a-1): the id is that of {path}, {unit} 1, too"
    renamed = written(tmp_path / f"renamed{suffix}", [{"ids": "a", "patch": ""}])
    with pytest.raises(UsageError, match=r"there is no field 'id'; did you mean 'ids'\?"):
        rows(renamed).ids()


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("rows.jsonl", b'{"id": "a"}\n\n{"id": \n', "rows.jsonl, line 3: no readable JSON: Expecting value"),
        ("rows.jsonl", b'{"id": "\xff"}\n', "rows.jsonl, line 1: no readable JSON: 'utf-8' codec can't decode"),
        ("rows.jsonl", b"[]\n", "rows.jsonl, line 1: the row must be an object, and is a list"),
        ("rows.json", b'[{"id": "a"}, null]', "rows.json, row 2: the row must be an object, and is null"),
        ("rows.jsonl", b"[" * 100_000, "rows.jsonl, line 1: no readable JSON: too many brackets within each other"),
        ("rows.json", b"3", "rows.json: this is neither a list of rows nor an object of rows by id"),
        ("rows.jsonl", b"\n", "rows.jsonl: there are no rows in it"),
        ("rows.parquet", b"PAR1 no", "rows.parquet: no readable parquet file: "),
        ("rows.csv", b"id\na\n", "rows.csv is no .json, .jsonl, .parquet file"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_line(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as refused:
        rows(tmp_path / name).ids()
    assert told in str(refused.value) and "\n" not in str(refused.value)


def test_a_source_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"benchmark\.source: there is no file or directory .*nowhere"):
        rows(tmp_path / "nowhere").ids()
    with pytest.raises(UsageError, match=r"benchmark\.source: no \.json, \.jsonl, \.parquet file in "):
        rows(tmp_path).ids()


def test_an_unknown_id_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no row 'owner__a-3'; did you mean 'owner__a-"):
        rows(written(tmp_path / "rows.json", SAMPLE)).row("owner__a-3")


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", SAMPLE[:1])
    made = rows(path)
    assert made.ids() == ["owner__a-1"]
    written(path, SAMPLE)
    assert len(made.ids()) == 3


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_names_of_a_large_file_come_from_the_index(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path = written(tmp_path / f"rows{suffix}", SAMPLE)
    monkeypatch.setattr(row_cache, "INDEXED", 1)
    first = rows(path).ids()
    (index,) = cache.glob("index-*.json")
    forget()
    kept = json.loads(index.read_text())
    index.write_text(index.read_text().replace("owner__b-1", "owner__c-1"))  # so that it shows where the ids are from
    assert rows(path).ids() == [*first[:2], "owner__c-1"]
    for broken in ("", "{", "[]", json.dumps({**kept, "of": None})):
        forget()
        index.write_text(broken)
        assert rows(path).ids() == first
    forget()
    written(path, SAMPLE[:2])
    assert rows(path).ids() == first[:2]


def forget() -> None:
    """As another process would begin."""
    row_files._opened.cache_clear()
    row_files._places_in.cache_clear()


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.benchmarks
def test_fifty_thousand_names_are_quick_the_second_time(tmp_path: Path, suffix: str) -> None:
    tests = json.dumps([f"tests/test_part.py::test_case[{number}]" for number in range(40)])
    path = tmp_path / f"rows{suffix}"
    written(path, [{"id": f"owner__a-{number}", "patch": "diff", "tests": tests} for number in range(50_000)])
    assert len(rows(path).ids()) == 50_000
    forget()
    started = time.process_time()
    names = rows(path).ids()
    assert len(names) == 50_000 and time.process_time() - started < 2
    assert rows(path).row("owner__a-49999")["tests"][-1] == "tests/test_part.py::test_case[39]"


@pytest.fixture
def without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without the extras."""
    for name in ("datasets", "pyarrow", "pyarrow.parquet", "swebench"):
        monkeypatch.setitem(sys.modules, name, None)
    yield


@pytest.mark.usefixtures("without")
def test_doctor_is_told_what_benchmarks_of_data_sets_lack(tmp_path: Path, cache: Path) -> None:
    for made in (SWEBench(), SWESmith(), R2EGym()):
        lacks = made.unavailable() or ""
        assert "pip install 'debug-gym-benchmarks[hub]'" in lacks
        assert ("pip install 'debug-gym-benchmarks[swebench]'" in lacks) is (made.name == "swebench")
    assert SWESmith(source=str(tmp_path / "rows.json")).unavailable() is None
    cache.mkdir(parents=True)
    (cache / "SWE-bench--SWE-smith--newest--train.parquet").touch()
    assert SWESmith().unavailable() is None, "it was fetched before"


@pytest.mark.usefixtures("without")
def test_a_missing_package_is_named_with_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"")
    with pytest.raises(RequirementError) as refused:
        rows(tmp_path / "rows.parquet").ids()
    assert str(refused.value).endswith(
        "rows.parquet is a parquet file, which needs the package pyarrow: pip install 'debug-gym-benchmarks[parquet]'"
    )
    published = Rows(None, hub="owner/name", split="test", fields={}, key="id")
    with pytest.raises(RequirementError) as refused:
        published.ids()
    assert (
        published.unavailable()
        == str(refused.value)
        == (
            "the data set owner/name comes from the hub, which needs the package datasets:"
            " pip install 'debug-gym-benchmarks[hub]'; or say benchmark.source: a local .json, .jsonl or .parquet file"
        )
    )


def test_importing_the_module_imports_no_heavy_package() -> None:
    code = "import sys, debug_gym_benchmarks.rows; print([m for m in ('datasets', 'pyarrow') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
