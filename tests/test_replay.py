"""`debug-gym replay`: saved actions, played again in a real sandbox."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support import COMMAND, call_debug_gym

from debug_gym_core.cli import main
from debug_gym_core.testing.waiting import wait_until

ACTIONS = [
    "view counter_code.py 1 3",
    "vew x",
    "pdb b counter_code.py:5",
    "rewrite counter_code.py 1 <<<\n# x\n>>>",
    "eval",
]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a task, with actions of a script."""
    out = tmp_path_factory.mktemp("replay") / "run"
    words = ["run", "mini_nightmare", "--agent", "tool_agent", "--llm", "scripted", "--terminal", "bubblewrap"]
    given = ["-p", f"llm.actions={json.dumps(ACTIONS)}", "--task", "counter", "-o", out]
    done = call_debug_gym([*words, *given], out.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture
def run(played: Path, tmp_path: Path) -> Path:
    """A copy that may be changed."""
    return Path(shutil.copytree(played, tmp_path / "run"))


def state(directory: Path) -> dict[str, str]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def change(run: Path, number: int, key: str, value: Any, task: str = "counter") -> None:
    """Change what the trajectory has of a step, or of the grade."""
    path = run / "mini_nightmare" / task / "trajectory.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    event = next(one for one in lines if (one.get("step") if number >= 0 else one["kind"]) in (number, "grade"))
    event[key] = value
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_a_run_that_is_replayed_shows_the_same_and_nothing_of_it_is_written(played: Path) -> None:
    before = state(played)
    done = call_debug_gym(["replay", played], played.parent)
    assert done.stdout == "mini_nightmare/counter: same (5 steps, score 0/2)\n", done.stdout + done.stderr
    assert (done.returncode, done.stderr) == (0, "") and state(played) == before


def test_the_first_difference_is_shown_with_its_step(run: Path) -> None:
    change(run, 1, "observation", {"text": "1 something else\n2 b", "json": []})
    done = call_debug_gym(["replay", run, "--step", "2"], run.parent)
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and lines[0] == "mini_nightmare/counter: differs from step 1 on"
    assert "step 1: the text differs" in lines[1] and "    -1 something else" in lines


@pytest.mark.people
def test_of_several_episodes_each_has_its_line(run: Path) -> None:
    shutil.copytree(run, run.parent / "both" / "one")
    shutil.copytree(run, run.parent / "both" / "two")
    change(run.parent / "both/two", 1, "observation", {"text": "1 something else", "json": []})
    done = call_debug_gym(["replay", "both"], run.parent)
    lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert done.returncode == 1 and lines == [
        "both/one/mini_nightmare/counter: same (5 steps, score 0/2)",
        "both/two/mini_nightmare/counter: differs from step 1 on, score 0/2 as before",
        "1 of 2 episodes are the same",
    ]
    done = call_debug_gym(["replay", "both/two", "--step", "0"], run.parent)
    assert (done.returncode, done.stdout) == (0, "mini_nightmare/counter: same (0 steps of 5, no grade)\n")


@pytest.mark.people
def test_another_score_is_a_difference(run: Path) -> None:
    change(run, -1, "score", 2)
    done = call_debug_gym(["replay", run, "--task", "counter"], run.parent)
    assert (done.returncode, done.stdout) == (1, "mini_nightmare/counter: score 0/2, was 2/2\n"), done.stderr


@pytest.mark.people
def test_an_agent_without_a_model_plays_itself_again(tmp_path: Path) -> None:
    words = ["run", "mini_nightmare", "--agent", "solution_agent", "--task", "counter", "--terminal", "bubblewrap"]
    assert call_debug_gym([*words, "-o", "run"], tmp_path).returncode == 0
    done = call_debug_gym(["replay", "run"], tmp_path)
    assert (done.returncode, done.stdout) == (0, "mini_nightmare/counter: same (5 steps, score 2/2)\n"), done.stderr


@pytest.mark.people
def test_a_run_that_was_killed_is_replayed_as_far_as_it_got(run: Path) -> None:
    path = run / "mini_nightmare/counter/trajectory.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    kept = next(number for number, line in enumerate(lines) if json.loads(line).get("step") == 2) + 1
    path.write_text("".join(lines[:kept]) + '{"schema_version": 1, "ki')
    done = call_debug_gym(["replay", run, "--task", "counter"], run.parent)
    assert (done.returncode, done.stdout) == (0, "mini_nightmare/counter: same (2 steps, no grade)\n"), done.stderr
    assert "the last line is cut off and left out" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["missing"], 2, "there is no such directory"),
        (["run", "--task", "contur"], 2, "did you mean 'counter'?"),
        (["run", "--terminal", "dokker"], 2, "did you mean 'docker'?"),
        (["run/mini_nightmare/counter/trajectory.jsonl", "--step", "-1"], 2, "--step"),
    ],
)
def test_what_cannot_be_replayed(
    run: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], status: int, said: str
) -> None:
    monkeypatch.chdir(run.parent)
    done = CliRunner().invoke(main, ["replay", *arguments])
    assert done.exit_code == status and said in done.stderr and "Traceback" not in done.stderr


