"""`debug-gym run` interrupted, paused, killed, and on a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from agent_plugin import write_agent
from support import repeated

TOY = Path(__file__).parent / "toy_plugin.py"
PROGRAM = [
    sys.executable,
    "-c",
    "import sys; sys.argv[0] = '/bin/debug-gym'; from debug_gym_core.cli import main; main()",
]


def results(directory: Path) -> dict[str, str]:
    lines = (directory / "results.jsonl").read_text().splitlines()
    found = {line["task"]: line["status"] for line in map(json.loads, lines)}
    assert len(found) == len(lines)
    return found


def test_a_second_interrupt_does_not_wait(environment: dict[str, str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    process = subprocess.Popen(
        [*PROGRAM, "run", "toy", "-o", "out", "--plugin-file", str(TOY), "--agent", "stubborn"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment,
    )  # fmt: skip
    (tmp_path / "started").read_text()
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None and "stopping" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "--resume out" in err


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), *repeated("people", (signal.SIGTERM, 143), (signal.SIGHUP, 129))]
)
def test_interrupt_keeps_what_was_done_and_says_how_to_go_on(
    blocked: Any, inside: Any, tmp_path: Path, number: int, status: int
) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # nohup may have had the tests ignore it
    try:
        process = blocked()
    finally:
        signal.signal(number, before)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert "stopping" in out and "toy/b: stopped" in out and "resolved 1 of 1, 1 not finished, 1 not played" in out
    assert ("Ctrl-C" in out) == (number == signal.SIGINT)
    (hint,) = err.splitlines()
    assert hint.startswith("stopped; go on with: debug-gym run --resume out --plugin-file ")
    assert hint.endswith("toy_plugin.py")
    assert results(tmp_path / "out") == {"toy/a": "resolved"}
    (tmp_path / "go").touch()
    assert inside("run", "--resume", "out").status == 0
    assert results(tmp_path / "out") == {"toy/a": "resolved", "toy/b": "resolved", "toy/c": "resolved"}
    assert (tmp_path / "played").read_text() == "a 0\nb 0\nb 0\nc 0\n"


MOMENT = """
def now(moment):
    if os.environ["MOMENT"] == moment:
        os.kill(os.getpid(), int(os.environ["SIGNAL"]))

now("loaded")
"""


@pytest.fixture
def moments(tmp_path: Path) -> None:
    """A plugin that has a signal come while plugins are loaded, when the run is there, or as it begins."""
    write_agent(tmp_path / "moments.py", "interrupted", loaded=MOMENT, made='now("prepared")', begun='now("begun")')


UNBEGUN = "stopped before anything was played"


@pytest.mark.parametrize(
    ("moment", "number", "status", "said"),
    [
        ("prepared", signal.SIGHUP, 129, UNBEGUN),
        *repeated(
            "faults",
            ("loaded", signal.SIGTERM, 143, UNBEGUN),
            ("begun", signal.SIGTERM, 143, "stopped; go on with: debug-gym run --resume made/out "),
            ("loaded", signal.SIGINT, 130, UNBEGUN),
            ("loaded", signal.SIGHUP, 129, UNBEGUN),
            ("prepared", signal.SIGINT, 130, UNBEGUN),
            ("prepared", signal.SIGTERM, 143, UNBEGUN),
            ("begun", signal.SIGINT, 130, "stopped; go on with: debug-gym run --resume made/out "),
        ),
    ],
)
@pytest.mark.usefixtures("moments")
def test_who_stops_a_run_that_has_hardly_begun_is_told_so(
    gym: Any, environment: dict[str, str], tmp_path: Path, moment: str, number: int, status: int, said: str
) -> None:
    environment.update(MOMENT=moment, SIGNAL=str(int(number)))
    before = signal.signal(number, signal.SIG_DFL)  # nohup may have had the tests ignore it
    try:
        done = gym("run", "toy", "--agent", "interrupted", "--plugin-file", "moments.py", "-o", "made/out")
    finally:
        signal.signal(number, before)
    assert done.returncode == status
    (line,) = done.stderr.splitlines()
    assert line.startswith(said)
    assert (tmp_path / "made").exists() == (moment == "begun")


def test_ctrl_c_while_the_program_is_imported_shows_no_traceback(gym: Any, tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = gym("--version", toy=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.usefixtures("moments")
def test_ctrl_c_ends_a_command_that_plays_nothing_new_with_a_word(
    gym: Any, environment: dict[str, str], tmp_path: Path
) -> None:
    environment.update(MOMENT="loaded", SIGNAL=str(int(signal.SIGINT)))
    done = gym("replay", "out", "--plugin-file", "moments.py")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


@pytest.mark.parametrize(
    ("words", "status"), [("replay out --plugin-file moments.py", 130), *repeated("people", ("replay --unknown", 2))]
)
@pytest.mark.usefixtures("moments")
def test_errors_that_nobody_reads_change_no_status(
    environment: dict[str, str], tmp_path: Path, words: str, status: int
) -> None:
    environment.update(MOMENT="loaded", SIGNAL=str(int(signal.SIGINT)))
    reader, both = os.pipe()  # as in `2>&1 | cat`, where Ctrl-C ends cat
    os.close(reader)
    try:
        done = subprocess.run([*PROGRAM, *words.split()], stdout=both, stderr=both, cwd=tmp_path, env=environment)
    finally:
        os.close(both)
    assert done.returncode == status


ASK = """
import click


@click.command()
def command():
    click.confirm("Go on?")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, *repeated("people", None)])
