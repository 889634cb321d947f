"""What an episode leaves behind, and that a kill at any byte loses one line at most."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from debug_gym_core.errors import UsageError
from debug_gym_core.runs.json_lines import JsonLines, read_lines
from debug_gym_core.runs.trajectory import (
    SCHEMA_VERSION,
    Event,
    EventKind,
    Journal,
    Result,
    Tokens,
    read_journal,
    read_results,
)
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.usage import Usage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def step(number: int, text: str = "seen") -> Event:
    observation = {"text": text, "json": json.dumps([{"source": "view", "text": text, "data": {}}])}
    return Event.step(
        step=number,
        action=ToolCall("view", {"path": "a.py"}, id="call-1"),
        observation=observation,
        reward=1.0,
        score=1,
        max_score=2,
        terminated=False,
        truncated=True,
        seconds=0.5,
    )


def test_step_line_has_action_observation_reward_and_end(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "task" / "trajectory.jsonl")
    journal.append(step(1))
    journal.close()
    (line,) = (tmp_path / "task" / "trajectory.jsonl").read_text().splitlines()
    data = json.loads(line)
    assert data.pop("time") > 0
    assert data == {
        "schema_version": SCHEMA_VERSION,
        "number": 0,
        "kind": "step",
        "step": 1,
        "action": {"name": "view", "arguments": {"path": "a.py"}, "id": "call-1"},
        "observation": {"text": "seen", "json": [{"source": "view", "text": "seen", "data": {}}]},
        "reward": 1.0,
        "score": 1,
        "max_score": 2,
        "terminated": False,
        "truncated": True,
        "seconds": 0.5,
    }


def test_model_call_keeps_prompts_only_when_given() -> None:
    usage = Usage(10, 5, 3, 0.01)
    plain = Event.llm_call(model="m", usage=usage, seconds=1, calls=["view"])
    assert "prompt" not in plain.as_json() and plain.as_json()["tokens"]["cached"] == 3
    assert Event.llm_call(model="m", usage=usage, seconds=1, calls=[], prompt=["hello"]).as_json()["prompt"] == [
        "hello"
    ]


@given(texts=st.lists(st.text(st.characters()), min_size=1, max_size=5), place=st.floats(0, 1))
@examples(60)
def test_reader_and_writer_survive_a_kill_at_any_byte(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], place: float
) -> None:
    path = tmp_path_factory.mktemp("journal") / "trajectory.jsonl"
    journal = Journal(path)
    for number, text in enumerate(texts):
        journal.append(step(number, text))
    journal.close()
    whole = path.read_bytes()
    cut = round(place * len(whole))
    path.write_bytes(whole[:cut])
    complete = whole[:cut].count(b"\n")

    events = read_journal(path)
    assert [event.number for event in events] == list(range(complete))
    assert [event.data["observation"]["text"] for event in events] == texts[:complete]

    journal = Journal(path)
    assert journal.append(step(9)).number == complete
    journal.close()
    assert [event.number for event in read_journal(path)] == list(range(complete + 1))
    assert path.read_bytes().startswith(whole[: cut - len(whole[:cut].rpartition(b"\n")[2])])


@given(value=JSON)
@examples(100)
def test_any_json_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.mktemp("journal") / "trajectory.jsonl"
    journal = Journal(path)
    journal.append(Event(EventKind.ERROR, {"value": value}))
    journal.close()
    assert read_journal(path)[0].data["value"] == value
    assert path.read_bytes().count(b"\n") == 1


def test_a_number_that_json_has_not_is_kept_as_text(tmp_path: Path) -> None:
    """Whatever an agent's action or a plugin's data hold, other programs can read the line."""
    journal = Journal(tmp_path / "t.jsonl")
    journal.append(Event(EventKind.ERROR, {"value": [float("inf"), {"x": (float("nan"), 1.5)}]}))
    journal.close()
    assert read_journal(tmp_path / "t.jsonl")[0].data["value"] == ["inf", {"x": ["nan", 1.5]}]


def test_lone_surrogates_are_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "t.jsonl")
    journal.append(Event(EventKind.ERROR, {"value": "\udc80"}))
    journal.close()
    assert read_journal(tmp_path / "t.jsonl")[0].data["value"] == "\udc80"


def test_events_of_a_killed_process_are_there(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from debug_gym_core.runs.trajectory import *\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "for n in range(50): journal.append(Event(EventKind.ERROR, {'n': n}))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "t.jsonl"
    assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == -signal.SIGKILL
    assert [event.data["n"] for event in read_journal(path)] == list(range(50))


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from debug_gym_core.runs.json_lines import JsonLines, read_lines
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
lines = JsonLines(Path(sys.argv[1]))
lines.append({"a": 1})
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
try:
    lines.append({"long": "x" * 100})
except OSError:
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    lines.append({"b": 2})
"""


