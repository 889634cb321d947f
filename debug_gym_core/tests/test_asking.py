"""Runs with a model behind a service: what they spend and how they go on; real HTTP, real environments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from asking_runs import KEY, PRICE, PRICES, Serve, Silent, play_asking, player, turn
from support import repeated
from toy_runs import UNSAFE

import debug_gym_core.models.gate as gates
import debug_gym_core.runs.episode as episode
from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.loading import load
from debug_gym_core.errors import RequirementError, UsageError
from debug_gym_core.runs.experiment import Experiment
from debug_gym_core.runs.json_lines import read_lines
from debug_gym_core.runs.ledger import read_spending
from debug_gym_core.runs.report import read_sections
from debug_gym_core.runs.run import Run
from debug_gym_core.runs.trajectory import EventKind, read_journal
from debug_gym_core.testing.model_server import Reply, Request


def test_a_model_of_llm_yaml_plays(serve: Serve, wire_plugins: Plugins, tmp_path: Path) -> None:
    server = serve(prices=PRICES)
    run = play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=a")
    (result,) = run.results.values()
    assert result.resolved and result.llm == "mine" and result.cost == pytest.approx(4 * PRICE)
    assert (result.tokens.prompt, result.tokens.completion) == (4000, 400)
    assert len(server.requests) == 4 and server.requests[0].headers["authorization"] == KEY
    assert not list((tmp_path / "run").rglob("answers.jsonl")), "kept answers outlive their use"


def test_no_key_is_left_anywhere(serve: Serve, wire_plugins: Plugins, tmp_path: Path) -> None:
    def spy(request: Request) -> Reply:
        commands = ["env; cat /proc/self/environ", f"echo {KEY}"]
        if turn(request) < 2:
            call = {"name": "sh", "arguments": {"command": commands[turn(request)]}, "id": str(turn(request))}
            return Reply({"text": f"I was given {KEY}", "calls": [call]})
        return Reply({"error": f"refused: {KEY}"}, status=400)

    serve(spy)
    run = play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=a", verbose=True)
    (result,) = run.results.values()
    assert result.status == "error" and result.error is not None and "refused: ***" in result.error["message"]
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path
    steps = [
        event.data["observation"]["text"]
        for event in read_journal(run.task_directory("toy/a") / "trajectory.jsonl")
        if event.kind is EventKind.STEP
    ]
    assert "WIRE_KEY" not in steps[1], "the sandbox has it"


@pytest.mark.faults
def test_a_run_that_was_killed_pays_for_no_call_twice(serve: Serve, wire_plugins: Plugins, tmp_path: Path) -> None:
    """Killed while the third of four calls is under way: two are used again, and the result is that of one run."""
    killed = threading.Event()

    def answer(request: Request) -> Reply:
        if turn(request) == 2 and not killed.is_set():
            killed.wait(60)
        return player(request)

    server = serve(answer, prices=PRICES)
    directory = tmp_path / "run"
    words = ["run", "toy/a", "--agent", "historian", "--llm", "mine", "-p", UNSAFE, "-o", str(directory)]
    words += [word for path in wire_plugins.files for word in ("--plugin-file", str(path))]
    child = subprocess.Popen(
        [sys.executable, "-c", "from debug_gym_core.cli import main; main()", *words],
        env={**os.environ, "DEBUG_GYM_PLUGINS": "core,terminal-local"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 60
        while len(server.requests) < 3:
            assert time.monotonic() < end and child.poll() is None
            time.sleep(0.02)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    killed.set()
    with Run.resume(directory, plugins=wire_plugins) as run:
        experiment = Experiment(run, wire_plugins, Silent())
        experiment.choose()
        experiment.check()
        experiment.play()
    (result,) = run.results.values()
    assert result.resolved and result.cost == pytest.approx(4 * PRICE) and result.tokens.prompt == 4000
    assert [turn(request) for request in server.requests] == [0, 1, 2, 2, 3]
    spending = [json.loads(line) for line in (directory / "spending.jsonl").read_text().splitlines()]
    costs = {line["call"]: line["cost"] for line in spending}
    # The call that was killed may have been charged: what was reserved for it is counted.
    assert len(costs) == 5 and sum(costs.values()) > 4 * PRICE


def test_a_run_that_goes_on_has_the_money_that_is_left(serve: Serve, wire_plugins: Plugins, tmp_path: Path) -> None:
    server = serve(prices=PRICES)
    limit = f"run.max_cost={5.5 * PRICE}"
    play_asking(wire_plugins, tmp_path / "run", limit, "benchmark.tasks=a")
    run = play_asking(wire_plugins, tmp_path / "run", limit)
    # a had four calls; of the six that are let through b has two, and c none.
    assert len(server.requests) == 6
    assert [result.cost for result in run.results.values()] == pytest.approx([4 * PRICE])


@pytest.mark.services
@pytest.mark.parametrize("bound", ["run.max_cost", *repeated("faults", "llm.max_run_tokens")])
def test_a_run_that_had_too_little_and_is_given_more_is_as_one_that_had_enough(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path, bound: str
) -> None:
    """What was asked until then is paid for once, whoever's episode the money ran out in."""
    little, enough = (5.5 * PRICE, 50 * PRICE) if bound == "run.max_cost" else (6000, 60000)
    server = serve(prices=PRICES)
    short = play_asking(wire_plugins, tmp_path / "short", f"{bound}={little}", "run.workers=2")
    asked = len(server.requests)
    assert 0 < asked < 12 and len(short.results) < 3
    whole = play_asking(wire_plugins, tmp_path / "short", f"{bound}={enough}", "run.workers=2")
    assert len(server.requests) == 12
    at_once = play_asking(wire_plugins, tmp_path / "at-once", f"{bound}={enough}", "run.workers=2")

    def told(run: Run) -> list[Any]:
        return sorted((r.task, r.status, r.score, r.steps, r.ended, r.tokens.prompt) for r in run.results.values())

    assert told(whole) == told(at_once) and len(told(whole)) == 3
    (line,) = next(iter(read_sections([tmp_path / "short"]).values()))
    assert line.spent == pytest.approx(line.cost) == pytest.approx(12 * PRICE)


