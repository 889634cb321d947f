"""What is shown of a run while it goes on: tables that fit, and writing from many threads."""

from __future__ import annotations

import dataclasses
import io
import logging
import os
import pty
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from debug_gym_core.cli.display import LiveDisplay, PlainDisplay
from debug_gym_core.cli.llm import _table
from debug_gym_core.cli.options import start_logging
from debug_gym_core.cli.summary import summary
from debug_gym_core.cli.tables import make_console, show_line, show_prose
from debug_gym_core.runs.jobs import Job
from debug_gym_core.runs.trajectory import Event, Result, Tokens
from debug_gym_core.usage import Usage


def job(name: str) -> Job:
    return Job(f"toy/{name}", name, 0)


def step(number: int) -> Event:
    observation = {"text": "one\ntwo\n", "json": "[]"}
    return Event.step(
        step=number, action={"name": "sh", "arguments": {}}, observation=observation, reward=0.0, score=1, max_score=10,
        terminated=False, truncated=False, seconds=0.1,
    )  # fmt: skip


def result(name: str, **more: Any) -> Result:
    return Result(
        f"toy/{name}", "x", "m", more.pop("status", "unresolved"), score=1, max_score=10, steps=12, seconds=100.5,
        tokens=Tokens(123456, 10), cost=1.5, **more,
    )  # fmt: skip


def live(width: int, height: int = 24, verbose: int = 0) -> tuple[LiveDisplay, io.StringIO]:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=width, height=height, highlight=False, color_system=None)
    display = LiveDisplay(console, 50, verbose)
    display.total = 40
    return display, stream


def drawn(display: LiveDisplay) -> list[str]:
    with display.console.capture() as caught:
        display.console.print(display._draw())
    return [line.rstrip() for line in caught.get().splitlines()]


@pytest.mark.parametrize(
    ("width", "header", "task"),
    [
        (140, "task step score state tokens cost elapsed", "toy/a_task_with_quite_a_long_name"),
        (80, "task step score state tokens cost elapsed", "a_task"),
        (60, "task step score state cost elapsed", "a_tas…a_long_name"),
        (40, "task score state", "a_task_…e_a_long_name"),
    ],
)
def test_the_table_fits(width: int, header: str, task: str) -> None:
    display, _ = live(width)
    display.started(job("a_task_with_quite_a_long_name"))
    display.event(job("a_task_with_quite_a_long_name"), step(3))
    lines = drawn(display)
    assert lines[0].split() == header.split()
    assert max(map(len, lines)) <= width
    assert lines[1].startswith(task) and "1/10" in lines[1] and "playing" in lines[1]


def test_rows_beyond_the_screen_are_counted() -> None:
    display, _ = live(80, height=10)
    for number in range(30):
        display.started(job(f"t{number}"))
    display.finished(job("t3"), result("t3"))
    lines = drawn(display)
    assert len(lines) <= 10
    assert lines[-1] == "1 of 40 done  0:00  29 under way  1 unresolved  (24 not shown)"


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (60, "1 of 40 done  0:00  1 under way  1 unresolved  $1.50"),
        (45, "1 of 40 done  1 unresolved  $1.50"),
        (30, "1 of 40 done  1 unresolved"),
    ],
)
def test_the_line_below_the_table_leaves_out_what_does_not_fit(width: int, words: str) -> None:
    display, _ = live(width)
    for name in ("a", "b"):
        display.started(job(name))
    display.rows[job("a")].cost = 1.5
    display.finished(job("a"), result("a"))
    assert drawn(display)[-1] == words


@pytest.mark.people
def test_many_threads_write_while_the_table_is_drawn() -> None:
    display, stream = live(80, verbose=1)
    display._live.refresh_per_second = 1000

    def play(name: str) -> None:
        display.started(job(name))
        for number in range(1, 15):
            display.event(job(name), step(number))
        display.note(f"{name} is over")
        display.finished(job(name), result(name))

    threads = [threading.Thread(target=play, args=(f"t{number}",), daemon=True) for number in range(4)]
    drawing = threading.Thread(target=lambda: [display._live.refresh() for _ in range(75)], daemon=True)
    display.__enter__()  # left only when nobody hangs, for leaving would hang too
    for thread in (*threads, drawing):
        thread.start()
    for thread in (*threads, drawing):
        thread.join(60)
        assert not thread.is_alive(), "writing and drawing wait for each other"
    display.__exit__()
    assert display.done == 4 and stream.getvalue().count("is over") == 4


