"""Runs with a model behind a service: what they spend, what they keep, how they go on; real HTTP, real environments."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import debug_gym_core.models.gate as gates
import debug_gym_core.runs.episode as episode
from debug_gym_core.cli.episode_parts import Account
from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.loading import load
from debug_gym_core.errors import ContextOverflow, RequirementError, UsageError
from debug_gym_core.models.llm import Completion, Message
from debug_gym_core.models.service import ServiceSettings
from debug_gym_core.plugins import load_plugins
from debug_gym_core.redaction import remember
from debug_gym_core.runs.asking import KeptAnswers, digest
from debug_gym_core.runs.experiment import Experiment
from debug_gym_core.runs.json_lines import read_lines
from debug_gym_core.runs.ledger import read_spending
from debug_gym_core.runs.model_record import recorded
from debug_gym_core.runs.reading import find_episodes
from debug_gym_core.runs.report import read_sections
from debug_gym_core.runs.run import Run
from debug_gym_core.runs.trajectory import EventKind, read_journal
from debug_gym_core.testing.model_server import ModelServer, Reply, Request
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.usage import Usage

TOY, WIRE = (Path(__file__).parent / name for name in ("toy_plugin.py", "wire_plugin.py"))
UNSAFE = "terminal.allow_unsandboxed=true"
KEY = "sk-planted-0123456789"
COMMANDS = ("echo one > first", "echo two > second", "printf 42 > answer")


class Silent:
    """Nobody looks on."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


@pytest.fixture(scope="module")
def plugins() -> Iterator[Plugins]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEBUG_GYM_PLUGINS", "core,terminal-local")
        yield load_plugins(files=[TOY, WIRE], strict=True)


def turn(request: Request) -> int:
    """How often the model was asked before in this conversation."""
    return sum(role == "assistant" for role, _ in request.body["messages"])


def player(request: Request) -> Reply:
    """A model that carries out the commands, one a turn."""
    at = turn(request)
    calls = [{"name": "sh", "arguments": {"command": COMMANDS[at]}, "id": f"c{at}"}] if at < len(COMMANDS) else []
    return Reply({"text": f"turn {at}", "calls": calls, "prompt": 1000, "completion": 100})


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModelServer]]:
    """A server, and an llm.yaml whose model `mine` is there."""
    servers: list[ModelServer] = []

    def serve(answer: Callable[[Request], Reply] = player, **entry: Any) -> ModelServer:
        server = ModelServer(answer)
        servers.append(server)
        monkeypatch.setenv("WIRE_KEY", KEY)
        values = {"model": "m", "tags": ["wire"], "endpoint": server.url, "api_key": "${WIRE_KEY}", **entry}
        (tmp_path / "llm.yaml").write_text(json.dumps({"mine": values}))
        monkeypatch.setenv("LLM_CONFIG_FILE_PATH", str(tmp_path / "llm.yaml"))
        return server

    yield serve
    for server in servers:
        server.close()


PRICES = {"prompt": 100.0, "completion": 0.0}
PRICE = 0.1
"""Dollars of a call of `player` at these prices."""


def play(
    plugins: Plugins, directory: Path, *overrides: str, force: Mapping[str, bool] | None = None, **options: Any
) -> Run:
    config = load("toy", [UNSAFE, *overrides], agent="historian", llm="mine", plugins=plugins)
    with Run.create(config, directory, plugins=plugins) as run:
        experiment = Experiment(run, plugins, Silent(), **options)
        experiment.choose(**(force or {}))
        experiment.check()
        experiment.play()
    return run


def test_a_model_of_llm_yaml_plays(serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path) -> None:
    server = serve(prices=PRICES)
    run = play(plugins, tmp_path / "run", "benchmark.tasks=a")
    (result,) = run.results.values()
    assert result.resolved and result.llm == "mine" and result.cost == pytest.approx(4 * PRICE)
    assert (result.tokens.prompt, result.tokens.completion) == (4000, 400)
    assert len(server.requests) == 4 and server.requests[0].headers["authorization"] == KEY
    assert not list((tmp_path / "run").rglob("answers.jsonl")), "kept answers outlive their use"