def test_a_run_that_may_spend_nothing_begins_one_episode_and_no_other(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path
) -> None:
    server = serve(prices=PRICES)
    config = load("toy", [UNSAFE, "run.max_cost=0"], agent="historian", llm="mine", plugins=wire_plugins)
    with Run.create(config, tmp_path / "run", plugins=wire_plugins) as run:
        experiment = Experiment(run, wire_plugins, Silent())
        experiment.play()
        assert (experiment.spent_bound, run.results, server.requests) == ("run.max_cost", {}, [])
    assert [path.name for path in (tmp_path / "run/toy").iterdir()] == ["a"]


@pytest.mark.faults
def test_many_workers_stop_within_one_call_of_the_limit(serve: Serve, wire_plugins: Plugins, tmp_path: Path) -> None:
    def slow(request: Request) -> Reply:
        time.sleep(0.5)
        return player(request)

    server = serve(slow, prices=PRICES, max_tokens=100)
    limit = 150.5 * PRICE
    run = play_asking(
        wire_plugins, tmp_path / "run", f"run.max_cost={limit}", "benchmark.extra_tasks=61", "run.workers=64"
    )
    spent = sum(usage.cost for usage in read_spending(run.directory / "spending.jsonl").values())
    assert server.most_active > 8
    assert limit <= spent < limit + PRICE
    assert len(server.requests) == 151


