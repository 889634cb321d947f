"""The formats that core brings, and `debug-gym export`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import saved_episodes as saved
from click.testing import CliRunner

from debug_gym_core.cli import main
from debug_gym_core.models.llm import Message
from debug_gym_core.runs.exporters import Messages, ShareGPT
from debug_gym_core.testing import ExporterContract
from debug_gym_core.tools.action import ToolCall

SYSTEM, TASK = Message("system", "You fix bugs."), Message("user", "Fix it.")
LOOK = Message("assistant", "I look.", (ToolCall("view", {"path": "a.py"}, "1"),))
SEEN = Message("tool", "1 x = 1", call_id="1")
DONE = Message("assistant", "I am done.")
PLUGIN = """
from pathlib import Path
from debug_gym_core import hookimpl
from debug_gym_core.runs.jobs import Exporter

class Names(Exporter):
    '''The name of the run.'''
    name = "names"

    def export(self, run, target):
        if target.suffix == ".d":
            target.mkdir()
            target = target / "name"
        target.write_text(run.name)

@hookimpl
def debug_gym_register_exporters():
    return [Names]
"""
TOOL = """
from debug_gym_core import Tool, hookimpl

class Count(Tool):
    '''Count words.'''
    name = "wc"

    def use(self, env):
        return ""

@hookimpl
def debug_gym_register_tools():
    return [Count]
"""
ENDED = [saved.step(1, saved.call("wc"), "3 words"), *saved.finished(saved.result())]


class TestMessages(ExporterContract):
    exporter = Messages


class TestShareGPT(ExporterContract):
    exporter = ShareGPT


def export(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["export", *map(str, arguments)], env={"COLUMNS": "150"})
    return done.exit_code, done.stdout, done.stderr


def lines(*arguments: object) -> list[dict[str, Any]]:
    status, out, err = export(*arguments)
    assert status == 0, err
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two episodes that were played to their end, and one that infrastructure failed."""
    failed = saved.result("toy/three", status="error", error={"kind": "SandboxLost", "message": "gone"})
    made = saved.write_run(tmp_path / "run", saved.result(), saved.result("toy/two", resolved=False), failed)
    saved.played(made)
    saved.played(made, "toy/two", resolved=False)
    saved.write_episode(made, [saved.started()], "toy/three")
    return made


def test_a_conversation_is_made_of_the_steps_where_no_prompt_was_kept(run: Path) -> None:
    one, two = lines(run)
    assert one["messages"] == [
        {"role": "user", "content": "Fix it."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call-1", "type": "function", "function": {"name": "view", "arguments": '{"path": "a.py"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call-1", "content": "1 x = 1"},
    ]
    assert [tool["function"]["name"] for tool in one["tools"]] == ["view"]
    facts = ("task", "agent", "llm", "resolved", "score", "max_score", "source")
    assert [one[key] for key in facts] == ["toy/one", "tool_agent", "m", True, 2, 2, "steps"]
    assert [two[key] for key in facts] == ["toy/two", "tool_agent", "m", False, 1, 2, "steps"]
    assert [line["task"] for line in lines(run, "--resolved")] == ["toy/one"]
    assert lines(run, "-p", "prompts=true") == []


def test_that_nothing_was_exported_is_said(run: Path, tmp_path: Path) -> None:
    said = "it is empty: no episode of this run is one to export"
    status, out, err = export(run, "-p", "prompts=true")
    assert (status, out) == (0, "") and said in err
    assert said in export(run, "-p", "prompts=true", "-o", tmp_path / "out.jsonl")[2]


def with_calls(tmp_path: Path, *calls: tuple[Sequence[Message], Message]) -> Path:
    """A run whose only episode asked these."""
    made = saved.write_run(tmp_path / "asked", saved.result())
    events = [saved.started(), saved.step(0, None, "Fix it.")]
    for number, (prompt, answer) in enumerate(calls, 1):
        events.append(saved.asked(prompt, answer))
        for call in answer.calls:
            events.append(saved.step(number, {**call.as_json(), "id": call.id}, "1 x = 1"))
    saved.write_episode(made, [*events, *saved.finished(saved.result())])
    return made