def test_lines_of_one_event_stay_together() -> None:
    stream = io.StringIO()
    display = PlainDisplay(Console(file=stream, width=200), 50, 1)
    names = [f"t{number}" for number in range(4)]

    def play(name: str) -> None:
        display.started(job(name))
        for number in range(1, 40):
            display.event(job(name), step(number))

    threads = [threading.Thread(target=play, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = stream.getvalue().splitlines()
    heads = [number for number, line in enumerate(lines) if "/50 " in line]
    assert len(heads) == 4 * 39
    assert all(lines[number + 1 : number + 3] == ["    one", "    two"] for number in heads)


@pytest.mark.parametrize("width", [80, 40])
def test_the_summary_fits(width: int) -> None:
    display, stream = live(width)
    error = {"kind": "SandboxLost", "message": "the sandbox is gone"}
    results = [result("a_task_with_quite_a_long_name"), result("b", status="error", error=error)]
    summary(results, 0, 3.0, 0.0, 0.0, "exps/x", display)
    lines = stream.getvalue().splitlines()
    assert all(len(line.rstrip()) <= width for line in lines if "error toy/b" not in line)
    assert "error toy/b: the sandbox is gone" in lines
    assert lines[0].split()[:3] == ["task", "status", "score"]


@pytest.mark.parametrize(
    ("width", "header"),
    [
        (80, "name backend model context $ in/out state"),
        (50, "name backend model $ in/out state"),
        (40, "name backend model state"),
        (20, "name state"),
    ],
)
def test_a_narrow_terminal_shows_no_figure_of_a_model_in_part(width: int, header: str) -> None:
    about = {"backend": "anthropic", "model": "claude-x", "context_limit": 200}
    row = {"name": "claude", **about, "prices": {"prompt": 3.0, "completion": 15.0}, "problem": None}
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as caught:
        console.print(_table([row], None, width))
    first, second = caught.get().splitlines()
    assert first.split() == header.split() and "…" not in second
    assert ("3.0/15.0" in second) == ("in/out" in header)


def test_prose_is_wrapped_between_words_and_a_long_path_is_whole() -> None:
    path = f"/{'long/' * 12}patch.diff"
    text = f"score 0/2, graded in a fresh sandbox, [10] steps in {path} and more"
    display, stream = live(20)
    show_prose(text, display.console)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert lines == ["score 0/2, graded in", "a fresh sandbox,", "[10] steps in", path, "and more"]
    piped = io.StringIO()
    for show in (show_prose, show_line):
        show(Text(text * 200), make_console(piped))  # longer than any line of a terminal
    assert piped.getvalue() == f"{text * 200}\n" * 2


def test_a_warning_is_not_written_into_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    handler = start_logging(0)
    log = logging.getLogger("debug_gym.test_display")
    read = b""
    try:
        with os.fdopen(slave, "w", encoding="utf-8") as terminal:
            monkeypatch.setattr("sys.stderr", terminal)
            monkeypatch.setenv("NO_COLOR", "1")
            display = LiveDisplay(Console(file=terminal, force_terminal=True, width=60, color_system=None), 50, 0)
            with display:
                display.started(job("a_task"))
                display._live.refresh()
                log.warning("m: the service's answer is no JSON: <html>; it is asked again in 0.9 s")
            log.warning("behind it")
            terminal.write("the end")
            terminal.flush()
            while not read.endswith(b"the end"):
                read += os.read(master, 4096)
    finally:
        logging.getLogger("debug_gym").removeHandler(handler)
        os.close(master)
    lines = read.decode().splitlines()
    first = next(number for number, line in enumerate(lines) if "warning:" in line)
    assert "under way" not in lines[first], "it is written behind the table, which is then drawn over it"
    assert lines[first].endswith("warning: m: the service's answer is no JSON: <html>; it is")
    assert lines[first + 1].startswith("asked again in 0.9 s") and lines[-2].endswith("warning: behind it")


def test_a_warning_goes_to_standard_error_where_that_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = start_logging(0)
    display, stream = live(60)
    try:
        with (tmp_path / "errors").open("w", encoding="utf-8") as errors:
            monkeypatch.setattr("sys.stderr", errors)
            with display:
                logging.getLogger("debug_gym.test_display").warning("closed")
    finally:
        logging.getLogger("debug_gym").removeHandler(handler)
    assert (tmp_path / "errors").read_text() == "warning: closed\n" and "closed" not in stream.getvalue()


def test_notes_and_the_end_of_an_episode_are_wrapped_between_words() -> None:
    stream = io.StringIO()
    display = PlainDisplay(Console(file=stream, force_terminal=True, width=30, color_system=None), 50, 0)
    display.note("what was found is told in a few words")
    display.started(job("t"))
    display.finished(job("t"), result("t"))
    assert stream.getvalue().splitlines() == [
        "note: what was found is told",
        "in a few words",
        "[1/0] toy/t: unresolved, score",
        "1/10, 12 steps, 0 pdb, 100.5",
        "s, $1.50",
    ]


def test_steps_are_wrapped_between_words_and_what_is_pasted_is_not() -> None:
    stream = io.StringIO()
    display = PlainDisplay(Console(file=stream, force_terminal=True, width=40, color_system=None), 50, 1)
    display.started(job("t"))
    text = "BankTest.test_deposit failed: 40 is not what was expected\n      see line 12 of bank.py for its cause"
    code = "rewrite bank.py <<<\ndef deposit(amount): return amount + balance\n>>>"
    for action in ("pdb b bank_account_code.py:12, amount == 40", code):
        data = {"action": action, "observation": {"text": text}}
        display.event(job("t"), dataclasses.replace(step(3), data={**step(3).data, **data}))
    said = [
        "    BankTest.test_deposit failed: 40 is",
        "    not what was expected",
        "          see line 12 of bank.py for its",
        "          cause",
    ]
    assert stream.getvalue().splitlines() == [
        "toy/t: starting",
        "toy/t 3/50 pdb b",
        "  bank_account_code.py:12, amount == 40",
        "  (score 1/10, 0.1 s)",
        *said,
        "toy/t 3/50 rewrite  (score 1/10, 0.1 s)",
        *code.split("\n"),
        *said,
    ]


def test_what_a_stopped_episode_has_spent_is_told() -> None:
    stream = io.StringIO()
    display = PlainDisplay(Console(file=stream, width=200), 50, 0)
    for name in "ab":
        display.started(job(name))
        display.event(job(name), Event.llm_call(model="m", usage=Usage(1000, 10, cost=0.5), seconds=1.0, calls=[]))
    display.finished(job("a"), result("a"))
    display.finished(job("b"), None)
    summary([result("a")], 1, 3.0, 0.0, 0.0, "exps/x", display)
    assert "resolved 0 of 1, 1 not finished, 124.5k tokens, $2.00, 3.0 s" in stream.getvalue()


def test_an_error_is_told_once() -> None:
    stream = io.StringIO()
    display = PlainDisplay(Console(file=stream, width=200), 50, 0)
    display.total = 3
    error = {"kind": "SandboxLost", "message": "the sandbox is gone"}
    results = [result(name, status="error", error=error) for name in "ab"]
    for one, name in zip(results, "ab", strict=True):
        display.started(job(name))
        display.finished(job(name), one)
    summary(results, 1, 3.0, 0.0, 0.0, "exps/x", display)
    assert stream.getvalue().count("the sandbox is gone") == 1
    assert "[2/3] toy/b: error: as toy/a" in stream.getvalue()
    assert Text("resolved 0 of 0, 2 could not be run, 1 not played").plain in stream.getvalue()
