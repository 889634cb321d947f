"""Answers of a model that are kept until their episode has a result, and used again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from asking_runs import KEY, PRICE, PRICES, Serve, Silent, play_asking
from toy_runs import UNSAFE

import debug_gym_core.runs.episode as episode
from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.loading import load
from debug_gym_core.errors import ContextOverflow, ToolsRefused, UsageError
from debug_gym_core.models.llm import Completion, Message
from debug_gym_core.models.service import ServiceSettings
from debug_gym_core.redaction import remember
from debug_gym_core.runs.asking import KeptAnswers, digest
from debug_gym_core.runs.experiment import Experiment
from debug_gym_core.runs.run import Run
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.usage import Usage


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


def test_that_a_conversation_is_too_long_or_tools_refused_is_an_answer_that_is_kept(tmp_path: Path) -> None:
    """After it the next questions are others, and what was answered to them is used again all the same."""
    kept = KeptAnswers(tmp_path / "answers.jsonl")
    kept.refuse("with tools", ToolsRefused("no tools"))
    kept.refuse("long", ContextOverflow("too long"))
    kept.add("short", Completion(Message("assistant", "yes")), 0.5)
    kept.close()
    again = KeptAnswers(tmp_path / "answers.jsonl")
    with pytest.raises(ToolsRefused, match=r"^no tools$"):
        again.next("with tools")
    with pytest.raises(ContextOverflow, match=r"^too long$"):
        again.next("long")
    assert again.next("short") is not None


def test_an_episode_that_is_played_from_answers_needs_no_money(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was killed while it was graded, and its last answer had taken what was left."""
    server = serve(prices=PRICES)
    monkeypatch.setattr(episode, "remove_answers", lambda path: None)
    whole = play_asking(wire_plugins, tmp_path / "run", f"run.max_cost={3.5 * PRICE}", "benchmark.tasks=[a, b]")
    (tmp_path / "run" / "results.jsonl").unlink()
    with Run.resume(tmp_path / "run", plugins=wire_plugins) as run:
        experiment = Experiment(run, wire_plugins, Silent())
        experiment.choose()
        experiment.check()
        experiment.play()
    (result,) = run.results.values()
    assert (len(whole.results), result.resolved, len(server.requests)) == (1, True, 4)


@pytest.mark.parametrize(
    "text",
    ["nonsense\n", '{"question": "x", "answer": {"nonsense": 1}}\n', '{"question": "x", "refused": "", "kind": "x"}\n'],
)
def test_answers_that_are_damaged_are_refused_with_their_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match=re.escape(str(path))):
        KeptAnswers(path).begin()


def test_answers_that_are_damaged_are_their_episode_s_error(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path
) -> None:
    serve()
    config = load("toy", [UNSAFE, "benchmark.tasks=[a, b]"], agent="historian", llm="mine", plugins=wire_plugins)
    with Run.create(config, tmp_path / "run", plugins=wire_plugins) as run:
        (tmp_path / "run" / "toy" / "a").mkdir(parents=True)
        (tmp_path / "run" / "toy" / "a" / "answers.jsonl").write_text('{"question": "x"}\n')
        experiment = Experiment(run, wire_plugins, Silent())
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
