"""The limits after which the host gives a guest up, which are about a minute, made short."""

from __future__ import annotations

import pytest

from debug_gym_core.sandbox import connection, file_requests, process


def shorten(
    monkeypatch: pytest.MonkeyPatch,
    *,
    start: float,
    stall: float,
    silence: float,
    answer: float,
    file: float,
    control: float,
) -> None:
    """Have limits of so many seconds until the end of the test; those of commands stay.

    Args:
        monkeypatch: of the test
        start: `START_TIMEOUT`
        stall: `STALL_TIMEOUT`
        silence: `SILENCE`
        answer: `ANSWER_TIMEOUT`
        file: `FILE_TIMEOUT`
        control: `CONTROL_TIMEOUT`
    """
    monkeypatch.setattr(connection, "START_TIMEOUT", start)
    monkeypatch.setattr(connection, "STALL_TIMEOUT", stall)
    monkeypatch.setattr(connection, "SILENCE", silence)
    monkeypatch.setattr(connection, "ANSWER_TIMEOUT", answer)
    monkeypatch.setattr(file_requests, "FILE_TIMEOUT", file)
    monkeypatch.setattr(process, "CONTROL_TIMEOUT", control)