@pytest.mark.parametrize(
    ("bound", "tasks", "calls", "status"),
    [
        (f"llm.max_task_cost={1.5 * PRICE}", "ab", 2, "unresolved"),
        ("llm.max_task_cost=0", "a", 0, "unresolved"),
        ("llm.max_task_tokens=3000", "a", 3, "resolved"),
    ],
)
def test_bounds_of_an_episode(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path, bound: str, tasks: str, calls: int, status: str
) -> None:
    server = serve(prices=PRICES)
    run = play_asking(wire_plugins, tmp_path / "run", bound, f"benchmark.tasks=[{', '.join(tasks)}]")
    assert len(server.requests) == len(tasks) * calls
    assert [result.status for result in run.results.values()] == [status] * len(tasks)


@pytest.mark.parametrize("after", [503, 413])
def test_what_a_call_that_failed_was_charged_is_in_the_cost_of_its_episode(
    serve: Serve,
    wire_plugins: Plugins,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
) -> None:
    """An answer that says nothing is paid for, and none that is of use comes after it."""
    monkeypatch.setattr(gates, "FIRST_PAUSE", 0.0)
    replies = [Reply({"text": "", "prompt": 1000, "completion": 100}), Reply({}, status=after), Reply({}, status=after)]

    def answer(request: Request) -> Reply:
        return replies.pop(0) if turn(request) == 1 and replies else player(request)

    serve(answer, prices=PRICES, max_retries=1)
    run = play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=a")
    (result,) = run.results.values()
    assert (result.cost, result.tokens.completion) == (pytest.approx(2 * PRICE), 200)
    calls = [e.data for e in read_journal(tmp_path / "run/toy/a/trajectory.jsonl") if e.kind is EventKind.LLM_CALL]
    assert [call.get("failed") for call in calls] == [
        None,
        "mine (m): status 503; it was asked 2 times" if after == 503 else "mine (m): {}",
    ]


def test_a_conversation_that_no_model_takes_ends_the_episode_and_is_graded(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode, "remove_answers", lambda path: None)
    serve(lambda request: Reply({}, status=413) if turn(request) == 2 else player(request), prices=PRICES)
    (result,) = play_asking(wire_plugins, tmp_path / "too-long", "benchmark.tasks=a").results.values()
    assert (result.status, result.ended, result.error) == ("unresolved", "context", None)
    kept = list(read_lines(tmp_path / "too-long" / "toy" / "a" / "answers.jsonl"))
    assert ["refused" in line for line in kept] == [False, False, True]
    bound = f"llm.max_call_cost={PRICE / 2}"
    (result,) = play_asking(wire_plugins, tmp_path / "too-dear", bound, "benchmark.tasks=a").results.values()
    assert (result.status, result.ended, result.cost) == ("unresolved", "max_cost", pytest.approx(PRICE))


def test_what_weakens_the_count_of_tokens_is_told_once_in_each_run(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path
) -> None:
    serve(dialect="rough")
    for name in ("first", "second"):
        run = play_asking(wire_plugins, tmp_path / name, "benchmark.tasks=[a, b]")
        assert [one.status for one in run.results.values()] == ["resolved"] * 2
        told = [one for one in run.notes if "estimated" in one]
        assert told == ["mine (m): tokens are estimated, says ***"]


DEAR = {"prompt": 3.0, "completion": 15.0}


def test_an_answer_that_nothing_bounds_is_bounded_by_what_a_call_may_cost(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path
) -> None:
    """8192 tokens, which are set aside for it else, cost more."""
    serve(prices=DEAR)
    run = play_asking(wire_plugins, tmp_path / "run", "llm.max_call_cost=0.1", "benchmark.tasks=a")
    assert [one.status for one in run.results.values()] == ["resolved"]
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert record["model"]["max_tokens"] == 3333
    assert (
        "llm.max_call_cost ($0.1) has mine answer at most 3333 tokens; max_tokens may say another number"
        in (record["notes"])
    )