def test_no_key_is_left_anywhere(serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path) -> None:
    def spy(request: Request) -> Reply:
        commands = ["env; cat /proc/self/environ", f"echo {KEY}"]
        if turn(request) < 2:
            call = {"name": "sh", "arguments": {"command": commands[turn(request)]}, "id": str(turn(request))}
            return Reply({"text": f"I was given {KEY}", "calls": [call]})
        return Reply({"error": f"refused: {KEY}"}, status=400)

    serve(spy)
    run = play(plugins, tmp_path / "run", "benchmark.tasks=a", verbose=True)
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


def test_a_run_that_was_killed_pays_for_no_call_twice(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path
) -> None:
    """Killed while the third of four calls is under way: two are used again, and the result is that of one run."""
    killed = threading.Event()

    def answer(request: Request) -> Reply:
        if turn(request) == 2 and not killed.is_set():
            killed.wait(60)
        return player(request)

    server = serve(answer, prices=PRICES)
    directory = tmp_path / "run"
    words = ["run", "toy/a", "--agent", "historian", "--llm", "mine", "-p", UNSAFE, "-o", str(directory)]
    words += ["--plugin-file", str(TOY), "--plugin-file", str(WIRE)]
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
    with Run.resume(directory, plugins=plugins) as run:
        experiment = Experiment(run, plugins, Silent())
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


def test_a_run_that_goes_on_has_the_money_that_is_left(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path
) -> None:
    server = serve(prices=PRICES)
    limit = f"run.max_cost={5.5 * PRICE}"
    play(plugins, tmp_path / "run", limit, "benchmark.tasks=a")
    run = play(plugins, tmp_path / "run", limit)
    # a had four calls; of the six that are let through b has two, and c none.
    assert len(server.requests) == 6
    assert [result.cost for result in run.results.values()] == pytest.approx([4 * PRICE])


@pytest.mark.parametrize("bound", ["run.max_cost", "llm.max_run_tokens"])
def test_a_run_that_had_too_little_and_is_given_more_is_as_one_that_had_enough(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path, bound: str
) -> None:
    """What was asked until then is paid for once, whoever's episode the money ran out in."""
    little, enough = (5.5 * PRICE, 50 * PRICE) if bound == "run.max_cost" else (6000, 60000)
    server = serve(prices=PRICES)
    short = play(plugins, tmp_path / "short", f"{bound}={little}", "run.workers=2")
    asked = len(server.requests)
    assert 0 < asked < 12 and len(short.results) < 3
    whole = play(plugins, tmp_path / "short", f"{bound}={enough}", "run.workers=2")
    assert len(server.requests) == 12
    at_once = play(plugins, tmp_path / "at-once", f"{bound}={enough}", "run.workers=2")

    def told(run: Run) -> list[Any]:
        return sorted((r.task, r.status, r.score, r.steps, r.ended, r.tokens.prompt) for r in run.results.values())

    assert told(whole) == told(at_once) and len(told(whole)) == 3
    (line,) = next(iter(read_sections([tmp_path / "short"]).values()))
    assert line.spent == pytest.approx(line.cost) == pytest.approx(12 * PRICE)


def test_a_run_that_may_spend_nothing_begins_one_episode_and_no_other(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path
) -> None:
    server = serve(prices=PRICES)
    config = load("toy", [UNSAFE, "run.max_cost=0"], agent="historian", llm="mine", plugins=plugins)
    with Run.create(config, tmp_path / "run", plugins=plugins) as run:
        experiment = Experiment(run, plugins, Silent())
        experiment.play()
        assert (experiment.spent_bound, run.results, server.requests) == ("run.max_cost", {}, [])
    assert [path.name for path in (tmp_path / "run/toy").iterdir()] == ["a"]


