"""Which model played a run, and that no other goes on with it."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from asking_runs import PRICES, Serve, play_asking, player

from debug_gym_core.cli.episode_parts import Account
from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.errors import UsageError
from debug_gym_core.runs.model_record import recorded
from debug_gym_core.runs.reading import find_episodes
from debug_gym_core.runs.report import read_sections
from debug_gym_core.runs.run import Run
from debug_gym_core.testing.model_server import Reply, Request


def test_which_model_was_asked_is_kept_without_secrets(serve: Serve, wire_plugins: Plugins, tmp_path: Path) -> None:
    sent = {"extra_headers": {"x-api-key": "short", "x-team": "red"}}
    server = serve(model="first-model-2024", temperature=0.5, prices=PRICES, generate_kwargs=sent)
    settings = wire_plugins.llms["wire"].Settings(model="m", endpoint="http://me:pw@one.example/v1")
    assert recorded(settings) == {"model": "m", "endpoint": "http://one.example/v1"}
    play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=a")
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


def test_what_the_environment_says_stands_in_no_file_of_a_run(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, key = "a-value-of-mine-77", "k-in-the-path-88"
    monkeypatch.setenv("MINE_A", token)
    monkeypatch.setenv("MINE_B", key)
    monkeypatch.setenv("MINE_C", "s3")
    monkeypatch.setenv("MINE_D", "m-of-them")
    sent = {
        "extra_headers": {"X-Auth": "${MINE_A}"},
        "extra_body": {"user": "of ${MINE_A}", "tier": ["${MINE_C}"]},
        "note": "s3",
        "seed": "${MINE_C}",
    }

    def answer(request: Request) -> Reply:
        assert request.path == f"/{os.environ['MINE_B']}/v1"
        said: str = json.dumps(player(request).body)
        return Reply(json.loads(said.replace("turn ", f"{token} {key} ")))

    def entry() -> dict[str, Any]:
        return {"endpoint": f"{server.url}/${{MINE_B}}/v1", "model": "${MINE_D}", "generate_kwargs": sent}

    server = serve(answer)
    (tmp_path / "llm.yaml").write_text(json.dumps({"mine": {"tags": ["wire"], **entry()}}))
    run = play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=a")
    assert [(one.status, one.error) for one in run.results.values()] == [("resolved", None)]
    for path in (one for one in (tmp_path / "run").rglob("*") if one.is_file()):
        assert not any(one in path.read_text() for one in (token, key)), path
    kept = json.loads((tmp_path / "run/run.json").read_text())["model"]
    assert (kept["model"], kept["endpoint"]) == ("m-of-them", f"{server.url}/${{MINE_B}}/v1")
    assert kept["generate_kwargs"] == sent
    assert list(kept["variables"]) == ["of ${MINE_A}", "${MINE_C}"]

    monkeypatch.setenv("MINE_B", "k-of-another-path")
    play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=[a, b]")
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert any("model.endpoint_variables was " in note for note in record["notes"])
    monkeypatch.setenv("MINE_C", "s4")
    with pytest.raises(UsageError, match=r"was played by another model: model.variables was {.*is now "):
        play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=all")
    monkeypatch.setenv("MINE_C", "s3")
    monkeypatch.setenv("MINE_D", "m-of-others")
    with pytest.raises(UsageError, match=r'another model: model.model was "m-of-them", is now "m-of-others"'):
        play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=all")


def test_a_header_of_the_environment_may_change_as_keys_do(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another setting has the text by itself that it had."""
    monkeypatch.setenv("MINE_A", "medium")
    sent = {"extra_headers": {"X-Stage": "${MINE_A}"}, "reasoning_effort": "medium", "stop": ["medium"]}
    serve(generate_kwargs=sent)
    play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=a")
    monkeypatch.setenv("MINE_A", "second-token-2")
    assert len(play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=[a, b]").results) == 2
    kept = json.loads((tmp_path / "run/run.json").read_text())["model"]
    assert kept["generate_kwargs"] == sent and "variables" not in kept


def test_a_run_that_kept_what_the_environment_said_goes_on_while_it_says_the_same(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an older version did, which kept no references and no marks of them."""
    monkeypatch.setenv("MINE_A", "s3")
    server = serve()
    monkeypatch.setenv("MINE_B", server.url)
    asked = {"tags": ["wire"], "model": "m", "endpoint": "${MINE_B}", "generate_kwargs": {"stop": ["${MINE_A}"]}}
    (tmp_path / "llm.yaml").write_text(json.dumps({"mine": asked}))
    play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=a")
    path = tmp_path / "run/run.json"
    record = json.loads(path.read_text())
    marks = {record["model"].pop(name).popitem()[0] for name in ("variables", "endpoint_variables")}
    assert marks == {"${MINE_A}", "${MINE_B}"}
    record["model"].update(endpoint=server.url, generate_kwargs={"stop": ["s3"]})
    path.write_text(json.dumps(record))

    monkeypatch.setenv("MINE_A", "s4")
    with pytest.raises(
        UsageError, match=r'another model: model.generate_kwargs was {"stop": \["s3"\]}, is now .*MINE_A'
    ):
        play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=[a, b]")
    monkeypatch.setenv("MINE_A", "s3")
    assert len(play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=[a, b]").results) == 2
    record = json.loads(path.read_text())
    assert record["model"]["generate_kwargs"] == {"stop": ["${MINE_A}"]} and record["model"]["variables"]
    assert not any("is now" in note for note in record["notes"])


def test_what_llm_yaml_says_itself_by_now_is_the_same_as_the_environment_said(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a run goes on in whose record a plain text was taken for what came from there."""
    monkeypatch.setenv("MINE_A", "medium")
    serve(generate_kwargs={"reasoning_effort": "${MINE_A}", "stop": ["${MINE_A}"], "user": "${MINE_A}"})
    play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=a")
    serve(generate_kwargs={"reasoning_effort": "high", "stop": ["medium"], "user": "medium"})
    with pytest.raises(UsageError, match=r"another model: model.generate_kwargs was .*MINE_A.* is now .*high"):
        play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=[a, b]")
    serve(generate_kwargs={"reasoning_effort": "medium", "stop": ["medium"], "user": "${MINE_A}"})
    assert len(play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=[a, b]").results) == 2
    serve(generate_kwargs={"reasoning_effort": "medium", "stop": ["medium"], "user": "medium"})
    assert len(play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=[a, b]").results) == 2


ANOTHER: list[tuple[dict[str, Any], str]] = [
    ({"model": "second"}, 'model.model was "m", is now "second"'),
    ({"temperature": 0.5}, "model.temperature was null, is now 0.5"),
    ({"generate_kwargs": {"top_p": 0.5}}, r'model.generate_kwargs was null, is now {"top_p": 0.5}'),
    ({"dialect": "broad"}, 'model.dialect was null, is now "broad"'),
]


def test_a_run_is_not_gone_on_with_by_another_model_of_the_same_name(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path
) -> None:
    serve()
    run = play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=a")
    kept = (run.results_file, run.directory / "run.json")
    before = [path.read_bytes() for path in kept]
    for changed, said in ANOTHER:
        server = serve(**changed)
        shutil.copy(tmp_path / "llm.yaml", tmp_path / "other.yaml")
        with pytest.raises(UsageError, match=f"was played by another model: {re.escape(said)}"):
            play_asking(wire_plugins, tmp_path / "run", f"llm_config_file_path={tmp_path / 'other.yaml'}")
        assert (server.requests, [path.read_bytes() for path in kept]) == ([], before)


def test_the_entry_of_the_model_that_plays_may_stand_elsewhere_by_now(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path
) -> None:
    serve()
    first, second, third = (tmp_path / name for name in ("llm.yaml", "l2.yaml", "l3.yaml"))
    first.rename(second)
    run = play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=a", f"llm_config_file_path={second}")
    third.write_text(second.read_text())
    second.unlink()
    Run.resume(run.directory, plugins=wire_plugins, overrides=[f"llm_config_file_path={third}"]).close()
    play_asking(wire_plugins, run.directory, "benchmark.tasks=[a, b]", f"llm_config_file_path={third}")
    assert json.loads((run.directory / "run.json").read_text())["config"]["llm_config_file_path"] == str(third)
    third.write_text(third.read_text().replace('"model": "m"', '"model": "second"'))
    with pytest.raises(UsageError, match="was played by another model"):
        play_asking(wire_plugins, run.directory, "benchmark.tasks=all", f"llm_config_file_path={third}")


@pytest.mark.services
def test_another_model_of_the_same_name_may_play_all_again(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve()
    play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=[a, b]")
    serve(model="second")
    files = "".join(f" --plugin-file {path}" for path in wire_plugins.files)
    command = re.escape(f"debug-gym run --resume {tmp_path / 'run'} --force-all{files}")
    assert "wire_plugin" in files
    with pytest.raises(UsageError, match=f"play all of its tasks again: {command}$"):
        play_asking(
            wire_plugins, tmp_path / "run", "benchmark.tasks=a", force={"force_all": True}
        )  # the first one's result of b

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    def model() -> Any:
        return json.loads((tmp_path / "run/run.json").read_text())["model"]["model"]

    monkeypatch.setattr(Run, "forget", killed)
    with pytest.raises(KeyboardInterrupt):
        play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=[a, b]", force={"force_all": True})
    assert model() == "m"  # whose results are there still
    monkeypatch.undo()
    server = serve(model="second")
    run = play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=[a, b]", force={"force_all": True})
    assert ([one.status for one in run.results.values()], len(server.requests)) == (["resolved"] * 2, 8)
    assert model() == "second" and not any(" is now " in note for note in run.notes)


@pytest.mark.services
def test_what_makes_no_answers_others_may_change_and_is_told(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path
) -> None:
    first = serve(prices=PRICES)
    play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=a")
    path = tmp_path / "run/run.json"
    path.write_text(path.read_text().replace(first.url, f"{first.url}?api-key=pw@"))  # as older versions kept it
    second = serve(prices=PRICES, timeout=77, max_retries=3)
    run = play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=[a, b]")
    assert len(run.results) == 2
    record = json.loads(path.read_text())
    assert f'model.endpoint was "{first.url}", is now "{second.url}"' in record["notes"]
    assert record["model"]["endpoint"] == second.url and not any("timeout" in note for note in record["notes"])


def test_a_run_that_keeps_no_model_or_has_no_result_that_counts_takes_any(
    serve: Serve, wire_plugins: Plugins, tmp_path: Path
) -> None:
    """As one of an older version; as one whose service knew no such model."""
    serve(lambda request: Reply({"error": "no such model"}, status=400), model="misspelt")
    assert [
        one.status for one in play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=a").results.values()
    ] == ["error"]
    serve(model="right")
    play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=a")
    path = tmp_path / "run/run.json"
    record = json.loads(path.read_text())
    assert record.pop("model")["model"] == "right"
    path.write_text(json.dumps(record))
    serve(model="another")
    assert len(play_asking(wire_plugins, tmp_path / "run", "benchmark.tasks=[a, b]").results) == 2
    assert json.loads(path.read_text())["model"]["model"] == "another"
