"""Runs with real environments in the `local` terminal: what they leave, how they fail, how they go on."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.loading import load
from debug_gym_core.config.model import Config
from debug_gym_core.errors import RequirementError, UsageError
from debug_gym_core.plugins import load_plugins
from debug_gym_core.runs.episode import Players
from debug_gym_core.runs.experiment import Experiment
from debug_gym_core.runs.jobs import Job
from debug_gym_core.runs.run import Run
from debug_gym_core.runs.trajectory import Event, EventKind, Result, read_journal, read_results
from debug_gym_core.tasks.selection import select_tasks

TOY = Path(__file__).parent / "toy_plugin.py"
UNSAFE = "terminal.allow_unsandboxed=true"


class Onlooker:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.on_event: Callable[[Job, Event], None] = lambda job, event: None

    def started(self, job: Job) -> None:
        self.told.append(("started", str(job)))

    def event(self, job: Job, event: Event) -> None:
        self.on_event(job, event)

    def finished(self, job: Job, result: Result | None) -> None:
        self.told.append(("finished" if result else "stopped", str(job)))

    def note(self, text: str) -> None:
        self.told.append(("note", text))

    def stopping(self) -> None:
        self.told.append(("stopping", ""))


@pytest.fixture(scope="module")
def plugins() -> Iterator[Plugins]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEBUG_GYM_PLUGINS", "core,terminal-local")
        yield load_plugins(files=[TOY], strict=True)


@pytest.fixture
def onlooker() -> Onlooker:
    return Onlooker()


@pytest.fixture
def play(plugins: Plugins, onlooker: Onlooker, tmp_path: Path) -> Iterator[Callable[..., Run]]:
    def play(*overrides: str, agent: str | None = None, force: dict[str, bool] | None = None, **extra: Any) -> Run:
        config = load("toy", overrides, agent=agent, plugins=plugins)
        with Run.create(config, tmp_path / "run", plugins=plugins) as run:
            experiment = Experiment(run, plugins, onlooker, **extra)
            experiment.choose(**(force or {}))
            experiment.check()
            experiment.play()
        return run

    yield play
    # A second interrupt leaves the end of an episode to its thread, which would tell the next test of it.
    for thread in threading.enumerate():
        if thread.name == "executor":
            thread.join(20)
            assert not thread.is_alive()


def lines(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run.results_file.read_text().splitlines()]


def by_task(run: Run) -> dict[str, dict[str, Any]]:
    return {line["task"]: line for line in lines(run)}


def test_a_run_leaves_what_is_documented(play: Any, onlooker: Onlooker) -> None:
    run = play()
    record = json.loads((run.directory / "run.json").read_text())
    assert record["config"]["agent"]["max_steps"] == 7 and record["config"]["agent"]["max_rewrites"] == 3
    assert record["seed"] == 0 and record["mode"] == "visible" and record["versions"]["python"]
    assert "debug-gym-core" in record["versions"]["distributions"]
    assert [line["task"] for line in lines(run)] == ["toy/a", "toy/b", "toy/c"]
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
        "python": {"path": sys.executable, "version": platform.python_version()},
    }
    directory = run.directory / "toy" / "a"
    events = read_journal(directory / "trajectory.jsonl")
    assert [str(event.kind) for event in events] == ["episode_started", "step", "step", "grade", "episode_finished"]
    python = {"path": sys.executable, "version": ".".join(map(str, sys.version_info[:3]))}
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
    run = play("benchmark.tasks=a", agent="breaker")
    line = by_task(run)["toy/a"]
    assert (line["status"], line["resolved"]) == ("error", False)
    assert line["error"] == {"kind": "ZeroDivisionError", "message": "this agent is broken"}
    assert "Traceback" in (run.directory / "toy/a/log.txt").read_text()


def test_an_agent_that_wants_to_end_the_program_ends_its_episodes(play: Any) -> None:
    lines = by_task(play(agent="quitter"))
    assert {name: line["error"] for name, line in lines.items()} == {
        f"toy/{name}": {"kind": "SystemExit", "message": "enough"} for name in "abc"
    }


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
    run = play("benchmark.tasks=a", "run.repeats=3", "run.seed=5", f"agent.played={tmp_path}/played")
    assert [(line["task"], line["repeat"]) for line in lines(run)] == [("toy/a", 1), ("toy/a", 2), ("toy/a", 3)]
    assert (tmp_path / "played").read_text() == "a 5\na 6\na 7\n"
    assert (run.directory / "toy/a/3/trajectory.jsonl").exists()


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


def test_predictions_of_repeats_are_apart(play: Any) -> None:
    run = play("benchmark.predicts=true", "run.repeats=2", "benchmark.tasks=a")
    for name in ("predictions.jsonl", "predictions.2.jsonl"):
        assert json.loads((run.directory / name).read_text())["name"] == "a"


def test_workers_play_at_the_same_time(play: Any, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    os.mkfifo(one)
    os.mkfifo(two)
    # Each waits for the other: this ends only when both are played at once.
    commands = json.dumps({"a": f"echo x > {one}; cat {two}", "b": f"cat {one}; echo x > {two}"})
    run = play("benchmark.tasks=[a, b]", f"agent.commands={commands}", "run.workers=2")
    assert {line["status"] for line in lines(run)} == {"resolved"}


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


def test_the_mode_is_in_each_result_and_modes_are_not_mixed(play: Any) -> None:
    run = play("benchmark.tasks=a", "benchmark.mode=debug")
    assert [line["mode"] for line in lines(run)] == ["debug"]
    assert json.loads((run.directory / "run.json").read_text())["mode"] == "debug"
    with pytest.raises(UsageError, match=r'benchmark.mode was "debug", is now "visible"'):
        play()
    assert [line["mode"] for line in lines(run)] == ["debug"]


def test_an_episode_that_failed_has_its_mode_too(play: Any) -> None:
    (line,) = lines(play("benchmark.tasks=a", "benchmark.mode=hidden", agent="breaker"))
    assert line["status"] == "error" and line["mode"] == "hidden"


def test_a_mode_that_the_tasks_do_not_have_is_refused(play: Any, onlooker: Onlooker) -> None:
    with pytest.raises(UsageError, match="toy/a cannot be played in mode hidden, only visible"):
        play("benchmark.mode=hidden", "benchmark.only_visible=true")
    assert onlooker.told == []


def test_an_excluded_task_is_played_when_it_is_named_and_the_reason_is_told(play: Any, onlooker: Onlooker) -> None:
    run = play("benchmark.tasks=[a, hopeless]")
    assert [line["task"] for line in lines(run)] == ["toy/a", "toy/hopeless"]
    told = "toy/hopeless is not in `all`: its tests pass before the fix"
    assert ("note", told) in onlooker.told and told in run.notes


def test_a_torn_result_is_played_again(play: Any) -> None:
    run = play("benchmark.tasks=[a, b]")
    data = run.results_file.read_bytes()
    run.results_file.write_bytes(data[:-20])
    assert set(by_task(play("benchmark.tasks=[a, b]"))) == {"toy/a", "toy/b"}


def test_a_run_resumes_from_its_directory(play: Any, plugins: Plugins, tmp_path: Path) -> None:
    run = play("benchmark.tasks=a", "agent.max_steps=9")
    with Run.resume(run.directory, plugins=plugins, workers=3) as again:
        assert again.id == run.id and again.config.agent.max_steps == 9 and again.config.run.workers == 3
        assert list(again.results) == [("toy/a", None)]
    with pytest.raises(UsageError, match="holds no run"):
        Run.resume(tmp_path / "nowhere", plugins=plugins)


def test_two_runs_do_not_share_a_directory(plugins: Plugins, tmp_path: Path) -> None:
    config = load("toy", plugins=plugins)
    with Run.create(config, tmp_path / "run") as run:
        with pytest.raises(UsageError, match=rf"in use by another debug-gym \(process {os.getpid()}\)"):
            Run.create(config, tmp_path / "run")
        with pytest.raises(UsageError, match="in use"):
            Run.resume(run.directory, plugins=plugins)
    Run.create(config, tmp_path / "run").close()


def test_runs_get_directories_of_their_own(plugins: Plugins, tmp_path: Path) -> None:
    config = load("toy", [f"run.output={tmp_path}/exps"], plugins=plugins)
    with Run.create(config) as one, Run.create(config) as two:
        assert one.directory.parent == two.directory.parent == tmp_path / "exps"
        assert one.directory != two.directory and one.directory.name == one.id
        one.discard()
        assert not one.directory.exists() and two.directory.exists()


def test_discarding_leaves_no_empty_directories_and_no_foreign_files(plugins: Plugins, tmp_path: Path) -> None:
    config = load("toy", plugins=plugins)
    Run.create(config, tmp_path / "x/y/run").discard()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    Run.create(config, tmp_path / "mine").discard()
    assert (tmp_path / "mine").is_dir()


def test_task_names_stay_in_the_directory(plugins: Plugins, tmp_path: Path) -> None:
    with Run.create(load("toy", plugins=plugins), tmp_path / "run") as run:
        for name in ("../x", "/etc", "a/../../x", "."):
            with pytest.raises(UsageError, match="leads out"):
                run.task_directory(name)


def test_weakened_sandboxes_are_noted(play: Any) -> None:
    run = play("terminal.allow_unsandboxed=true", "env.allowed=[conftest.py]", "benchmark.tasks=a")
    notes = json.loads((run.directory / "run.json").read_text())["notes"]
    assert any("allow_unsandboxed" in note for note in notes) and any("conftest.py" in note for note in notes)


def test_the_interpreter_stands_in_the_record_and_the_result(play: Any) -> None:
    run = play("benchmark.tasks=[a,b]")
    python = {"path": sys.executable, "version": platform.python_version()}
    assert [line["python"] for line in lines(run)] == [python, python]
    assert json.loads((run.directory / "run.json").read_text())["interpreters"] == [python]


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("nowhere.jinja", "agent.system_prompt: /.*/nowhere.jinja: No such file or directory$"),
        ("a{{ tsk.id", "agent.system_prompt: <template>:1: unexpected end of template"),
    ],
)
def test_a_prompt_that_is_none_is_refused_before_anything_is_played(play: Any, prompt: str, words: str) -> None:
    with pytest.raises(UsageError, match=f"^{words}"):
        play("llm.name=echo", UNSAFE, f"agent.system_prompt={json.dumps(prompt)}", agent="chatter")


def test_settings_without_effect_are_noted(play: Any, onlooker: Onlooker) -> None:
    run = play(
        *("llm.name=echo", UNSAFE, "benchmark.tasks=a", "agent.rewrites_before_pdb=3", "agent.memory_size=5"),
        *("llm.max_tokens=7", "llm.temperature=0.5"),
        agent="chatter",
    )
    words = {
        "agent.rewrites_before_pdb is 3, which chatter does not use",
        "llm.max_tokens is 7, which echo does not use",
    }
    assert words <= set(json.loads((run.directory / "run.json").read_text())["notes"])
    told = {text for kind, text in onlooker.told if kind == "note"}
    assert words <= told and not [text for text in told if "temperature" in text or "memory_size" in text]


def test_no_isolation_is_noted_also_where_it_was_asked_for(play: Any) -> None:
    run = play("benchmark.tasks=a", "terminal.name=local")
    notes = json.loads((run.directory / "run.json").read_text())["notes"]
    assert "terminal local isolates nothing: what runs in it runs on this machine" in notes


def test_a_model_outside_a_sandbox_is_refused(play: Any, onlooker: Onlooker, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="isolates nothing and a model acts"):
        play("llm.name=echo", agent="chatter")
    shutil.rmtree(tmp_path / "run")
    play("llm.name=echo", UNSAFE, "benchmark.tasks=a", agent="chatter")
    assert any(kind == "note" and "without isolation" in text for kind, text in onlooker.told)


def test_money_is_a_bound(play: Any, onlooker: Onlooker) -> None:
    run = play("llm.name=echo", UNSAFE, "run.max_cost=0.7", agent="chatter")
    # a costs 0.50, b is cut off when 0.75 are spent, c is not begun.
    assert [(line["task"], line["cost"]) for line in lines(run)] == [("toy/a", 0.5), ("toy/b", 0.25)]
    assert [line["ended"] for line in lines(run)] == [None, "max_cost"]
    assert ("started", "toy/c") not in onlooker.told


def test_stopping_ends_what_is_under_way_without_a_result(plugins: Plugins, onlooker: Onlooker, tmp_path: Path) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    commands = json.dumps({"b": f"echo x > {fifo}; sleep 600"})
    config = load("toy", [f"agent.commands={commands}"], plugins=plugins)
    with Run.create(config, tmp_path / "run") as run:
        experiment = Experiment(run, plugins, onlooker)
        thread = threading.Thread(target=experiment.play)
        thread.start()
        fifo.read_text()
        experiment.stop()
        thread.join(20)
        assert not thread.is_alive()
        assert [result.task for result in run.results.values()] == ["toy/a"]
        assert experiment.stopped
    assert onlooker.told[-2:] == [("stopping", ""), ("stopped", "toy/b")]


def test_a_result_that_cannot_be_written_stops_the_run(plugins: Plugins, onlooker: Onlooker, tmp_path: Path) -> None:
    config = load("toy", plugins=plugins)
    run = Run.create(config, tmp_path / "run")
    experiment = Experiment(run, plugins, onlooker)
    onlooker.on_event = lambda job, event: run._lines.close() if job.name == "b" else None
    with pytest.raises(OSError, match="Bad file descriptor"):
        experiment.play()
    assert [result.task for result in read_results(run.results_file)] == ["toy/a"]
    assert ("started", "toy/c") not in onlooker.told


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


def test_what_is_missing_is_known_before_anything_starts(play: Any, onlooker: Onlooker) -> None:
    with pytest.raises(RequirementError, match="model 'gpt-9' is not configured"):
        play("llm.name=gpt-9", agent="chatter")
    assert onlooker.told == []


def test_selection(plugins: Plugins) -> None:
    toy = plugins.get("benchmarks", "toy")(extra_tasks=12)
    assert select_tasks(toy, "all") == list(toy.names())
    assert select_tasks(toy, ["x1*", "a", "toy/a"]) == ["a", "x1", "x10", "x11"]
    assert select_tasks(toy, ["toy/x?", "hopeless"])[-1] == "hopeless"
    with pytest.raises(UsageError, match="toy has no task 'x99'; did you mean 'x9'"):
        select_tasks(toy, ["a", "x99"])


def test_two_processes_do_not_share_a_directory(plugins: Plugins, tmp_path: Path) -> None:
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
