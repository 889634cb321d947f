"""Runs that are refused, stopped and gone on with: what is played again, and whose a directory is."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from toy_runs import UNSAFE, Onlooker, by_task, lines

import debug_gym_core.runs.run as runs
from debug_gym_core.cli.signals import ended_by_signals
from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.loading import load
from debug_gym_core.config.model import Config
from debug_gym_core.errors import RequirementError, TaskError, UsageError
from debug_gym_core.postponed import Terminated
from debug_gym_core.runs import experiment as experiments
from debug_gym_core.runs import overtime
from debug_gym_core.runs.episode import Players
from debug_gym_core.runs.experiment import Experiment
from debug_gym_core.runs.jobs import Job
from debug_gym_core.runs.ledger import Ledger
from debug_gym_core.runs.run import Run, replaced
from debug_gym_core.runs.trajectory import Result, read_results
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


@pytest.mark.services
@pytest.mark.parametrize(("force", "asked"), [({}, 2), ({"force_all": True}, 3)])
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


def test_two_runs_do_not_share_a_directory(toy_plugins: Plugins, tmp_path: Path) -> None:
    config = load("toy", plugins=toy_plugins)
    with Run.create(config, tmp_path / "run") as run:
        with pytest.raises(UsageError, match=rf"in use by another debug-gym \(process {os.getpid()}\)"):
            Run.create(config, tmp_path / "run")
        with pytest.raises(UsageError, match="in use"):
            Run.resume(run.directory, plugins=toy_plugins)
    Run.create(config, tmp_path / "run").close()


def test_runs_get_directories_of_their_own(toy_plugins: Plugins, tmp_path: Path) -> None:
    config = load("toy", [f"run.output={tmp_path}/exps"], plugins=toy_plugins)
    with Run.create(config) as one, Run.create(config) as two:
        assert one.directory.parent == two.directory.parent == tmp_path / "exps"
        assert one.directory != two.directory and one.directory.name == one.id
        one.discard()
        assert not one.directory.exists() and two.directory.exists()


def test_discarding_leaves_no_empty_directories_and_no_foreign_files(toy_plugins: Plugins, tmp_path: Path) -> None:
    config = load("toy", plugins=toy_plugins)
    Run.create(config, tmp_path / "x/y/run").discard()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    Run.create(config, tmp_path / "mine").discard()
    assert (tmp_path / "mine").is_dir()


def test_a_run_that_is_discarded_is_held_until_nothing_of_it_is_left(
    toy_plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes meanwhile is told that it is in use, and who waits at its lock makes one of its own."""
    config = load("toy", plugins=toy_plugins)
    first = Run.create(config, tmp_path / "run")
    remove, held = runs.remove, os.open(tmp_path / "run" / ".lock", os.O_RDWR)

    def removed(*given: Any) -> None:
        with pytest.raises(UsageError, match="in use by another"):
            Run.resume(tmp_path / "run", plugins=toy_plugins)
        remove(*given)

    monkeypatch.setattr(runs, "remove", removed)
    first.discard()
    assert list(tmp_path.iterdir()) == []
    opened = iter([held])
    (tmp_path / "run").mkdir()
    real = os.open
    monkeypatch.setattr(os, "open", lambda *given: next(opened, None) or real(*given))
    with Run.create(config, tmp_path / "run"):
        assert (tmp_path / "run" / ".lock").read_text() == f"{os.getpid()}\n"
    with pytest.raises(UsageError, match="gone was removed just now"):
        runs.hold(tmp_path / "gone")


def test_what_a_process_of_the_same_number_left_is_not_taken_over(toy_plugins: Plugins, tmp_path: Path) -> None:
    with Run.create(load("toy", plugins=toy_plugins), tmp_path / "run") as run:
        left = run.results_file.with_name(f".results.jsonl.{os.getpid()}")
        left.write_text('{"task": "toy/old", "agent": "x", "status": "unresolved"}\n')
        run.forget([], [])
    assert read_results(run.results_file) == []


def open_below(directory: Path) -> list[str]:
    """The files below a directory that this process has open; others come and go with threads."""
    paths = []
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            paths.append(str(one.readlink()))
    return sorted(path for path in paths if path.startswith(f"{directory}/"))


def test_results_are_kept_in_one_file_while_others_are_forgotten(toy_plugins: Plugins, tmp_path: Path) -> None:
    def result(task: str) -> Result:
        return Result(task, "x", None, "unresolved")

    with Run.create(load("toy", plugins=toy_plugins), tmp_path / "run") as run:
        run.record(result("toy/a"))
        run.record(result("toy/b"))
        run.forget([("toy/a", None)], [])
        assert not run.results_gone and not run.gone
        run.record(result("toy/c"))
        assert [one.task for one in read_results(run.results_file)] == ["toy/b", "toy/c"]
        used = open_below(tmp_path)
        run.results["toy/d", None] = Result("toy/d", "x", None, "unresolved", reason="x" * 10_000)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, hard))
        try:
            with pytest.raises(OSError, match="too large"):
                run.forget([], [])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, ignored)
        assert open_below(tmp_path) == used and len(used) == 2 and not run.results_gone
        assert [one.task for one in read_results(run.results_file)] == ["toy/b", "toy/c"]


def test_a_run_that_is_closed_is_not_taken_for_one_that_was_removed(toy_plugins: Plugins, tmp_path: Path) -> None:
    with Run.create(load("toy", plugins=toy_plugins), tmp_path / "run") as run:
        run.begin(1)
    assert not run.results_gone and not run.gone


def test_task_names_stay_in_the_directory(toy_plugins: Plugins, tmp_path: Path) -> None:
    with Run.create(load("toy", plugins=toy_plugins), tmp_path / "run") as run:
        for name in ("../x", "/etc", "a/../../x", "."):
            with pytest.raises(UsageError, match="leads out"):
                run.task_directory(name)
        with pytest.raises(UsageError, match="too long"):
            run.task_directory("toy/" + "é" * 128)


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


def test_two_processes_do_not_share_a_directory(toy_plugins: Plugins, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom debug_gym_core.config.model import Config\n"
        "from debug_gym_core.runs.run import Run\nrun = Run.create(Config(), Path(sys.argv[1]))\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "run")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match=f"process {holder.pid}"):
            Run.create(Config(), tmp_path / "run")
    finally:
        holder.kill()
        holder.communicate()
    Run.create(Config(), tmp_path / "run").close()


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


def test_a_directory_that_is_gone_is_told_by_the_file_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with pytest.raises(FileNotFoundError) as caught, replaced(path) as temporary:
        temporary.write_text("{}")
        shutil.rmtree(tmp_path)
    assert caught.value.filename == str(path)