def test_who_gives_no_answer_is_told_that_the_command_is_stopped(
    environment: dict[str, str], tmp_path: Path, number: int | None
) -> None:
    (tmp_path / "ask.py").write_text(ASK)
    information = tmp_path / "ask-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: ask\nVersion: 1\n")
    (information / "entry_points.txt").write_text("[debug_gym.commands]\nask = ask:command\n")
    process = subprocess.Popen(
        [*PROGRAM, "ask"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(tmp_path), "DEBUG_GYM_PLUGINS": "ask"},
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.read(len("Go on? [y/N]:")) == b"Go on? [y/N]:"
    if number is not None:
        process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, b"\nstopped\n")


def test_a_killed_run_goes_on(blocked: Any, inside: Any, tmp_path: Path) -> None:
    process = blocked()
    process.kill()
    process.communicate()
    assert results(tmp_path / "out") == {"toy/a": "resolved"}
    (tmp_path / "go").touch()
    assert inside("run", "--resume", "out").status == 0
    assert list(results(tmp_path / "out")) == ["toy/a", "toy/b", "toy/c"]
    assert (tmp_path / "played").read_text() == "a 0\nb 0\nb 0\nc 0\n"
    assert (tmp_path / "out/toy/b/abandoned-1.jsonl").exists()


def test_a_second_run_in_the_same_directory_is_refused(blocked: Any, inside: Any) -> None:
    process = blocked()
    done = inside("run", "--resume", "out")
    assert done.status == 2 and f"in use by another debug-gym (process {process.pid})" in done.err


def test_debug_pauses_after_each_step(gym: Any, tmp_path: Path) -> None:
    commands = ["--task", "a", "--task", "b", "-p", "agent.commands={a: echo hello}", "-o", "out", "--debug"]
    done = gym("run", "toy", *commands, input="what\nc\nc\nq\n")
    assert done.returncode == 130 and "Ctrl-C" not in done.stdout
    assert done.stdout.count("(debug-gym) ") == 4 and "c: go on to the next step" in done.stdout
    assert results(tmp_path / "out") == {"toy/a": "resolved"}


@pytest.mark.people
def test_debug_stops_at_the_end_of_input(gym: Any) -> None:
    assert gym("run", "toy", "--debug", input="").returncode == 130


@pytest.mark.people
def test_debug_goes_on_while_the_pipe_stays_open(environment: dict[str, str], tmp_path: Path) -> None:
    """Several words that came at once are taken one after the other."""
    with subprocess.Popen(
        [*PROGRAM, "run", "toy", "--debug", "-o", "out", "--plugin-file", str(TOY)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=tmp_path, env=environment,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(b"c\nc\nc\n")
        process.stdin.flush()
        assert process.wait(60) == 0
    assert list(results(tmp_path / "out")) == ["toy/a", "toy/b", "toy/c"]


@pytest.mark.people
def test_debug_ends_with_ctrl_c_at_its_prompt(environment: dict[str, str], tmp_path: Path) -> None:
    command = [*PROGRAM, "run", "toy", "-o", "out", "--plugin-file", str(TOY), "--debug"]
    written = on_terminal(command, environment, tmp_path, 40, r"\(debug-gym\) ")
    assert "stopped; go on with:\r\ndebug-gym run --resume out --plugin-file " in written  # whole, to be copied
    assert written.endswith("<status 130>")
    assert "sh printf 42 > answer" in written


def on_terminal(command: list[str], environment: dict[str, str], cwd: Path, width: int, until: str) -> str:
    """Run in a pseudo terminal of 24 lines; press Ctrl-C when a pattern is seen; returns what was written."""
    pid, descriptor = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execvpe(command[0], command, environment)
    subprocess.run(["stty", "rows", "24", "cols", str(width)], stdin=descriptor, check=True)
    written = b""
    pressed = False
    end = time.monotonic() + 60
    while True:
        assert time.monotonic() < end, written
        ready, _, _ = select.select([descriptor], [], [], 60)
        assert ready, written
        try:
            data = os.read(descriptor, 65536)
        except OSError:
            break
        written += data
        if not pressed and re.search(until.encode(), written):
            os.write(descriptor, b"\x03")
            pressed = True
    _, status = os.waitpid(pid, 0)
    os.close(descriptor)
    return written.decode() + f"<status {os.waitstatus_to_exitcode(status)}>"


@pytest.mark.people
@pytest.mark.parametrize("width", [80, *repeated("people", 120)])
def test_live_table_and_ctrl_c_on_a_terminal(environment: dict[str, str], tmp_path: Path, width: int) -> None:
    commands = json.dumps({"b": "sleep 600"})
    command = [*PROGRAM, "run", "toy", "-o", "out", "--plugin-file", str(TOY), "-p", f"agent.commands={commands}"]
    environment = {**environment, "COLUMNS": str(width), "LINES": "24"}
    task = "b" if width < 100 else "toy/b"  # a benchmark that all tasks have is left out where there is little room
    written = on_terminal(command, environment, tmp_path, width, rf"[\r\n]{task} [^\r\n]*playing")
    header = "task +step +score +state +tokens +cost +elapsed"
    assert re.search(header, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)), written
    assert "elapsed" in written and "playing" in written and "resolved" in written
    assert "resolved 1 of 1, 1 not finished, 1 not played" in written
    assert re.search(r"go on with:\s+debug-gym run --resume out", written)
    assert written.endswith("<status 130>")


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.people
def test_no_color(environment: dict[str, str], tmp_path: Path, colour: bool) -> None:
    environment = environment if colour else {**environment, "NO_COLOR": "1"}
    command = [*PROGRAM, "run", "toy", "-o", "out", "--plugin-file", str(TOY)]
    shown = re.compile(r"\x1b\[[0-9;]*3[0-9]m")
    for arguments in (["--task", "a"], ["--task", "x"]):
        written = on_terminal([*command, *arguments], environment, tmp_path, 80, "never")
        assert bool(shown.search(written)) == colour, written