def test_what_a_call_may_cost_bounds_no_answer_in_a_way_that_its_backend_refuses(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path
) -> None:
    server = serve(prices=DEAR, dialect="wordy")
    with pytest.raises(UsageError, match="mine: what is wordy takes 5000 tokens"):
        play_asking(wire_plugins, tmp_path / "run", "llm.max_call_cost=0.1", "benchmark.tasks=a")
    assert not server.requests


def test_how_long_an_answer_may_be_that_nothing_bounds_says_its_backend(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path
) -> None:
    serve(prices=DEAR, tags=["brief"])
    run = play_asking(wire_plugins, tmp_path / "run", "llm.max_call_cost=0.1", "benchmark.tasks=a")
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert run.results and "max_tokens" not in record["model"], "3333 pays for all of it"


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        (
            {"max_call_cost": 0.05, "tags": ["brief"]},
            r"mine: max_call_cost \(\$0.05\) lets no call through, an answer of 2024 ",
        ),
        (
            {"max_call_cost": 0.01},
            r"llm.yaml:1: mine: max_call_cost \(\$0.01\) lets no call through, an answer of 1024 ",
        ),
        (
            {"max_call_cost": 0.1, "max_tokens": 9000},
            r"an answer of 9000 tokens costs \$0.135: raise it, or lower max_to",
        ),
    ],
)
def test_a_call_that_may_cost_less_than_its_answer_is_refused_before_the_run(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path, said: dict[str, Any], refusal: str
) -> None:
    server = serve(prices=DEAR, **said)
    with pytest.raises(UsageError, match=refusal):
        play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=a")
    assert not server.requests and not (tmp_path / "run" / "toy").exists()


def test_a_bound_in_dollars_wants_prices(serve: Serve, wire_plugins: Plugins, tmp_path: Path) -> None:
    server = serve()
    for bound in ("run.max_cost=1", "llm.max_task_cost=1", "llm.max_call_cost=1"):
        with pytest.raises(
            RequirementError, match=rf"mine has no prices in .*llm.yaml, so {bound[:-2]} cannot be kept"
        ):
            play_asking(wire_plugins, tmp_path / f"run-{bound}", bound)
    assert server.requests == []
    run = play_asking(
        wire_plugins, tmp_path / "run", "run.max_cost=1", "llm.allow_unknown_price=true", "benchmark.tasks=a"
    )
    assert run.results and any(
        "bounds nothing" in note for note in json.loads((run.directory / "run.json").read_text())["notes"]
    )


def test_a_key_that_is_missing_is_said_before_anything_is_played(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path
) -> None:
    server = serve(api_key=None, dialect="keyed")
    with pytest.raises(RequirementError, match=r"^m: there is no key$"):
        play_asking(wire_plugins, tmp_path / "run")
    assert not server.requests and not (tmp_path / "run" / "toy").exists()


def test_what_is_left_when_a_run_is_stopped_counts_with_what_was_set_aside(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("debug_gym_core.models.stopping.GRACE", 0.0)
    asked, leave, stop = threading.Event(), threading.Event(), threading.Event()

    def answer(request: Request) -> Reply:
        if turn(request) == 1:
            asked.set()
            leave.wait(60)
        return player(request)

    serve(answer, prices=PRICES, max_tokens=50)
    config = load("toy", [UNSAFE, "benchmark.tasks=a"], agent="historian", llm="mine", plugins=wire_plugins)
    with Run.create(config, tmp_path / "run", plugins=wire_plugins) as run:
        experiment = Experiment(run, wire_plugins, Silent())
        experiment.choose()
        experiment.check()

        def end() -> None:
            asked.wait(60)
            experiment.stop()
            stop.wait(60)
            leave.set()

        threading.Thread(target=end).start()
        experiment.play()
        stop.set()
    costs = {line["call"]: line["cost"] for line in read_lines(tmp_path / "run" / "spending.jsonl")}
    assert costs[1] == pytest.approx(PRICE) and costs[2] > 0 and not run.results