def test_a_disk_that_was_full_for_a_while_leaves_no_torn_line_between_others(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path / "results.jsonl")], check=True)
    assert list(read_lines(tmp_path / "results.jsonl")) == [{"a": 1}, {"b": 2}]


def test_threads_get_each_number_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "t.jsonl")

    def write() -> None:
        for _ in range(50):
            journal.append(Event(EventKind.ERROR, {}))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    assert [event.number for event in read_journal(tmp_path / "t.jsonl")] == list(range(200))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense\n{}\n", "t.jsonl:1: not JSON"),
        ('[1]\n{"schema_version": 1}\n', "t.jsonl:1: not a JSON object"),
        ('{"kind": "step"}\n', "t.jsonl:1: not an event"),
        ('{"schema_version": 99, "kind": "step"}\n', "newer debug-gym"),
    ],
)
def test_what_is_no_trajectory_is_said(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(UsageError, match=words):
        read_journal(tmp_path / "t.jsonl")


def test_missing_trajectory_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_journal(tmp_path / "t.jsonl")


def test_unknown_kinds_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"schema_version": 1, "number": 0, "kind": "dream"}\n')
    assert read_journal(tmp_path / "t.jsonl") == []


def test_result_line_is_as_documented() -> None:
    line = Result("toy/a", "fixer", None, "resolved", True, 1, 1, "clean", 2, {"sh": 2}, Tokens(1, 2, 3), 0.5, 1.5)
    assert list(line.as_json()) == [
        "task", "agent", "llm", "status", "resolved", "score", "max_score", "grading", "steps", "tool_calls", "tokens",
        "cost", "seconds", "error", "ended", "mode", "changed", "failed", "broken",
        "reason", "dropped", "doubts", "twins", "python",
    ]  # fmt: skip
    assert line.as_json()["tokens"] == {"prompt": 1, "completion": 2, "cached": 3}


def test_results_come_back(tmp_path: Path) -> None:
    result = Result(
        "toy/a", "fixer", "m", "error", error={"kind": "SandboxLost", "message": "gone"}, repeat=2,
        mode="debug", changed=True, failed=("test_a.py::test_a",), reason="it reached its timeout",
        python={"path": "/usr/bin/python3", "version": "3.11.2"},
    )  # fmt: skip
    lines = JsonLines(tmp_path / "results.jsonl")
    lines.append({**result.as_json(), "of_a_later_version": 1})
    lines.close()
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"task": "toy/b", "agent"')
    assert read_results(tmp_path / "results.jsonl") == [result]
    assert read_results(tmp_path / "missing.jsonl") == []


@pytest.mark.parametrize(
    "fact",
    [
        {"repeat": [1]},
        {"mode": 3},
        {"max_score": "2"},
        {"ended": {"a": 1}},
        {"ended": True},
        {"llm": 3},
        {"grading": []},
        {"reason": None},
        {"twins": "2"},
        {"changed": "yes"},
    ],
)
def test_a_result_with_a_fact_of_another_kind_is_refused(fact: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(fact))):
        Result.from_json({"task": "toy/b", "agent": "x", "llm": None, "status": "unresolved", **fact})


def test_a_line_of_before_there_were_modes_is_read(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text('{"task": "toy/b", "agent": "x", "llm": null, "status": "unresolved"}\n')
    (result,) = read_results(tmp_path / "results.jsonl")
    assert (result.mode, result.changed, result.failed, result.reason) == ("visible", None, (), "")
