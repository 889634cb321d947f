"""The listdir tool in a live environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from debug_gym_core import Observation, RepoEnv, Task
from debug_gym_core.testing import write_sample
from debug_gym_core.tools.observation import TEXT_LIMIT
from debug_gym_tool_listdir import LIMIT, ListDir

pytest_plugins = ["debug_gym_core.testing.fixtures"]
Say = Callable[[str], Observation]


@pytest.fixture
def env(make_env: Callable[..., RepoEnv], tmp_path: Path) -> RepoEnv:
    files = {
        "src/deep/x.py": "",
        "src/__pycache__/x.pyc": "",
        "src/app.py": "",
        "src-2/x": "",
        "test_app.py": "",
        "secret/x": "",
        ".debugreadonly": "test_*.py\n/src/deep/\n",
        ".debugignore": "secret/\n",
    }
    root = write_sample(tmp_path / "repo", files)
    (root / "src-2" / "x").unlink()
    (root / "link").symlink_to("src/app.py")
    return make_env([ListDir()], task=Task("tests", "listdir", root, entrypoint="python -c pass", max_score=1))


def test_the_root_is_listed_without_what_is_ignored(say: Say) -> None:
    assert say("listdir").text.splitlines() == [
        "./",
        "  .debugignore (ro)",
        "  .debugreadonly (ro)",
        "  link -> src/app.py",
        "  src/",
        "  src-2/",
        "  test_app.py (ro)",
    ]


def test_a_tree_is_indented_and_entries_follow_their_directory(env: RepoEnv, say: Say) -> None:
    env.session.run("mkdir src/__pycache__; touch src/__pycache__/app.cpython-311.pyc")
    seen = say("listdir . 3")
    assert seen.text.splitlines()[4:9] == ["  src/", "    app.py", "    deep/ (ro)", "      x.py (ro)", "  src-2/"]
    assert {"path": "src/deep/x.py", "kind": "file", "readonly": True} in seen.data["entries"]
    assert say("listdir src depth=2").text.splitlines() == ["src/", "  app.py", "  deep/ (ro)", "    x.py (ro)"]


def test_a_link_tells_nothing_of_what_is_ignored(env: RepoEnv, say: Say) -> None:
    env.session.run("cd src-2; ln -s ../secret/x one; ln -s ../secret two; ln -s ../../out three; ln -s /etc/x four")
    assert say("listdir src-2").text.splitlines()[1:] == [
        "  four -> /etc/x",
        "  one -> (ignored)",
        "  three -> ../../out",
        "  two -> (ignored)",
    ]


def test_an_empty_directory(say: Say) -> None:
    assert say("listdir src-2").text == "src-2/\n  (nothing)"


def test_a_long_listing_says_how_many_more(env: RepoEnv, say: Say) -> None:
    env.session.run(f"cd src-2; for i in $(seq 1 {LIMIT + 20}); do : > f$i; done")
    seen = say("listdir src-2")
    assert len(seen.text.splitlines()) == LIMIT + 2
    assert "[20 more entries" in seen.text
    assert seen.data["left_out"] == 20 and len(seen.data["entries"]) == LIMIT
    env.session.run(f"cd src-2; rm f*; for i in $(seq 1 {LIMIT}); do : > $i{'n' * 200}; done")
    assert len(say("listdir src-2").text) < TEXT_LIMIT


def test_names_that_cannot_be_seen_are_escaped(env: RepoEnv, say: Say) -> None:
    env.session.run("cd src-2; touch \"$(printf 'a\\nb\\351')\"")
    assert say("listdir src-2").text == "src-2/\n  a\\x0ab\\xe9"


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("listdir nowhere", "there is no directory nowhere"),
        ("listdir test_app.py", "is a file"),
        ("listdir ..", "outside the workspace"),
        ("listdir secret", "ignored"),
        ("listdir . 0", "depth must be at least 1"),
    ],
)
def test_what_cannot_be_listed_is_an_error_with_the_reason(say: Say, action: str, reason: str) -> None:
    seen = say(action)
    assert seen.error and reason in seen.text