def test_which_model_was_asked_is_kept_without_secrets(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path
) -> None:
    sent = {"extra_headers": {"x-api-key": "short", "x-team": "red"}}
    server = serve(model="first-model-2024", temperature=0.5, prices=PRICES, generate_kwargs=sent)
    settings = plugins.llms["wire"].Settings(model="m", endpoint="http://me:pw@one.example/v1")
    assert recorded(settings) == {"model": "m", "endpoint": "http://one.example/v1"}
    play(plugins, tmp_path / "run", "benchmark.tasks=a")
    assert json.loads((tmp_path / "run/run.json").read_text())["model"] == {
        "backend": "wire",
        "model": "first-model-2024",
        "endpoint": server.url,
        "tags": ["wire"],
        "temperature": 0.5,
        "prices": PRICES,
        "generate_kwargs": {"extra_headers": {"x-api-key": "***", "x-team": "red"}},
    }
    (line,) = next(iter(read_sections([tmp_path / "run"]).values()))
    assert (line.llm, line.model) == ("mine", "first-model-2024")
    (kept,) = find_episodes(tmp_path / "run")
    assert ("model", "mine (first-model-2024)") in Account.of(kept).facts()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"model": "second"}, 'model.model was "m", is now "second"'),
        ({"temperature": 0.5}, "model.temperature was null, is now 0.5"),
        ({"generate_kwargs": {"top_p": 0.5}}, r'model.generate_kwargs was null, is now {"top_p": 0.5}'),
        ({"dialect": "broad"}, 'model.dialect was null, is now "broad"'),
    ],
)
def test_a_run_is_not_gone_on_with_by_another_model_of_the_same_name(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    serve()
    run = play(plugins, tmp_path / "run", "benchmark.tasks=a")
    kept = (run.results_file, run.directory / "run.json")
    before = [path.read_bytes() for path in kept]
    server = serve(**changed)
    shutil.copy(tmp_path / "llm.yaml", tmp_path / "other.yaml")
    with pytest.raises(UsageError, match=f"was played by another model: {re.escape(said)}"):
        play(plugins, tmp_path / "run", f"llm_config_file_path={tmp_path / 'other.yaml'}")
    assert (server.requests, [path.read_bytes() for path in kept]) == ([], before)


def test_the_entry_of_the_model_that_plays_may_stand_elsewhere_by_now(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path
) -> None:
    serve()
    first, second, third = (tmp_path / name for name in ("llm.yaml", "l2.yaml", "l3.yaml"))
    first.rename(second)
    run = play(plugins, tmp_path / "run", "benchmark.tasks=a", f"llm_config_file_path={second}")
    third.write_text(second.read_text())
    second.unlink()
    Run.resume(run.directory, plugins=plugins, overrides=[f"llm_config_file_path={third}"]).close()
    play(plugins, run.directory, "benchmark.tasks=[a, b]", f"llm_config_file_path={third}")
    assert json.loads((run.directory / "run.json").read_text())["config"]["llm_config_file_path"] == str(third)
    third.write_text(third.read_text().replace('"model": "m"', '"model": "second"'))
    with pytest.raises(UsageError, match="was played by another model"):
        play(plugins, run.directory, "benchmark.tasks=all", f"llm_config_file_path={third}")


def test_another_model_of_the_same_name_may_play_all_again(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve()
    play(plugins, tmp_path / "run", "benchmark.tasks=[a, b]")
    serve(model="second")
    files = "".join(f" --plugin-file {path}" for path in plugins.files)
    command = re.escape(f"debug-gym run --resume {tmp_path / 'run'} --force-all{files}")
    assert "wire_plugin" in files
    with pytest.raises(UsageError, match=f"play all of its tasks again: {command}$"):
        play(plugins, tmp_path / "run", "benchmark.tasks=a", force={"force_all": True})  # the first one's result of b

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    def model() -> Any:
        return json.loads((tmp_path / "run/run.json").read_text())["model"]["model"]

    monkeypatch.setattr(Run, "forget", killed)
    with pytest.raises(KeyboardInterrupt):
        play(plugins, tmp_path / "run", "benchmark.tasks=[a, b]", force={"force_all": True})
    assert model() == "m"  # whose results are there still
    monkeypatch.undo()
    server = serve(model="second")
    run = play(plugins, tmp_path / "run", "benchmark.tasks=[a, b]", force={"force_all": True})
    assert ([one.status for one in run.results.values()], len(server.requests)) == (["resolved"] * 2, 8)
    assert model() == "second" and not any(" is now " in note for note in run.notes)


def test_what_makes_no_answers_others_may_change_and_is_told(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path
) -> None:
    first = serve(prices=PRICES)
    play(plugins, tmp_path / "run", "benchmark.tasks=a")
    path = tmp_path / "run/run.json"
    path.write_text(path.read_text().replace(first.url, f"{first.url}?api-key=pw@"))  # as older versions kept it
    second = serve(prices=PRICES, timeout=77, max_retries=3)
    run = play(plugins, tmp_path / "run", "benchmark.tasks=[a, b]")
    assert len(run.results) == 2
    record = json.loads(path.read_text())
    assert f'model.endpoint was "{first.url}", is now "{second.url}"' in record["notes"]
    assert record["model"]["endpoint"] == second.url and not any("timeout" in note for note in record["notes"])


def test_a_run_that_keeps_no_model_or_has_no_result_that_counts_takes_any(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path
) -> None:
    """As one of an older version; as one whose service knew no such model."""
    serve(lambda request: Reply({"error": "no such model"}, status=400), model="misspelt")
    assert [one.status for one in play(plugins, tmp_path / "run", "benchmark.tasks=a").results.values()] == ["error"]
    serve(model="right")
    play(plugins, tmp_path / "run", "benchmark.tasks=a")
    path = tmp_path / "run/run.json"
    record = json.loads(path.read_text())
    assert record.pop("model")["model"] == "right"
    path.write_text(json.dumps(record))
    serve(model="another")
    assert len(play(plugins, tmp_path / "run", "benchmark.tasks=[a, b]").results) == 2
    assert json.loads(path.read_text())["model"]["model"] == "another"


@pytest.mark.faults
def test_many_workers_stop_within_one_call_of_the_limit(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path
) -> None:
    def slow(request: Request) -> Reply:
        time.sleep(0.5)
        return player(request)

    server = serve(slow, prices=PRICES, max_tokens=100)
    limit = 150.5 * PRICE
    run = play(plugins, tmp_path / "run", f"run.max_cost={limit}", "benchmark.extra_tasks=61", "run.workers=64")
    spent = sum(usage.cost for usage in read_spending(run.directory / "spending.jsonl").values())
    assert server.most_active > 8
    assert limit <= spent < limit + PRICE
    assert len(server.requests) == 151


@pytest.mark.parametrize(
    ("bound", "calls", "status"),
    [
        (f"llm.max_task_cost={1.5 * PRICE}", 2, "unresolved"),
        ("llm.max_task_cost=0", 0, "unresolved"),
        ("llm.max_task_tokens=3000", 3, "resolved"),
    ],
)
def test_bounds_of_an_episode(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path, bound: str, calls: int, status: str
) -> None:
    server = serve(prices=PRICES)
    run = play(plugins, tmp_path / "run", bound, "benchmark.tasks=[a, b]")
    assert len(server.requests) == 2 * calls
    assert [result.status for result in run.results.values()] == [status] * 2


@pytest.mark.parametrize("after", [503, 413])
def test_what_a_call_that_failed_was_charged_is_in_the_cost_of_its_episode(
    serve: Callable[..., ModelServer],
    plugins: Plugins,
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
    run = play(plugins, tmp_path / "run", "benchmark.tasks=a")
    (result,) = run.results.values()
    assert (result.cost, result.tokens.completion) == (pytest.approx(2 * PRICE), 200)
    calls = [e.data for e in read_journal(tmp_path / "run/toy/a/trajectory.jsonl") if e.kind is EventKind.LLM_CALL]
    assert [call.get("failed") for call in calls] == [
        None,
        "mine (m): status 503; it was asked 2 times" if after == 503 else "mine (m): {}",
    ]


def test_a_conversation_that_no_model_takes_ends_the_episode_and_is_graded(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode, "remove_answers", lambda path: None)
    serve(lambda request: Reply({}, status=413) if turn(request) == 2 else player(request), prices=PRICES)
    (result,) = play(plugins, tmp_path / "too-long", "benchmark.tasks=a").results.values()
    assert (result.status, result.ended, result.error) == ("unresolved", "context", None)
    kept = list(read_lines(tmp_path / "too-long" / "toy" / "a" / "answers.jsonl"))
    assert ["refused" in line for line in kept] == [False, False, True]
    bound = f"llm.max_call_cost={PRICE / 2}"
    (result,) = play(plugins, tmp_path / "too-dear", bound, "benchmark.tasks=a").results.values()
    assert (result.status, result.ended, result.cost) == ("unresolved", "context", pytest.approx(PRICE))


def test_a_bound_in_dollars_wants_prices(serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path) -> None:
    server = serve()
    for bound in ("run.max_cost=1", "llm.max_task_cost=1", "llm.max_call_cost=1"):
        with pytest.raises(
            RequirementError, match=rf"mine has no prices in .*llm.yaml, so {bound[:-2]} cannot be kept"
        ):
            play(plugins, tmp_path / f"run-{bound}", bound)
    assert server.requests == []
    run = play(plugins, tmp_path / "run", "run.max_cost=1", "llm.allow_unknown_price=true", "benchmark.tasks=a")
    assert run.results and any(
        "bounds nothing" in note for note in json.loads((run.directory / "run.json").read_text())["notes"]
    )


def test_a_key_that_is_missing_is_said_before_anything_is_played(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path
) -> None:
    server = serve(api_key=None, dialect="keyed")
    with pytest.raises(RequirementError, match=r"^m: there is no key$"):
        play(plugins, tmp_path / "run")
    assert not server.requests and not (tmp_path / "run" / "toy").exists()


def test_kept_answers_are_used_as_far_as_the_same_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    answers = [
        Completion(Message("assistant", text, provider={"wire": {"signature": "ÿ"}}), Usage(1, 2), reasoning="hm")
        for text in ("one", "two", "three")
    ]
    kept = KeptAnswers(path)
    for number, answer in enumerate(answers):
        assert kept.next(str(number)) is None
        kept.add(str(number), answer, 0.5)
    kept.close()
    again = KeptAnswers(path)
    assert again.next("0") == (answers[0], 0.5)
    assert again.next("another") is None and again.next("2") is None
    again.add("another", answers[2], 0.5)
    again.begin()
    assert [again.next(question) for question in ("0", "another")] == [(answers[0], 0.5), (answers[2], 0.5)]
    again.close()
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("key", [KEY, "not-needed"])
def test_kept_answers_have_no_key_and_are_what_was_said(tmp_path: Path, key: str) -> None:
    """One that had to be masked is asked again; what stands for no key is none, and models write it into code."""
    remember(key)
    path = tmp_path / "answers.jsonl"
    said = Completion(Message("assistant", "", (ToolCall("sh", {"command": f"echo {key}"}),)))
    kept = KeptAnswers(path)
    for question in ("0", "1", "2"):
        kept.add(question, said, 0.5)
    kept.begin()
    assert kept.next("0") == (said, 0.5) and kept.next("1") == (said, 0.5) and kept.next("another") is None
    kept.close()
    assert (KEY in path.read_text(), "***" in path.read_text()) == (False, key == KEY)
    assert KeptAnswers(path).next("0") == ((said, 0.5) if key != KEY else None)


def test_that_a_conversation_is_too_long_is_an_answer_that_is_kept(tmp_path: Path) -> None:
    """After it the next questions are others, and what was answered to them is used again all the same."""
    kept = KeptAnswers(tmp_path / "answers.jsonl")
    kept.refuse("long", "too long")
    kept.add("short", Completion(Message("assistant", "yes")), 0.5)
    kept.close()
    again = KeptAnswers(tmp_path / "answers.jsonl")
    with pytest.raises(ContextOverflow, match=r"^too long$"):
        again.next("long")
    assert again.next("short") is not None


def test_what_is_left_when_a_run_is_stopped_counts_with_what_was_set_aside(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("debug_gym_core.models.stopping.GRACE", 0.0)
    asked, leave, stop = threading.Event(), threading.Event(), threading.Event()

    def answer(request: Request) -> Reply:
        if turn(request) == 1:
            asked.set()
            leave.wait(60)
        return player(request)

    serve(answer, prices=PRICES, max_tokens=50)
    config = load("toy", [UNSAFE, "benchmark.tasks=a"], agent="historian", llm="mine", plugins=plugins)
    with Run.create(config, tmp_path / "run", plugins=plugins) as run:
        experiment = Experiment(run, plugins, Silent())
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


def test_an_episode_that_is_played_from_answers_needs_no_money(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was killed while it was graded, and its last answer had taken what was left."""
    server = serve(prices=PRICES)
    monkeypatch.setattr(episode, "remove_answers", lambda path: None)
    whole = play(plugins, tmp_path / "run", f"run.max_cost={3.5 * PRICE}", "benchmark.tasks=[a, b]")
    (tmp_path / "run" / "results.jsonl").unlink()
    with Run.resume(tmp_path / "run", plugins=plugins) as run:
        experiment = Experiment(run, plugins, Silent())
        experiment.choose()
        experiment.check()
        experiment.play()
    (result,) = run.results.values()
    assert (len(whole.results), result.resolved, len(server.requests)) == (1, True, 4)


@pytest.mark.parametrize(
    "text", ["nonsense\n", '{"question": "x"}\n', '{"question": "x", "answer": {"nonsense": 1}}\n']
)
def test_answers_that_are_damaged_are_their_episode_s_error(
    serve: Callable[..., ModelServer], plugins: Plugins, tmp_path: Path, text: str
) -> None:
    serve()
    config = load("toy", [UNSAFE, "benchmark.tasks=[a, b]"], agent="historian", llm="mine", plugins=plugins)
    with Run.create(config, tmp_path / "run", plugins=plugins) as run:
        (tmp_path / "run" / "toy" / "a").mkdir(parents=True)
        (tmp_path / "run" / "toy" / "a" / "answers.jsonl").write_text(text)
        experiment = Experiment(run, plugins, Silent())
        experiment.choose()
        experiment.check()
        experiment.play()
    damaged, whole = run.results.values()
    assert (damaged.status, whole.status) == ("error", "resolved")
    assert damaged.error is not None and "answers.jsonl" in damaged.error["message"]


def test_another_model_is_asked_another_question() -> None:
    asked, tools = [Message("user", "Hello?")], [{"name": "sh", "parameters": {}}]
    plain = ServiceSettings(model="m", api_key=KEY, endpoint="http://one.example")
    same = ServiceSettings(model="m", endpoint="http://two.example", timeout=5)
    assert digest(asked, tools, plain) == digest(list(asked), list(tools), same)
    others = [
        digest([Message("user", "Hello!")], tools, plain),
        digest(asked, [], plain),
        *(
            digest(asked, tools, ServiceSettings(**{"model": "m", **changed}))
            for changed in (
                {"model": "n"},
                {"temperature": 1.0},
                {"generate_kwargs": {"top_p": 0.5}},
                {"function_calling": False},
            )
        ),
    ]
    assert len({digest(asked, tools, plain), *others}) == 7
