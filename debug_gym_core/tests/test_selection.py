"""Which tasks are meant: names, globs, what is left out, and files of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.loading import load
from debug_gym_core.errors import UsageError
from debug_gym_core.plugins import load_plugins
from debug_gym_core.tasks.selection import select_tasks

TOY = Path(__file__).parent / "toy_plugin.py"
EVERYTHING = ["a", "b", "c", "x0", "x1"]


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEBUG_GYM_PLUGINS", "core,terminal-local")
        return load_plugins(files=[TOY], strict=True)


@pytest.fixture
def select(plugins: Plugins) -> Callable[..., list[str]]:
    toy = plugins.get("benchmarks", "toy")(extra_tasks=2)
    return lambda *patterns: select_tasks(toy, patterns)


@pytest.mark.parametrize(
    ("patterns", "meant"),
    [
        (["all"], EVERYTHING),
        (["!x*"], ["a", "b", "c"]),
        (["!toy/x*", "!a"], ["b", "c"]),
        (["x*", "!x0", "b"], ["b", "x1"]),
        (["!b", "all"], ["a", "c", "x0", "x1"]),
        (["hopeless", "a"], ["a", "hopeless"]),
        (["*", "!hopeless"], EVERYTHING),
        (["hop*", "!x*"], None),
    ],
)
def test_what_is_left_out_is_left_out_wherever_it_stands(
    select: Any, patterns: list[str], meant: list[str] | None
) -> None:
    if meant is None:
        with pytest.raises(UsageError, match="toy has no task 'hop\\*'"):
            select(*patterns)
        return
    assert select(*patterns) == meant


@pytest.mark.parametrize("pattern", ["!bb", "!toy/bb", "bb"])
def test_an_unknown_task_is_an_error_also_where_it_is_left_out(select: Any, pattern: str) -> None:
    with pytest.raises(UsageError) as refused:
        select(pattern)
    assert str(refused.value) == "toy has no task 'bb'; did you mean 'b'?"


def test_an_excluded_task_is_the_nearest_too(select: Any) -> None:
    with pytest.raises(UsageError, match="did you mean 'hopeless'"):
        select("hopeles")


def test_when_nothing_is_left_it_is_said(select: Any) -> None:
    with pytest.raises(UsageError, match=r"toy: no task is left of a, x\*, !\*$"):
        select("a", "x*", "!*")


def test_a_benchmark_without_tasks_says_so(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = plugins.get("benchmarks", "toy")()
    monkeypatch.setattr(toy, "names", list)
    monkeypatch.setattr(toy, "excluded", dict)
    with pytest.raises(UsageError, match=r"^toy has no tasks: its source is empty$"):
        select_tasks(toy, "all")


def test_an_error_does_not_name_thousands(plugins: Plugins) -> None:
    toy = plugins.get("benchmarks", "toy")(extra_tasks=5000)
    with pytest.raises(UsageError) as refused:
        select_tasks(toy, "something quite different")
    assert str(refused.value).endswith("; `debug-gym tasks toy` lists its 5004")


def test_a_file_of_names(select: Any, tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("# the first ones\n\na\n  toy/c   # with a comment\nx*\n!x0\n")
    assert select(f"@{file}") == ["a", "c", "x1"]
    assert select(f"@{file}", "b", "!c") == ["a", "b", "x1"]
    file.write_text("\ufeffa\r\nc\r\n", encoding="utf-8")  # as Windows' editors begin and end lines
    assert select(f"@{file}") == ["a", "c"]


def test_what_is_wrong_with_a_file_is_said_with_its_place(select: Any, tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    for content, words in (
        (b"a\n\nbb\n", f"{file}:3: toy has no task 'bb'; did you mean 'b'?"),
        (b"# none\n", f"tasks: {file} names no task"),
        (b"\xff\n", f"tasks: {file}: not UTF-8"),
        (None, f"tasks: {file}: No such file or directory"),
    ):
        file.write_bytes(content) if content is not None else file.unlink()
        with pytest.raises(UsageError) as refused:
            select(f"@{file}")
        assert str(refused.value) == words


def test_a_file_is_looked_for_beside_the_config(plugins: Plugins, tmp_path: Path, monkeypatch: Any) -> None:
    """And a run that is gone on with from elsewhere finds it: the path that is kept is absolute."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here/names.txt").write_text("a\n")
    (tmp_path / "here/my.yaml").write_text('benchmark: {name: toy, tasks: ["@names.txt", "!b"]}\n')
    monkeypatch.chdir(tmp_path)
    config = load("here/my.yaml", plugins=plugins)
    assert config.benchmark.tasks == (f"@{tmp_path}/here/names.txt", "!b")
    config = load("toy", tasks=[f"@here{os.sep}names.txt"], plugins=plugins)
    assert config.benchmark.tasks == (f"@{tmp_path}/here/names.txt",)
