from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from debug_gym_core.errors import SandboxLost
from debug_gym_core.sandbox.public_names import PublicNames

SOURCE = Path("/home/u/click")


def linked(path: str) -> str:
    return "/testbed"


def new(root: str, source: Path | None, realpath: Callable[[str], str]) -> PublicNames:
    return PublicNames(root, source, realpath, lambda: 0)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/u/click/src/types.py:3: in f", "src/types.py:3: in f"),
        ("  /home/u/click/src/types.py:3: UserWarning", "  src/types.py:3: UserWarning"),
        ("../home/u/click/src/types.py:3: ValueError", "src/types.py:3: ValueError"),
        ('File "/home/u/click/src/types.py", line 3', 'File "/testbed/src/types.py", line 3'),
        ("> /home/u/click/src/types.py(3)f()", "> /testbed/src/types.py(3)f()"),
        ("at /home/u/click/src/types.py:3", "at /testbed/src/types.py:3"),
        ("/home/u/click-2/a.py:1 /home/u/click.bak/a.py:1 /srv/home/u/click/a.py:1", None),
        ("assert '/home/u/click/a' == 'x'; ../../home/u/click; PYTHONPATH=/home/u/click/src/a.py", None),
    ],
)
def test_the_place_on_the_host_is_shown_as_the_workspace(text: str, shown: str | None) -> None:
    assert new("/testbed", SOURCE, linked).mask(text) == (text if shown is None else shown)


@pytest.mark.parametrize("text", ["GET /src/users -> 404", "import '../src/a.js'", "../src/util.py:3: in f"])
def test_what_may_be_another_path_is_left(text: str) -> None:
    assert new("/testbed", Path("/src"), linked).mask(text) == text


def test_where_the_link_leads_is_asked_once_a_command_and_only_for_what_is_named() -> None:
    asked: list[str] = []
    commands = 0

    def realpath(path: str) -> str:
        asked.append(path)
        return "/testbed"

    names = PublicNames("/testbed", SOURCE, realpath, lambda: commands)
    names.mask("home/u/click /home/u/click/a")
    assert asked == []
    for commands in (1, 2):
        names.mask("/home/u/click/a.py:1")
        names.mask("/home/u/click/a.py:1")
        assert len(asked) == commands


@pytest.mark.parametrize("piece", ["/home/u/click/", "../", "/home/u/click/a.py:", " ", "/home/u/click/a:"])
def test_a_text_of_any_length_is_read_at_once(piece: str) -> None:
    text = piece * (400_000 // len(piece)) + "x"
    assert new("/testbed", SOURCE, linked).mask(text) == text


def test_paths_below_any_name_of_the_workspace() -> None:
    names = new("/tmp/x/testbed", SOURCE, lambda path: "/tmp/x/testbed")
    for name in ("/testbed", "/tmp/x/testbed", "/home/u/click"):
        assert (names.relative(name), names.relative(f"{name}/a/b")) == (".", "a/b")
        assert names.relative(f"{name}2/a") is None
    assert names.mask("/tmp/x/testbed/a /tmp/x/home /home/u/click/b.py:1") == "/testbed/a /home /testbed/b.py:1"


def gone(path: str) -> str:
    raise SandboxLost("gone")


@pytest.mark.parametrize("realpath", [lambda path: path, gone])
def test_without_the_link_the_place_is_another(realpath: Callable[[str], str]) -> None:
    names = new("/testbed", SOURCE, realpath)
    assert names.mask("/home/u/click/a.py:1") == "/home/u/click/a.py:1"
    assert names.relative("/home/u/click/a") is None


@pytest.mark.parametrize("source", [None, Path("/"), Path("/testbed")])
def test_a_place_that_means_nothing_is_none(source: Path | None) -> None:
    names = new("/testbed", source, linked)
    assert (names.mask("/ /a.py:1 /testbed/a"), names.relative("/a")) == ("/ /a.py:1 /testbed/a", None)
