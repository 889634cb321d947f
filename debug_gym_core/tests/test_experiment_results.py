"""Runs with real environments in the `local` terminal: what they leave, and what is noted of them."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from support import repeated
from toy_runs import UNSAFE, Onlooker, by_task, lines

from debug_gym_core import Agent
from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.model import Config
from debug_gym_core.runs.config_notes import without_effect
from debug_gym_core.runs.episode import Players
from debug_gym_core.runs.trajectory import EventKind, read_journal


def test_a_run_leaves_what_is_documented(play: Any, onlooker: Onlooker) -> None:
    run = play()
    record = json.loads((run.directory / "run.json").read_text())
    assert record["config"]["agent"]["max_steps"] == 7 and record["config"]["agent"]["max_rewrites"] == 3
    assert record["seed"] == 0 and record["mode"] == "visible" and record["versions"]["python"]
    assert "debug-gym-core" in record["versions"]["distributions"]
    assert [line["task"] for line in lines(run)] == ["toy/a", "toy/b", "toy/c"]
    python = {"path": sys.executable, "version": platform.python_version()}
    assert record["interpreters"] == [python]
    assert [line["python"] for line in lines(run)] == [python] * 3
    line = by_task(run)["toy/a"]
    assert line.pop("seconds") > 0
    assert line == {
        "task": "toy/a",
        "agent": "fixer",
        "llm": None,
        "status": "resolved",
        "resolved": True,
        "score": 1,
        "max_score": 1,
        "grading": "exit_status",
        "steps": 1,
        "tool_calls": {"sh": 1},
        "tokens": {"prompt": 0, "completion": 0, "cached": 0},
        "cost": 0.0,
        "error": None,
        "ended": None,
        "mode": "visible",
        "changed": True,
        "failed": [],
        "broken": [],
        "doubts": {},
        "twins": None,
        "reason": "",
        "dropped": {},
        "python": python,
    }
    directory = run.directory / "toy" / "a"
    events = read_journal(directory / "trajectory.jsonl")
    assert [str(event.kind) for event in events] == ["episode_started", "step", "step", "grade", "episode_finished"]
    assert events[0].data["python"] == python
    assert f"python={python!r}" in (directory / "log.txt").read_text()
    assert events[1].data["action"] is None and "Task toy/a" in events[1].data["observation"]["text"]
    assert events[2].data["action"] == {"name": "sh", "arguments": {"command": "printf 42 > answer"}}
    assert b"+42" in (directory / "patch.diff").read_bytes()
    assert "printf 42 > answer" in (directory / "log.txt").read_text()
    assert onlooker.told[:2] == [("started", "toy/a"), ("finished", "toy/a")]


def test_unresolved_is_no_failure(play: Any) -> None:
    run = play("llm.name=echo", UNSAFE, "llm.commands=[echo hello]", "benchmark.tasks=a", agent="chatter")
    line = by_task(run)["toy/a"]
    assert (line["status"], line["score"], line["max_score"], line["error"]) == ("unresolved", 0, 1, None)


def test_model_calls_are_counted(play: Any) -> None:
    run = play("llm.name=echo", UNSAFE, "benchmark.tasks=a", agent="chatter")
    line = by_task(run)["toy/a"]
    assert line["llm"] == "echo" and line["status"] == "resolved"
    assert line["tokens"] == {"prompt": 200, "completion": 40, "cached": 100} and line["cost"] == 0.5
    calls = [e for e in read_journal(run.directory / "toy/a/trajectory.jsonl") if e.kind is EventKind.LLM_CALL]
    assert [call.data["calls"] for call in calls] == [["sh"], []]
    assert "prompt" not in calls[0].data


def test_prompts_are_kept_when_asked(play: Any) -> None:
    run = play("llm.name=echo", UNSAFE, "benchmark.tasks=a", agent="chatter", verbose=True)
    calls = [e for e in read_journal(run.directory / "toy/a/trajectory.jsonl") if e.kind is EventKind.LLM_CALL]
    assert "Task toy/a" in calls[0].data["prompt"][0]["content"]
    assert calls[0].data["answer"]["content"] == "so be it"


def test_a_fault_of_the_agent_is_an_error_with_its_cause(play: Any) -> None:
    run = play("benchmark.tasks=a", "benchmark.mode=hidden", agent="breaker")
    line = by_task(run)["toy/a"]
    assert (line["status"], line["resolved"], line["mode"]) == ("error", False, "hidden")
    assert line["error"]["kind"] == "ZeroDivisionError"
    assert re.fullmatch(r"this agent is broken \(toy_plugin\.py:\d+ in play\)", line["error"]["message"])
    assert "Traceback" in (run.directory / "toy/a/log.txt").read_text()
    assert (run.directory / "toy/a/patch.diff").read_bytes() == b""


def test_an_agent_that_wants_to_end_the_program_ends_its_episodes(play: Any) -> None:
    lines = by_task(play(agent="quitter"))
    assert {name: line["error"]["kind"] for name, line in lines.items()} == {
        "toy/a": "SystemExit", "toy/b": "KeyboardInterrupt", "toy/c": "Wordless"
    }  # fmt: skip
    said = {"toy/c": "(its text cannot be made: AttributeError)"}
    for name, line in lines.items():
        assert line["error"]["message"].startswith(f"{said.get(name, 'enough')} (toy_plugin.py:")


@pytest.mark.parametrize("said", [{"a": 1}, *repeated("faults", True, b"over")])
def test_what_an_agent_returns_that_is_no_word_is_its_episodes_error(
    play: Any, toy_plugins: Plugins, monkeypatch: pytest.MonkeyPatch, said: object
) -> None:
    """As a result it would be a line that nobody reads any more."""
    monkeypatch.setattr(toy_plugins.agents["fixer"], "play", lambda *_: said)
    for _ in range(2):  # the second time the run is gone on with
        (line,) = lines(play("benchmark.tasks=a"))
        assert (line["status"], line["error"]["kind"]) == ("error", "PluginError")
        assert line["error"]["message"] == f"agent fixer: play() must return a word or None, not {said!r}"


def test_an_agent_cannot_have_its_steps_and_its_time_anew(
    play: Any, toy_plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy_plugins.agents["fixer"], "play", lambda self, env, llm: env.reset() and None)
    (line,) = lines(play("benchmark.tasks=a"))
    assert line["error"]["kind"] == "PluginError" and "was reset again" in line["error"]["message"]


def test_an_agent_that_goes_on_after_the_end_does_nothing(play: Any) -> None:
    run = play("benchmark.tasks=a", "agent.max_steps=2", agent="eager")
    line = by_task(run)["toy/a"]
    assert line["ended"].endswith("The episode is over (max_steps): nothing was done. 0.0 False True 2")
    assert (line["status"], line["steps"], line["tool_calls"]) == ("unresolved", 2, {"sh": 2})
    assert (run.directory / "toy/a/patch.diff").read_bytes() == b""


def test_an_episode_whose_sandbox_is_lost_is_played_again(play: Any, tmp_path: Path) -> None:
    run = play("benchmark.tasks=a", f"agent.played={tmp_path}/played", "agent.lose=2")
    assert (tmp_path / "played").read_text() == "a 0\n" * 3
    assert by_task(run)["toy/a"]["status"] == "resolved"
    directory = run.directory / "toy" / "a"
    assert sorted(path.name for path in directory.glob("*.jsonl")) == [
        "abandoned-1.jsonl", "abandoned-2.jsonl", "trajectory.jsonl"
    ]  # fmt: skip
    started, *_, error = read_journal(directory / "abandoned-2.jsonl")
    assert started.data["attempt"] == 2
    assert (error.kind, error.data["retried"]) == (EventKind.ERROR, True)


def test_a_sandbox_that_is_lost_each_time_is_an_infrastructure_failure(play: Any, tmp_path: Path) -> None:
    run = play("benchmark.tasks=a", f"agent.played={tmp_path}/played", "agent.lose=99", "run.max_retries=1")
    line = by_task(run)["toy/a"]
    assert (tmp_path / "played").read_text() == "a 0\n" * 2
    assert line["status"] == "error" and line["error"]["kind"] == "SandboxLost"


def test_repeats_have_seeds_and_directories_of_their_own(play: Any, tmp_path: Path) -> None:
    run = play("benchmark.tasks=a", "run.repeats=2", "run.seed=5", f"agent.played={tmp_path}/played")
    assert [(line["task"], line["repeat"]) for line in lines(run)] == [("toy/a", 1), ("toy/a", 2)]
    assert (tmp_path / "played").read_text() == "a 5\na 6\n"
    assert (run.directory / "toy/a/2/trajectory.jsonl").exists()


def test_predictions_are_left_for_the_benchmarks_own_harness(play: Any) -> None:
    run = play("benchmark.predicts=true", "benchmark.tasks=[a, c]")
    left = [json.loads(line) for line in (run.directory / "predictions.jsonl").read_text().splitlines()]
    assert [line["name"] for line in left] == ["a", "c"] and {line["by"] for line in left} == {"fixer"}
    assert all("+42" in line["patch"] for line in left)


def test_no_predictions_of_what_failed_or_where_no_harness_takes_any(play: Any, tmp_path: Path) -> None:
    assert not (play("benchmark.tasks=a").directory / "predictions.jsonl").exists()
    shutil.rmtree(tmp_path / "run")
    losing = ("benchmark.tasks=b", f"agent.played={tmp_path}/played", "agent.lose=99", "run.max_retries=0")
    run = play("benchmark.predicts=true", *losing)
    assert by_task(run)["toy/b"]["status"] == "error" and not (run.directory / "predictions.jsonl").exists()


def test_predictions_of_repeats_are_apart_and_those_of_results_that_are_forgotten_are_not_left(play: Any) -> None:
    options = ("benchmark.predicts=true", "benchmark.tasks=a", "run.repeats=2")
    run = play(*options)
    for name in ("predictions.jsonl", "predictions.2.jsonl"):
        assert json.loads((run.directory / name).read_text())["name"] == "a"
    (run.directory / "predictions.mine.jsonl").touch()
    assert len(list(run.directory.glob("predictions*.jsonl"))) == 3
    for directory in (run.directory / "toy/a").iterdir():
        (directory / "patch.diff").unlink()
    play(*options)
    assert [one.name for one in run.directory.glob("predictions*.jsonl")] == ["predictions.mine.jsonl"]


def test_a_model_that_cannot_be_closed_is_no_fault_of_the_episodes(play: Any, tmp_path: Path) -> None:
    options = ("benchmark.tasks=a", "llm.name=meter", f"llm.asked={tmp_path}/asked", "llm.closes=false", UNSAFE)
    assert by_task(play(*options, agent="historian"))["toy/a"]["status"] == "resolved"


def test_whether_a_task_fails_unchanged_is_found_out_once_by_all_workers(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    asked = threading.Semaphore(0)
    fails = Players.fails_unchanged

    def counted(players: Players, task: str, look: Callable[[], bool]) -> bool:
        def found_out() -> bool:
            looked.append(task)
            assert all(asked.acquire(timeout=60) for _ in range(3))  # all of them ask by now
            return look()

        asked.release()
        return fails(players, task, found_out)

    monkeypatch.setattr(Players, "fails_unchanged", counted)
    run = play("benchmark.tasks=a", "benchmark.known_to_fail=false", "run.repeats=3", "run.workers=3")
    assert [line["status"] for line in lines(run)] == ["resolved"] * 3
    assert looked == ["toy/a"]


def test_workers_play_at_the_same_time(play: Any, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    os.mkfifo(one)
    os.mkfifo(two)
    # Each waits for the other: this ends only when both are played at once.
    commands = json.dumps({"a": f"echo x > {one}; cat {two}", "b": f"cat {one}; echo x > {two}"})
    run = play("benchmark.tasks=[a, b]", f"agent.commands={commands}", "run.workers=2")
    assert {line["status"] for line in lines(run)} == {"resolved"}


def test_an_excluded_task_is_played_when_it_is_named_and_that_and_no_isolation_are_noted(
    play: Any, onlooker: Onlooker
) -> None:
    run = play("benchmark.tasks=[a, hopeless]", "terminal.name=local")
    assert [line["task"] for line in lines(run)] == ["toy/a", "toy/hopeless"]
    told = "toy/hopeless is not in `all`: its tests pass before the fix"
    assert ("note", told) in onlooker.told and told in run.notes
    # Also where it was asked for.
    assert "terminal local isolates nothing: what runs in it runs on this machine" in run.notes


def test_settings_without_effect_and_weakened_sandboxes_are_noted(play: Any, onlooker: Onlooker) -> None:
    run = play(
        *(
            "llm.name=echo",
            UNSAFE,
            "env.allowed=[conftest.py]",
            "benchmark.tasks=a",
            "agent.rewrites_before_pdb=3",
            "agent.memory_size=5",
        ),
        *("llm.max_tokens=7", "llm.temperature=0.5"),
        agent="chatter",
    )
    words = {
        "agent.rewrites_before_pdb is set, which chatter does not use",
        "llm.max_tokens is set, which echo does not use",
    }
    notes = json.loads((run.directory / "run.json").read_text())["notes"]
    assert words <= set(notes)
    assert any("allow_unsandboxed" in note for note in notes) and any("conftest.py" in note for note in notes)
    told = {text for kind, text in onlooker.told if kind == "note"}
    assert words <= told and not [text for text in told if "temperature" in text or "memory_size" in text]


@pytest.mark.parametrize(
    ("own", "tools", "said"),
    [
        (
            ("rewrite", "eval"),
            "[sh]",
            ["tools: own plays with tools of its own (rewrite, eval), of which only the settings are taken"],
        ),
        (("rewrite", "eval"), "[eval, rewrite]", []),
        (("rewrite", "eval"), "[view, listdir, rewrite, eval, pdb, submit]", []),
        ((), "[sh]", ["tools: own plays without any, so that those of the config are not used"]),
    ],
)
def test_tools_of_a_config_for_an_agent_with_its_own_are_noted(
    own: tuple[str, ...], tools: str, said: list[str]
) -> None:
    class Own(Agent):
        """Plays with some tools, or none."""

        name = "own"
        tools: ClassVar = own

        def play(self, env: Any, llm: Any) -> None: ...

    sections = {"tools": yaml.safe_load(tools)}
    assert list(without_effect(Config.model_validate(sections), Own, None)) == said


def test_a_model_that_is_named_and_not_asked_is_noted() -> None:
    class Own(Agent):
        """Asks nobody."""

        name = "own"

        def play(self, env: Any, llm: Any) -> None: ...

    named = Config.model_validate({"llm": {"name": "mine"}})
    assert list(without_effect(named, Own, None)) == ["llm.name is set, which own does not use"]
    assert not list(without_effect(Config(), Own, None))


def test_observers_are_told_and_their_faults_stop_nobody(
    play: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TOY_OBSERVED", str(tmp_path / "observed"))
    play("benchmark.tasks=[a, b]")
    said = (tmp_path / "observed").read_text().splitlines()
    assert said[0] == "run toy" and said[-1] == "end"
    assert said[1:8] == [
        "event episode_started 0",
        "episode toy/a",
        "event step 1",
        "event step 2",
        "event grade 3",
        "event episode_finished 4",
        "result resolved",
    ]
    (fault,) = [one for one in caplog.messages if "stops nobody" in one]
    told = "debug_gym_episode_finished of plugin toy_plugin.py failed: BaseException: an observer's fault stops nobody "
    assert fault.startswith(told) and len(fault) < 600