def configure(run: Path, section: str, **values: Any) -> None:
    """Change what a run says that its config was."""
    path = run / "run.json"
    record = json.loads(path.read_text())
    record["config"][section] |= values
    path.write_text(json.dumps(record))


def test_a_run_of_local_is_not_trusted_for_what_it_says(run: Path) -> None:
    """Whoever passes a run on would else have its actions carried out on the machine of who replays it."""
    configure(run, "terminal", name="local", allow_unsandboxed=True)
    done = call_debug_gym(["replay", run, "--step", "1"], run.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "played in a sandbox; the run was played in local, which --terminal local takes" in done.stderr


@pytest.mark.parametrize(
    ("section", "values", "said"),
    [
        ("terminal", {"network": "host"}, "terminal.network is host: the sandbox can reach the network"),
        ("terminal", {"name": "docker", "volumes": ["/etc:/etc2"]}, "terminal.volumes has /etc: "),
        (
            "benchmark",
            {"name": "quixbugs", "source": "https://example.org/x"},
            "benchmark.source is https://example.org/x",
        ),
        ("benchmark", {"name": "repo", "path": "/home"}, "benchmark.path is /home"),
        ("env", {"python": "/opt/evil"}, "env.python is /opt/evil"),
    ],
    ids=["network", "volume", "source", "path", "python"],
)
def test_what_a_run_says_of_this_machine_is_not_believed_and_a_line_says_how_it_is(
    run: Path, section: str, values: dict[str, Any], said: str
) -> None:
    configure(run, section, **values)
    done = CliRunner().invoke(main, ["replay", str(run), "--step", "1"])
    assert done.exit_code == 2 and said in done.stderr, done.output
    [line] = done.stderr.splitlines()
    assert line.startswith(f"error: {run}/run.json may be somebody else's, so what it says of this machine is not ")
    assert line.endswith("; if the run is yours, add --trust")


@pytest.mark.people
@pytest.mark.parametrize("option", [("--trust",), ("--terminal", "local", "--trust")], ids=["as it was", "elsewhere"])
def test_what_a_run_says_of_this_machine_is_believed_by_who_says_so(run: Path, option: tuple[str, ...]) -> None:
    configure(run, "terminal", name="local", allow_unsandboxed=True, network="host")
    done = call_debug_gym(["replay", run, *option], run.parent)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


@pytest.mark.people
def test_ctrl_c_ends_it(run: Path) -> None:
    seconds = f"{os.getpid()}.25"
    change(run, 5, "action", {"name": "bash", "arguments": {"command": f"sleep {seconds}"}})
    record = json.loads((run / "run.json").read_text())
    record["config"]["tools"].append("bash")
    (run / "run.json").write_text(json.dumps(record))
    words = [str(COMMAND), "replay", str(run), "--task", "counter"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        wait_until(lambda: is_running("sleep", seconds), seconds=60)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (130, "stopped\n"), out
    wait_until(lambda: not is_running("sleep", seconds), seconds=30)


def is_running(*words: str) -> bool:
    """Whether a process of this machine was started with these words."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().split(b"\0")[:-1] == [word.encode() for word in words]:
                return True
    return False
