"""Scripts: what they may be, and what is said of those that are none."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from debug_gym_core import Message, ToolCall
from debug_gym_core.errors import UsageError
from debug_gym_llm_scripted import Scripted, read_script


def played(llm: Scripted) -> list[ToolCall]:
    """All calls, until it says that it is done."""
    calls: list[ToolCall] = []
    while found := llm.complete([Message("user", "go on")], []).message.calls:
        calls += found
    return calls


def test_actions_are_played_in_order_then_it_is_done() -> None:
    llm = Scripted(actions=["eval", {"name": "view", "arguments": {"path": "a.py"}}, {"name": "submit"}])
    assert [(call.name, dict(call.arguments)) for call in played(llm)] == [
        ("eval", {}),
        ("view", {"path": "a.py"}),
        ("submit", {}),
    ]
    assert llm.complete([], []).message.content == "The script is played to its end."


def test_a_trajectory_is_a_script(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.jsonl"
    events = [
        {"kind": "start"},
        {"kind": "step", "action": {"name": "eval", "arguments": {}}},
        {"kind": "step", "action": None},
        {"kind": "step", "action": {"name": "pdb", "arguments": {"command": "n\u2028"}}},
        {"kind": "end"},
    ]
    path.write_text("\n".join(json.dumps(event, ensure_ascii=False) for event in events) + "\n\n", encoding="utf-8")
    assert [call.name for call in played(Scripted(script=path))] == ["eval", "pdb"]
    with pytest.raises(UsageError, match=re.escape(f"did you mean {path}?")):
        Scripted(script=tmp_path)
    path.write_text(path.read_text().rstrip() + '\n{"kind": "step", "act')
    assert [call.name for call in played(Scripted(script=path))] == ["eval", "pdb"]


def test_yaml_is_a_script(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("- eval\n- name: view\n  arguments: {path: a.py}\n- |\n  rewrite a.py 1 <<<\n  x\n  >>>\n")
    assert read_script(path) == [
        "eval",
        {"name": "view", "arguments": {"path": "a.py"}},
        "rewrite a.py 1 <<<\nx\n>>>\n",
    ]


def test_numbers_of_a_script_are_read_as_those_of_a_config(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("- {name: view, arguments: {start: 010, end: 12:30, ratio: 1e-3, day: 2024-01-02}}\n")
    (call,) = played(Scripted(script=path))
    assert call.arguments == {"start": 10, "end": "12:30", "ratio": 0.001, "day": "2024-01-02"}


def test_a_block_is_taken_with_all_its_characters(tmp_path: Path) -> None:
    """Lines end at line feeds alone; code may hold other characters that part lines."""
    path = tmp_path / "actions.txt"
    path.write_bytes("rewrite a.py 1 <<<\r\nx = 1\x0c\ny = 'a\u2028b'\n>>>\neval\n".encode())
    assert read_script(path) == ["rewrite a.py 1 <<<\nx = 1\x0c\ny = 'a\u2028b'\n>>>", "eval"]


def test_text_as_it_is_typed_is_a_script(tmp_path: Path) -> None:
    path = tmp_path / "actions.txt"
    path.write_text(
        "# look first\neval\n\nview a.py 1 3\nrewrite a.py 1 <<<\n# x\n\n>>>\n"
        'rewrite a.py 2\n<<<\ny\n>>>\n{"name": "submit"}'
    )
    assert read_script(path) == [
        "eval",
        "view a.py 1 3",
        "rewrite a.py 1 <<<\n# x\n\n>>>",
        "rewrite a.py 2\n<<<\ny\n>>>",
        '{"name": "submit"}',
    ]
    path.write_text("- eval\n- view a.py\n")
    assert read_script(path) == ["eval", "view a.py"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("open.txt", b"eval\nrewrite a.py 1 <<<\nx\n", "open.txt: line 2: the text after <<< has no end"),
        ("missing.yaml", None, "missing.yaml: No such file or directory"),
        ("map.yaml", b"eval: 1\n", "map.yaml must be a list of actions"),
        ("numbers.yaml", b"- 1\n- 2\n", "numbers.yaml must be a list of actions"),
        ("bad.yaml", b"- [\n", "bad.yaml: while parsing"),
        ("bad.jsonl", b"{\n", "bad.jsonl: Expecting property name"),
        ("list.jsonl", b"[]\n", "list.jsonl: a line is no event of a trajectory"),
        ("number.jsonl", b'{"kind": "step", "action": 5}\n', "number.jsonl must be a list of actions"),
        ("bytes.yaml", b"\xff\xfe\xff", "bytes.yaml: 'utf-8' codec can't decode"),
        ("nameless.yaml", b"- {arguments: {}}\n", "action 1 has no name: {'arguments': {}}"),
    ],
)
def test_what_is_no_script_is_said(tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as caught:
        Scripted(script=tmp_path / name)
    assert str(caught.value).startswith("scripted: ") and said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("settings", [{}, {"actions": ["eval"], "script": "x.yaml"}])
def test_either_actions_or_a_file(settings: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"either llm\.actions or llm\.script"):
        Scripted(**settings)
