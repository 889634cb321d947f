"""The files of tasks that the cache keeps."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from debug_gym_benchmarks import cache
from debug_gym_core import DebugGymError, RequirementError
from debug_gym_core.workspace.snapshot import FileState

pytestmark = pytest.mark.usefixtures("kept")

FILES = {
    "a.py": FileState(b"a = 1\n"),
    "dir/run": FileState(b"#!/bin/sh\n", 0o755),
    "l": FileState(b"a.py", kind="link"),
}


def test_what_is_kept_holds_just_its_files(kept: Path) -> None:
    place = cache.keep("acme/task", FILES)
    assert place.is_relative_to(kept)
    assert {str(path.relative_to(place)) for path in place.rglob("*")} == {"a.py", "dir", "dir/run", "l"}
    assert cache.read(place / "dir/run") == FILES["dir/run"] and cache.read(place / "l") == FILES["l"]
    assert cache.keep("acme/task", dict(reversed(FILES.items()))) == place
    others = [
        {**FILES, "a.py": FileState(b"a = 2\n")},
        {**FILES, "a.py": FileState(b"a = 1\n", 0o755)},
        {"a.py": FILES["a.py"]},
    ]
    assert len({cache.keep("acme/task", one) for one in others} | {place}) == 4


@pytest.mark.parametrize("harm", [
    lambda place: (place / "a.py").write_text("a = 0\n"),
    lambda place: (place / "more.py").write_text(""),
    lambda place: (place / "dir/run").chmod(0o644),
    lambda place: (place / "l").unlink(),
    lambda place: shutil.rmtree(place / "dir"),
])  # fmt: skip
def test_what_has_changed_is_made_anew(harm: Callable[[Path], object]) -> None:
    place = cache.keep("acme/task", FILES)
    harm(place)
    assert cache.keep("acme/task", FILES) == place
    assert {path: cache.read(place / path) for path in FILES} == FILES
    assert not (place / "more.py").exists()
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_what_could_not_be_made_is_not_there(kept: Path) -> None:
    """A file that lies in another cannot be written: what was made until then goes."""
    with pytest.raises(RequirementError, match="set XDG_CACHE_HOME"):
        cache.keep("acme/task", {"a": FileState(b""), "a/b": FileState(b"")})
    assert list((kept / "tasks" / "acme").iterdir()) == []


def test_many_may_keep_the_same_at_once(kept: Path) -> None:
    found: list[Path | DebugGymError] = []
    threads = [threading.Thread(target=lambda: found.append(cache.keep("acme/task", FILES))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1
    assert len(list((kept / "tasks" / "acme").iterdir())) == 1
