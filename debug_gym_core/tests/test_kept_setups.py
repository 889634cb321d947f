"""Setups that are kept: by what they are known, who holds them, what counts as finished, what is removed."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.errors import RequirementError, SandboxError
from debug_gym_core.sandbox import kept_setups
from debug_gym_core.sandbox.kept_setups import KeptSetup, Use, hold, key_of, place_of

KEY = key_of({"commands": ["true"]})


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "debug-gym" / "setup"


def never() -> bool:
    return False


def kept(key: str = KEY, image: str = "", terminal: str = "some") -> KeptSetup:
    return KeptSetup(key, terminal, "base", image, ("true",), ("gone",), kept_setups.now(), 7)


def make(there: Callable[[KeptSetup], bool] = lambda one: True, **fields: Any) -> tuple[list[Path], KeptSetup, Use]:
    """Hold a setup whose making is counted."""
    made: list[Path] = []

    def one(place: Path) -> KeptSetup:
        assert list(place.iterdir()) == []
        made.append(place)
        (place / "file").write_text("made")
        return kept(**fields)

    got, use = hold(fields.get("key", KEY), one, there, waits=lambda: None, given_up=never)
    return made, got, use


def test_the_key_says_all_that_decides() -> None:
    facts = {"commands": ["a", "b"], "network": "none", "base": {"version": (3, 11)}}
    assert key_of(facts) == key_of({**facts, "base": {"version": [3, 11]}})
    others = [{"commands": ["b", "a"]}, {"commands": ["a b"]}, {"network": "host"}, {"base": {"version": (3, 12)}}]
    assert len({key_of(facts), *(key_of({**facts, **other}) for other in others)}) == 5


def test_the_directory_is_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for value in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert kept_setups.directory() == tmp_path / "home" / ".cache" / "debug-gym" / "setup"


def test_what_is_finished_is_found_again() -> None:
    made, got, use = make()
    again, same, other = make()
    assert (len(made), again) == (1, [])
    assert got == same and same.place == made[0]
    use.end()
    other.end()
    use.end()
    assert kept_setups.summary(kept_setups.all_kept()) == (1, 7)


@pytest.mark.parametrize("text", ["", "{}", "[]", "{", '{"key": 1, "commands": 2}'])
def test_what_is_damaged_or_unfinished_is_made_anew(text: str) -> None:
    make()[2].end()
    (place_of(KEY) / "setup.json").write_text(text)
    assert kept_setups.all_kept() == []
    made, _, use = make()
    assert len(made) == 1
    use.end()


def test_a_setup_of_another_key_in_its_place_does_not_count() -> None:
    """The directory's name is a part of the key only."""
    make()[2].end()
    file = place_of(KEY) / "setup.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "key": KEY[:-1] + "x"}))
    made, got, use = make()
    assert len(made) == 1 and got.key == KEY
    use.end()


def test_what_the_backend_lost_is_made_anew_once() -> None:
    make(image="one")[2].end()
    made, got, use = make(lambda one: one.image == "two", image="two")
    assert len(made) == 1 and got.image == "two"
    use.end()
    with pytest.raises(SandboxError, match="was gone as soon as it was made"):
        make(lambda one: False)


def test_nothing_is_left_when_making_fails(cache: Path) -> None:
    def fail(place: Path) -> KeptSetup:
        (place / "deep").mkdir()
        (place / "deep" / "file").touch()
        (place / "deep").chmod(0)
        raise RequirementError("no")

    with pytest.raises(RequirementError, match="no"):
        hold(KEY, fail, lambda one: True, waits=lambda: None, given_up=never)
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    with pytest.raises(RequirementError, match=r"is kept in /proc/nowhere/debug-gym/setup: .*set XDG_CACHE_HOME"):
        make()


def test_a_fork_holds_nothing_and_frees_nothing() -> None:
    use = make()[2]
    child = os.fork()
    if child == 0:
        use.end()
        os._exit(0 if Use.attempt(place_of(KEY), fcntl.LOCK_EX) is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write_end)
        os.read(read_end, 1)
        os._exit(0)
    use.end()
    free = Use.attempt(place_of(KEY), fcntl.LOCK_EX)
    os.close(write_end)
    os.close(read_end)
    os.waitpid(child, 0)
    assert free is not None
    free.end()


def test_only_what_nobody_uses_is_removed(cache: Path) -> None:
    use = make()[2]
    place = place_of(KEY)
    assert kept_setups.reap() == []
    assert kept_setups.remove_all({}) == ([], [f"setup {place.name} is in use"])
    use.end()
    assert kept_setups.remove_all({}) == ([f"setup {place.name} (true)"], [])
    assert list(cache.iterdir()) == []


def test_unfinished_ones_are_reaped_unless_somebody_makes_them(cache: Path) -> None:
    for name in ("abandoned", "busy"):
        (cache / name / "environment").mkdir(parents=True)
    (cache / "stray.txt").touch()
    (cache / "link").symlink_to(cache.parent)
    maker = Use.attempt(cache / "busy", fcntl.LOCK_EX)
    assert maker is not None
    assert kept_setups.reap() == [cache / "abandoned"]
    maker.end()
    assert kept_setups.reap() == [cache / "busy"]
    assert sorted(path.name for path in cache.iterdir()) == ["link", "stray.txt"]


def test_the_backend_removes_its_part_first(cache: Path) -> None:
    make(image="image", terminal="gone")[2].end()
    removed, failed = kept_setups.remove_all({})
    assert removed == [] and failed == [f"setup {place_of(KEY).name}: the terminal gone is not installed"]
    gone: list[str] = []

    class Backend:
        remove_image = gone.append

    removed, failed = kept_setups.remove_all({"gone": Backend})  # type: ignore[dict-item]
    assert gone == ["image"] and len(removed) == 1 and failed == []
    assert list(cache.iterdir()) == []