def test_prompts_that_go_on_are_one_conversation_word_for_word(tmp_path: Path) -> None:
    made = with_calls(tmp_path, ([SYSTEM, TASK], LOOK), ([SYSTEM, TASK, LOOK, SEEN], DONE))
    (line,) = lines(made)
    assert line["source"] == "prompts" and "part" not in line
    assert [one["role"] for one in line["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert line["messages"][2]["content"] == "I look." and line["messages"][-1]["content"] == "I am done."


def test_prompts_that_are_made_anew_are_a_conversation_each(tmp_path: Path) -> None:
    other = Message("system", "You fix bugs. You saw: 1 x = 1")
    first, second = lines(with_calls(tmp_path, ([SYSTEM, TASK], LOOK), ([other, TASK], DONE)))
    assert [(one["part"], one["parts"]) for one in (first, second)] == [(1, 2), (2, 2)]
    assert [one["role"] for one in second["messages"]] == ["system", "user", "assistant"]


def test_sharegpt_has_calls_and_answers_in_tags(tmp_path: Path) -> None:
    made = with_calls(tmp_path, ([SYSTEM, TASK], LOOK), ([SYSTEM, TASK, LOOK, SEEN], DONE))
    (line,) = lines(made, "--format", "sharegpt")
    assert [turn["from"] for turn in line["conversations"]] == ["system", "human", "gpt", "tool", "gpt"]
    call = '<tool_call>\n{"name": "view", "arguments": {"path": "a.py"}}\n</tool_call>'
    assert line["conversations"][2]["value"] == f"I look.\n{call}"
    answer = '<tool_response>\n{"name": "view", "content": "1 x = 1"}\n</tool_response>'
    assert line["conversations"][3]["value"] == answer
    assert json.loads(line["tools"])[0]["function"]["name"] == "view"


def test_a_file_is_whole_or_not_there_and_never_written_over(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    status, out, err = export(run, "-o", path)
    assert (status, out) == (0, "") and len(path.read_text().splitlines()) == 2 and "messages: " in err
    status, out, err = export(run, "-o", path, "--resolved")
    assert status == 2 and f"{path} is there already; --force replaces it" in err
    assert export(run, "-o", path, "--resolved", "--force")[0] == 0 and len(path.read_text().splitlines()) == 1
    status, out, err = export(run, "-o", run.parent, "--force")
    assert status == 2 and "holds the run itself" in err
    status, out, err = export(run, "-o", tmp_path / "missing" / "out")
    assert status == 2 and "there is no directory" in err
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out.jsonl", "run"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "mesages"], "did you mean 'messages'?"),
        (["--format", "xlsx"], "messages, sharegpt"),
        (["-p", "resolvd=true"], "resolved"),
        (["-p", "resolved=maybe"], "resolved"),
        (["-p", "a.b=1"], "a setting of a format is KEY=VALUE, without a dot"),
    ],
)
def test_what_cannot_be_meant_is_refused(run: Path, arguments: list[str], said: str) -> None:
    status, out, err = export(run, *arguments)
    assert status == 2 and out == "" and said in err and "Traceback" not in err


def test_places_that_are_no_single_run(run: Path, tmp_path: Path) -> None:
    assert export()[0] == 2 and "say which run to export, or --list" in export()[2]
    (tmp_path / "empty").mkdir()
    assert export(tmp_path / "empty")[0] == 2
    assert lines(run.parent) == lines(run)
    saved.write_run(tmp_path / "second")
    status, _, err = export(tmp_path)
    assert status == 2 and "holds 2 runs" in err and "export one at a time" in err


def test_a_plugins_format_is_listed_and_makes_a_file_or_a_directory(run: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "names_plugin.py"
    plugin.write_text(PLUGIN)
    of_plugin = ["--plugin-file", plugin, "--format", "names"]
    status, out, _ = export("--plugin-file", plugin, "--list")
    assert status == 0 and [line.split()[0] for line in out.splitlines() if line[:1] not in (" ", "")] == [
        *("format", "messages", "sharegpt", "names")
    ]
    assert export(run, *of_plugin)[:2] == (0, "run")
    assert export(run, *of_plugin, "-o", tmp_path / "x.d")[0] == 0 and (tmp_path / "x.d/name").read_text() == "run"
    status, _, err = export(run, *of_plugin, "--resolved")
    assert status == 2 and "format names has no setting `resolved`" in err


def test_tools_of_a_file_are_described_where_it_is_named(tmp_path: Path) -> None:
    plugin = tmp_path / "my tool.py"
    plugin.write_text(TOOL)
    run = saved.write_run(tmp_path / "run", saved.result())
    saved.write_episode(run, [saved.started(tools=["wc"]), saved.step(0, None, "Fix it."), *ENDED])
    record = json.loads((run / "run.json").read_text())
    record["versions"] = {"distributions": {"debug-gym-core": "0.1.0", str(plugin): "file"}}
    (run / "run.json").write_text(json.dumps(record))
    status, _, err = export(run)
    assert status == 0 and "the description of tool wc is left out: unknown tool 'wc'" in err
    assert err.endswith(f"; the run was played with --plugin-file '{plugin}'\n")
    (line,) = lines(run, "--plugin-file", plugin)
    assert [tool["function"]["description"] for tool in line["tools"]] == ["Count words."]
    record["versions"] = {"distributions": None}
    (run / "run.json").write_text(json.dumps(record))
    assert "unknown tool 'wc'" in export(run)[2] and "--plugin-file" not in export(run)[2]


def test_a_task_whose_place_leads_out_of_the_run_is_left_out(run: Path, tmp_path: Path) -> None:
    """A run may be somebody else's."""
    other = saved.write_run(tmp_path / "evil", saved.result("../run/toy/one"))
    status, out, err = export(other)
    assert (status, out) == (0, "") and "there is no trajectory; it is left out" in err
