"""Runs that are stopped, interrupted or at a bound: what ends, who is told, and what is kept."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from toy_runs import UNSAFE, Onlooker, lines

from debug_gym_core.cli.signals import ended_by_signals
from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.loading import load
from debug_gym_core.postponed import Terminated
from debug_gym_core.runs import experiment as experiments
from debug_gym_core.runs import overtime
from debug_gym_core.runs.episode import Players
from debug_gym_core.runs.experiment import Experiment
from debug_gym_core.runs.jobs import Job
from debug_gym_core.runs.ledger import Ledger
from debug_gym_core.runs.run import Run
from debug_gym_core.runs.trajectory import read_results
from debug_gym_core.tasks.task import Task
from debug_gym_terminal_local import LocalTerminal


def test_money_is_a_bound(play: Any, onlooker: Onlooker) -> None:
    run = play("llm.name=echo", UNSAFE, "run.max_cost=0.7", agent="chatter")
    # a costs 0.50, b is left when 0.75 are spent, which is no answer of its model's, and c is not begun.
    assert [(line["task"], line["cost"]) for line in lines(run)] == [("toy/a", 0.5)]
    assert ("stopped", "toy/b") in onlooker.told and ("started", "toy/c") not in onlooker.told
    assert b"+42" in (run.directory / "toy/b/patch.diff").read_bytes(), "what was paid for is lost"


def test_an_episode_that_could_ask_nothing_as_others_had_spent_all_is_not_played(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "is_spent", False)  # as when it began before they had
    run = play("llm.name=echo", UNSAFE, "run.max_cost=0.5", agent="chatter")
    assert [(line["task"], line["cost"]) for line in lines(run)] == [("toy/a", 0.5)]


def test_stopping_ends_what_is_under_way_without_a_result(
    toy_plugins: Plugins, onlooker: Onlooker, tmp_path: Path
) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    commands = json.dumps({"b": f"echo x > {fifo}; sleep 600"})
    config = load("toy", [f"agent.commands={commands}"], plugins=toy_plugins)
    with Run.create(config, tmp_path / "run") as run:
        experiment = Experiment(run, toy_plugins, onlooker)
        thread = threading.Thread(target=experiment.play)
        thread.start()
        fifo.read_text()
        experiment.stop()
        thread.join(20)
        assert not thread.is_alive()
        assert [result.task for result in run.results.values()] == ["toy/a"]
        assert experiment.stopped
    assert onlooker.told[-2:] == [("stopping", ""), ("stopped", "toy/b")]


def test_stopping_while_a_task_loads_starts_no_sandbox(
    toy_plugins: Plugins, onlooker: Onlooker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    load_task, start = Players._load, LocalTerminal.start

    def stopped(players: Players, job: Job) -> Task:
        task = load_task(players, job)
        experiment.stop()
        return task

    monkeypatch.setattr(Players, "_load", stopped)
    monkeypatch.setattr(LocalTerminal, "start", lambda self, spec: started.append(spec) or start(self, spec))
    with Run.create(load("toy", plugins=toy_plugins), tmp_path / "run") as run:
        experiment = Experiment(run, toy_plugins, onlooker)
        experiment.play()
        assert (started, list(run.results)) == ([], [])


def test_a_result_that_cannot_be_written_stops_the_run(
    toy_plugins: Plugins, onlooker: Onlooker, tmp_path: Path
) -> None:
    config = load("toy", plugins=toy_plugins)
    run = Run.create(config, tmp_path / "run")
    experiment = Experiment(run, toy_plugins, onlooker)
    onlooker.on_event = lambda job, event: run._lines.close() if job.name == "b" else None
    with pytest.raises(OSError, match="Bad file descriptor"):
        experiment.play()
    assert [result.task for result in read_results(run.results_file)] == ["toy/a"]
    assert ("started", "toy/c") not in onlooker.told


def test_a_second_interrupt_leaves_no_stop_half_done(
    play: Any, onlooker: Onlooker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes through once the episodes under way have been told, and observers hear of the end."""
    told = []
    main = threading.main_thread().ident
    assert main is not None
    stop = Players.stop

    def interrupted(players: Players) -> None:
        signal.pthread_kill(main, signal.SIGINT)
        stop(players)
        told.append("players")

    monkeypatch.setattr(Players, "stop", interrupted)
    monkeypatch.setattr(Plugins, "notify", lambda self, name, **values: told.append(name))
    monkeypatch.setattr(onlooker, "started", lambda job: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        play()
    assert [name for name in told if "episode" not in name] == [
        "debug_gym_run_started",
        "players",
        "debug_gym_run_finished",
    ]


def test_a_run_that_is_terminated_waits_for_no_tool_that_hangs_and_says_which_one(
    play: Any, toy_plugins: Plugins, onlooker: Onlooker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, released = threading.main_thread().ident, threading.Event()
    assert main is not None

    def hang(self: Any, env: Any, command: str) -> str:
        """Hang."""
        signal.pthread_kill(main, signal.SIGTERM)
        released.wait()
        return ""

    monkeypatch.setattr(toy_plugins.get("tools", "sh"), "use", hang)
    monkeypatch.setattr(experiments, "TELLING", 0.0)
    monkeypatch.setattr(experiments, "PATIENCE", 0.0)
    try:
        with ended_by_signals(), pytest.raises(Terminated):
            play("benchmark.tasks=a")
    finally:
        released.set()
    assert ("note", "toy/a: waiting for tool sh") in onlooker.told
    assert "waiting for tool sh" in (tmp_path / "run/toy/a/log.txt").read_text()


def test_a_tool_is_interrupted_when_the_time_of_its_episode_is_over(
    play: Any, toy_plugins: Plugins, onlooker: Onlooker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = threading.Event()
    said = "has taken longer than run.task_timeout (0.01 s); waiting for tool sh"

    def hang(self: Any, env: Any, command: str) -> str:
        """Hang until it is interrupted."""
        interrupted.wait()
        return "interrupted"

    def interrupt(self: Any) -> bool:
        if ("note", f"toy/a: {said}") in onlooker.told:
            interrupted.set()
        return True

    sh = toy_plugins.get("tools", "sh")
    monkeypatch.setattr(sh, "use", hang)
    monkeypatch.setattr(sh, "interrupt", interrupt)
    monkeypatch.setattr(overtime, "OVERTIME", 0.01)
    (line,) = lines(play("benchmark.tasks=a", "run.task_timeout=0.01"))
    assert (line["status"], line["ended"], line["steps"]) == ("unresolved", "time", 1)
    assert said in (tmp_path / "run/toy/a/log.txt").read_text()


def test_an_interrupt_before_anything_is_begun(play: Any, onlooker: Onlooker, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []

    def notify(self: Plugins, name: str, **values: Any) -> None:
        told.append(name)
        if name == "debug_gym_run_started":
            raise KeyboardInterrupt

    monkeypatch.setattr(Plugins, "notify", notify)
    with pytest.raises(KeyboardInterrupt):
        play()
    assert told == ["debug_gym_run_started", "debug_gym_run_finished"]
    assert [what for what, _ in onlooker.told] == ["stopping"]


def test_observers_hear_of_the_end_though_predictions_cannot_be_written(
    play: Any, onlooker: Onlooker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    in_the_way = tmp_path / "run" / "predictions.jsonl" / "something"
    monkeypatch.setattr(Plugins, "notify", lambda self, name, **values: told.append(name))
    monkeypatch.setattr(onlooker, "started", lambda job: in_the_way.mkdir(parents=True))
    with pytest.raises(IsADirectoryError):
        play("benchmark.tasks=a", "benchmark.predicts=true")
    assert told[-1] == "debug_gym_run_finished"
