"""What the benchmarks say of their tasks, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from debug_gym_benchmarks.mini_nightmare import MiniNightmare
from debug_gym_benchmarks.r2egym import R2EGym
from debug_gym_benchmarks.repo import Repo
from debug_gym_benchmarks.swebench import SWEBench
from debug_gym_benchmarks.swesmith import SWESmith
from debug_gym_core import Benchmark, UsageError

COLUMNS = 80


def test_each_small_nightmare_has_a_title_that_fits_beside_its_name() -> None:
    made = MiniNightmare()
    titles = made.titles()
    assert list(titles) == list(made.names())
    widest = max(len(f"{made.name}/{name}") for name in titles)
    assert max(map(len, titles.values())) <= COLUMNS - widest - 2


def test_a_repository_is_known_by_its_place(tmp_path: Path) -> None:
    assert Repo(path=tmp_path).titles() == {tmp_path.name: f"the repository {tmp_path}"}


@pytest.mark.parametrize("mode", ["hidden", "debug"])
@pytest.mark.parametrize("cls", [MiniNightmare, Repo])
def test_other_modes_are_refused(cls: type[Benchmark], mode: str) -> None:
    with pytest.raises(UsageError) as refused:
        cls(mode=mode)
    assert str(refused.value) == f"{cls.name}: mode: say visible (got {mode!r})"
    assert cls(mode="visible").settings.mode == "visible"


@pytest.mark.parametrize("key", ["source", "split", "revision"])
@pytest.mark.parametrize("cls", [MiniNightmare, Repo])
def test_other_data_is_refused(cls: type[Benchmark], key: str) -> None:
    with pytest.raises(UsageError) as refused:
        cls(**{key: "x"})
    assert str(refused.value).startswith(f"{cls.name}: unknown key {key!r}; known: mode")


@pytest.mark.parametrize(
    ("cls", "split"), [(SWEBench, "dev"), (SWEBench, "full/dev"), (SWESmith, "dev"), (R2EGym, "lite/dev")]
)
def test_a_file_is_not_taken_for_a_split(cls: type[Benchmark], split: str, tmp_path: Path) -> None:
    source = tmp_path / "rows.json"
    source.write_text('[{"instance_id": "a__b.c", "docker_image": "a:b"}]')
    assert (
        cls(source=str(source)).names() and cls(source=str(source.rename(tmp_path / "dev.json")), split=split).names()
    )
    source.write_text("[]")
    with pytest.raises(UsageError, match=r"benchmark\.split: .*rows\.json is a single file, which has no split 'dev'"):
        cls(source=str(source), split=split).names()
