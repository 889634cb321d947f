from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from debug_gym_core.errors import SandboxLost
from debug_gym_core.sandbox.public_names import PublicNames

SOURCE = Path("/home/u/click")


def linked(path: str) -> str:
    return "/testbed"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/u/click/src/types.py:3: in f", "src/types.py:3: in f"),
        ("  /home/u/click/src/types.py:3: UserWarning", "  src/types.py:3: UserWarning"),
        ("../home/u/click/src/types.py:3: ValueError", "src/types.py:3: ValueError"),
        ("../../home/u/click", "."),
        ('File "/home/u/click/src/types.py", line 3', 'File "/testbed/src/types.py", line 3'),
        ("> /home/u/click/src/types.py(3)f()", "> /testbed/src/types.py(3)f()"),
        ("PYTHONPATH=/x:/home/u/click.", "PYTHONPATH=/x:/testbed."),
        ("/home/u/click-2/a /home/u/click.bak /srv/home/u/click", None),
    ],
)
def test_the_place_on_the_host_is_shown_as_the_workspace(text: str, shown: str | None) -> None:
    assert PublicNames("/testbed", SOURCE, linked).mask(text) == (text if shown is None else shown)


def test_paths_below_any_name_of_the_workspace() -> None:
    names = PublicNames("/tmp/x/testbed", SOURCE, lambda path: "/tmp/x/testbed")
    for name in ("/testbed", "/tmp/x/testbed", "/home/u/click"):
        assert (names.relative(name), names.relative(f"{name}/a/b")) == (".", "a/b")
        assert names.relative(f"{name}2/a") is None
    assert names.mask("/tmp/x/testbed/a /tmp/x/home /home/u/click/b") == "/testbed/a /home /testbed/b"


def gone(path: str) -> str:
    raise SandboxLost("gone")


@pytest.mark.parametrize("realpath", [lambda path: path, gone])
def test_without_the_link_the_place_is_another(realpath: Callable[[str], str]) -> None:
    names = PublicNames("/testbed", SOURCE, realpath)
    assert names.mask("/home/u/click/a") == "/home/u/click/a"
    assert names.relative("/home/u/click/a") is None


@pytest.mark.parametrize("source", [None, Path("/"), Path("/testbed")])
def test_a_place_that_means_nothing_is_none(source: Path | None) -> None:
    names = PublicNames("/testbed", source, linked)
    assert (names.mask("/ /a /testbed/a"), names.relative("/a")) == ("/ /a /testbed/a", None)
