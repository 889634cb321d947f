"""Who is told what takes long."""

from __future__ import annotations

import pytest

from debug_gym_core import progress


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
