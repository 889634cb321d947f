"""Who is told what takes long."""

from __future__ import annotations

import pytest

from debug_gym_core import progress
from debug_gym_core.cli.progress import ProgressLines


def test_who_listens_in_a_block_is_told_there_and_nobody_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_default", [])
    told: list[tuple[str, str, str | None]] = []

    def listener(name: str) -> progress.Listener:
        return lambda what, line: told.append((name, what, line))

    progress.tell("image", "nobody listens")
    with progress.listening(listener("block")):
        progress.listen(listener("default"))
        progress.tell("image", "half")
    progress.tell("image", None)
    progress.listen(listener("other"))
    progress.tell("image", None)
    assert told == [("block", "image", "half"), ("default", "image", None), ("other", "image", None)]


def test_what_is_over_at_once_is_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ProgressLines()
    lines("clone", None)
    lines("image", "half")
    lines("image", None)
    assert capsys.readouterr().err == "half\n"
