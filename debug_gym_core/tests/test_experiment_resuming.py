"""Runs that are refused and gone on with: what is played again."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from support import repeated
from toy_runs import UNSAFE, Onlooker, by_task, lines

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.errors import RequirementError, TaskError, UsageError
from debug_gym_core.runs.run import Run
from debug_gym_core.runs.trajectory import read_results
from debug_gym_core.tasks.selection import select_tasks
from debug_gym_core.tasks.task import Task
from debug_gym_terminal_local import LocalTerminal


def test_finished_tasks_are_kept_and_errors_are_played_again(play: Any, tmp_path: Path) -> None:
    played = tmp_path / "played"
    options = (f"agent.played={played}", "agent.lose=1", "run.max_retries=0")
    run = play("benchmark.tasks=[a, b]", *options)
    assert {line["status"] for line in lines(run)} == {"error"}
    run = play("benchmark.tasks=a", *options)
    assert {task: line["status"] for task, line in by_task(run).items()} == {"toy/a": "resolved", "toy/b": "error"}
    run = play("benchmark.tasks=[a, b]", *options)
    assert {line["status"] for line in lines(run)} == {"resolved"} and len(lines(run)) == 2
    assert played.read_text() == "a 0\nb 0\na 0\nb 0\n"


@pytest.mark.parametrize(("force", "asked"), [({}, 2), *repeated("services", ({"force_all": True}, 3))])
def test_answers_of_an_episode_that_failed_are_not_paid_for_twice(
    play: Any, tmp_path: Path, force: dict[str, bool], asked: int
) -> None:
    meter = tmp_path / "asked"
    options = ("benchmark.tasks=a", "llm.name=meter", f"llm.asked={meter}", "llm.fails_at=2", UNSAFE)
    assert by_task(play(*options, agent="historian"))["toy/a"]["status"] == "error"
    before = meter.stat().st_size
    run = play(*options, agent="historian", force=force)
    assert by_task(run)["toy/a"]["status"] == "resolved"
    assert meter.stat().st_size - before == asked


def test_a_run_that_is_killed_while_results_are_forgotten_has_no_result_without_its_files(
    play: Any, toy_plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = play("benchmark.tasks=[a, b]")

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        play("benchmark.tasks=[a, b]", force={"force_all": True})
    monkeypatch.undo()
    assert read_results(run.results_file) == []
    assert {line["status"] for line in lines(play("benchmark.tasks=a"))} == {"resolved"}


@pytest.mark.people
def test_force_failed_and_force_all(play: Any, tmp_path: Path) -> None:
    played = tmp_path / "played"
    commands = json.dumps({"b": f"test -e {tmp_path}/go || chmod 400 answer"})
    options = ("benchmark.tasks=[a, b]", f"agent.played={played}", f"agent.commands={commands}")
    if os.geteuid() == 0:
        commands = json.dumps({"b": f"test -e {tmp_path}/go || mkdir answer.d && mv answer answer.d; mkdir answer"})
        options = (*options[:2], f"agent.commands={commands}")
    run = play(*options)
    assert {task: line["status"] for task, line in by_task(run).items()} == {"toy/a": "resolved", "toy/b": "unresolved"}
    play(*options)
    assert played.read_text() == "a 0\nb 0\n"
    play(*options, force={"force_failed": True})
    assert played.read_text() == "a 0\nb 0\nb 0\n"
    stale = run.directory / "toy/a/stale"
    stale.touch()
    run = play(*options, force={"force_all": True})
    assert played.read_text() == "a 0\nb 0\nb 0\na 0\nb 0\n"
    assert len(lines(run)) == 2 and not stale.exists()


def test_another_config_does_not_fit_into_a_run(play: Any) -> None:
    play("benchmark.tasks=a")
    with pytest.raises(UsageError, match=r"agent.max_steps was 7, is now 8"):
        play("benchmark.tasks=a", "agent.max_steps=8")
    play("benchmark.tasks=[a, b]", "run.workers=2", "run.max_retries=0")
    with pytest.raises(UsageError, match=r"run.task_timeout was null, is now 60"):
        play("run.task_timeout=60")


def test_the_mode_is_in_each_result_and_modes_are_not_mixed(play: Any) -> None:
    run = play("benchmark.tasks=a", "benchmark.mode=debug")
    assert [line["mode"] for line in lines(run)] == ["debug"]
    assert json.loads((run.directory / "run.json").read_text())["mode"] == "debug"
    with pytest.raises(UsageError, match=r'benchmark.mode was "debug", is now "visible"'):
        play()
    assert [line["mode"] for line in lines(run)] == ["debug"]


def test_a_mode_that_the_tasks_do_not_have_is_refused(play: Any, onlooker: Onlooker) -> None:
    with pytest.raises(UsageError, match="toy/a cannot be played in mode hidden, only visible"):
        play("benchmark.mode=hidden", "benchmark.only_visible=true")
    assert onlooker.told == []


def test_a_torn_result_is_played_again(play: Any) -> None:
    run = play("benchmark.tasks=[a, b]")
    data = run.results_file.read_bytes()
    run.results_file.write_bytes(data[:-20])
    assert set(by_task(play("benchmark.tasks=[a, b]"))) == {"toy/a", "toy/b"}


def test_a_run_resumes_from_its_directory(play: Any, toy_plugins: Plugins, tmp_path: Path) -> None:
    run = play("benchmark.tasks=a", "agent.max_steps=9")
    with Run.resume(run.directory, plugins=toy_plugins, workers=3) as again:
        assert again.id == run.id and again.config.agent.max_steps == 9 and again.config.run.workers == 3
        assert list(again.results) == [("toy/a", None)]
    with pytest.raises(UsageError, match="holds no run"):
        Run.resume(tmp_path / "nowhere", plugins=toy_plugins)


def test_a_run_resumes_with_what_may_differ_said_anew(play: Any, toy_plugins: Plugins) -> None:
    directory = play("benchmark.tasks=a", "agent.max_steps=9").directory
    with Run.resume(directory, plugins=toy_plugins, overrides=["run.max_cost=2", "llm.max_run_tokens=7"]) as again:
        assert (again.config.run.max_cost, again.config.agent.max_steps) == (2, 9)
        again.begin(1)
    with Run.resume(directory, plugins=toy_plugins) as again:
        assert again.config.run.max_cost == 2
    with pytest.raises(UsageError, match=r"agent.max_steps was 9, is now 8"):
        Run.resume(directory, plugins=toy_plugins, overrides=["agent.max_steps=8"])
    with pytest.raises(UsageError, match=r"-p run.max_costs: unknown key"):
        Run.resume(directory, plugins=toy_plugins, overrides=["run.max_costs=8"])


@pytest.mark.parametrize("name", ["../../x", "x" * 256])
def test_a_task_with_a_name_that_is_none_is_said_before_anything_is_played(
    play: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setattr("debug_gym_core.runs.experiment.select_tasks", lambda *_: ["a", name])
    with pytest.raises(UsageError, match="is no name for a task"):
        play()
    assert not list(tmp_path.rglob("trajectory.jsonl"))


def test_a_model_outside_a_sandbox_is_refused(play: Any, onlooker: Onlooker, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="isolates nothing and who acts is not trusted"):
        play("llm.name=echo", agent="chatter")
    shutil.rmtree(tmp_path / "run")
    play("llm.name=echo", UNSAFE, "benchmark.tasks=a", agent="chatter")
    assert any(kind == "note" and "without isolation" in text for kind, text in onlooker.told)


def test_what_is_missing_is_known_before_anything_starts(play: Any, onlooker: Onlooker) -> None:
    with pytest.raises(RequirementError, match="model 'gpt-9' is not configured"):
        play("llm.name=gpt-9", agent="chatter")
    assert onlooker.told == []


def test_a_task_that_the_agent_cannot_play_is_said_before_anything_is_set_up(
    play: Any, toy_plugins: Plugins, onlooker: Onlooker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the run, where it has no other."""
    started: list[str] = []
    then: list[tuple[str, bool]] = []

    def check(self: Any, task: Task) -> None:
        if task.name != "b":
            raise TaskError(f"not {task.id}")

    start = LocalTerminal.start
    monkeypatch.setattr(toy_plugins.get("agents", "fixer"), "check", check)
    monkeypatch.setattr(LocalTerminal, "start", lambda self, spec: started.append(spec.run) or start(self, spec))
    with pytest.raises(UsageError, match="not toy/a"):
        play("benchmark.tasks=a")
    assert not started
    monkeypatch.setattr(onlooker, "finished", lambda job, result: then.append((job.name, bool(started))))
    run = play("benchmark.tasks=[a, b]")
    assert {task: line["error"] and line["error"]["message"] for task, line in by_task(run).items()} == {
        "toy/a": "not toy/a",
        "toy/b": None,
    }
    assert then == [("a", False), ("b", True)], "whether a sandbox was started by then"


def test_selection(toy_plugins: Plugins) -> None:
    toy = toy_plugins.get("benchmarks", "toy")(extra_tasks=12)
    assert select_tasks(toy, "all") == list(toy.names())
    assert select_tasks(toy, ["x1*", "a", "toy/a"]) == ["a", "x1", "x10", "x11"]
    assert select_tasks(toy, ["toy/x?", "hopeless"])[-1] == "hopeless"
    with pytest.raises(UsageError, match="toy has no task 'x99'; did you mean 'x9'"):
        select_tasks(toy, ["a", "x99"])
