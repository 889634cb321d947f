"""The grep tool in a live environment."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from debug_gym_core import UsageError
from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.tasks.task import Task
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.observation import TEXT_LIMIT, Observation
from debug_gym_tool_grep import CONTEXT, Grep
from debug_gym_tool_view import View

Use = Callable[..., Observation]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RepoEnv]:
    root = tmp_path_factory.mktemp("repo")
    (root / "src").mkdir()
    (root / "src" / "app.py").write_text("import os\n\n\ndef total(prices):\n    return sum(prices)\n")
    (root / "src" / "notes.txt").write_text("the total is wrong\n")
    (root / "test_app.py").write_text("from src.app import total\n\nassert total([1]) == 1\n")
    (root / ".debugreadonly").write_text("test_*.py\n")
    (root / ".debugignore").write_text("secret*\n")
    (root / "secret").mkdir()
    (root / "secret" / "answer.py").write_text("total = 42\n")
    (root / "secret.py").write_text("total = 42\n")
    task = Task("tests", "grep", root, entrypoint="python -c pass", max_score=1)
    with_grep = RepoEnv(task, [Grep(timeout=1), View()], "local", trusted=True)
    with_grep.reset(seed=0)
    yield with_grep
    with_grep.close()


@pytest.fixture
def env(live: RepoEnv) -> Iterator[RepoEnv]:
    yield live
    for entry in list(live.session.walk(depth=1)):
        if entry.path.startswith("new"):
            live.session.remove(entry.path)


@pytest.fixture
def use(env: RepoEnv) -> Use:
    def act(pattern: str, **arguments: object) -> Observation:
        env.step(ToolCall("grep", {"pattern": pattern, **arguments}))
        return env.last_observations[0]

    return act


def test_matches_are_grouped_by_file(use: Use) -> None:
    seen = use("total")
    assert seen.text == (
        "4 lines match in 3 files\n\n"
        "test_app.py (read-only)\n1:from src.app import total\n3:assert total([1]) == 1\n\n"
        "src/app.py\n4:def total(prices):\n\n"
        "src/notes.txt\n1:the total is wrong"
    )
    assert seen.data == {
        "lines": 4,
        "files": 3,
        "searched": seen.data["searched"],
        "matches": {"test_app.py": [1, 3], "src/app.py": [4], "src/notes.txt": [1]},
        "complete": True,
    }


def test_a_directory_a_file_and_a_glob(use: Use) -> None:
    assert use("total", path="src").text.startswith("2 lines match in 2 files below src\n")
    assert use("total", path="/testbed/src/app.py").text == (
        "1 line matches in src/app.py\n\nsrc/app.py\n4:def total(prices):"
    )
    assert list(use("total", glob="*.py").data["matches"]) == ["test_app.py", "src/app.py"]
    assert list(use("total", glob="!test_*").data["matches"]) == ["src/app.py", "src/notes.txt"]
    assert list(use("total", path="src/notes.txt", glob="*.py").data["matches"]) == ["src/notes.txt"]


def test_the_text_form(env: RepoEnv) -> None:
    text = env.step(r"grep 'def \w+\(' src *.py context=1")[0]["text"]
    assert text.endswith("src/app.py\n3-\n4:def total(prices):\n5-    return sum(prices)")
    assert env.step("grep <<<\ntotal\n>>>")[0]["text"].startswith("4 lines match")


def test_separate_places_are_separated_where_there_is_context(env: RepoEnv, use: Use) -> None:
    env.workspace.write_text("new.txt", "".join(f"{number}\n" for number in range(1, 30)))
    assert use("^(3|4|20)$", path="new.txt", context=1).text.endswith("\n2-2\n3:3\n4:4\n5-5\n--\n19-19\n20:20\n21-21")


def test_nothing_found_says_where_it_was_looked_for(use: Use) -> None:
    assert re.fullmatch(r"no line matches 'nowhere' in \d files", use("nowhere").text)
    assert use("nowhere", path="src").text == "no line matches 'nowhere' in 2 files below src"
    assert use("nowhere", path="src/app.py").text == "no line matches 'nowhere' in src/app.py"
    hint = "; regex=false would take the pattern as plain text"
    assert use("total(prices)").text.endswith(hint)
    assert use("total(prices)", regex=False).data["matches"] == {"src/app.py": [4]}
    assert use("total", glob="*.rs").text == "no file matches the glob '*.rs'"


def test_what_is_not_shown_is_counted_and_the_next_call_named(env: RepoEnv, use: Use) -> None:
    for number in range(15):
        env.workspace.write_text(f"new/{number:02}.txt", "match\n" * 20)
    seen = use("match", max_results=30)
    assert seen.text.startswith("300 lines match in 15 files\n\nnew/00.txt\n1:match\n")
    last = seen.text.splitlines()[-1]
    assert last.startswith("[270 more lines match: new/01.txt 10, new/02.txt 20, ") and ", ...; narrow pattern" in last
    assert last.endswith("or max_results=300]")
    assert not seen.data["complete"]
    assert use("match", max_results=300).data["complete"]


def test_the_text_is_bounded_whatever_is_found(env: RepoEnv, use: Use) -> None:
    env.workspace.write_text("new.txt", "x\x00\n".replace("\x00", "\x01") * 200 + ("\x01" * 5000 + "\n") * 200)
    for arguments in ({}, {"max_results": 10**9}, {"context": CONTEXT, "max_results": 1000}):
        seen = use("x|\x01", **arguments)
        assert len(seen.text) < TEXT_LIMIT
        assert "lines match: new.txt" in seen.text.splitlines()[-1]
    assert "max_results" not in use("x|\x01", max_results=10**9).text  # that would show no more


def test_long_lines_odd_bytes_and_binary_files(env: RepoEnv, use: Use) -> None:
    env.workspace.write_bytes("new.txt", b"a" * 1000 + b"total" + b"b" * 1000 + b"\ncaf\xe9 total\x0c\r\n")
    env.workspace.write_bytes("new.bin", b"\0total\n")
    seen = use("total", glob="new*")
    lines = seen.text.splitlines()
    assert re.fullmatch(r"1:\[900 characters \.\.\.\] a{100}totalb{195} \[\.\.\. 805 characters\]", lines[3])
    assert lines[4:] == [r"2:caf\xe9 total\x0c", "", "[binary files match, not shown: new.bin]"]
    assert seen.text.startswith("2 lines match in 2 files")


def test_python_source_is_shown_in_the_encoding_that_it_declares(env: RepoEnv, use: Use) -> None:
    env.workspace.write_bytes("new.py", b"# coding: latin-1\n# caf\xe9 \x85\n")
    env.workspace.write_bytes("new_ascii.py", b"# coding: ascii\n# \xc3\xa9\n")
    assert use("é", glob="new*").text == "1 line matches in 1 file\n\nnew.py\n2:# café " + r"\x85"
    assert use("^# [^c]", glob="new_*").text.endswith(r"2:# \xc3\xa9")


def test_numbers_are_those_of_view(env: RepoEnv, use: Use) -> None:
    env.workspace.write_bytes("new.txt", "\ufeffa\fb\rc\u2028d\x1ce\r\nmatch\n\nmatch".encode())
    for number in use("match", glob="new.txt").data["matches"]["new.txt"]:
        shown = env.step(ToolCall("view", {"path": "new.txt", "start": number, "end": number}))[0]["text"]
        assert shown.splitlines()[1].split() == [str(number), "match"]


def test_a_search_that_takes_too_long_says_what_to_do(env: RepoEnv, use: Use) -> None:
    env.workspace.write_bytes("new.txt", b"a" * 40 + b"!\n")
    started = time.monotonic()
    seen = use("(t|a|aa)+$")
    assert time.monotonic() - started < 30
    assert seen.error and "stopped after 1 s in new.txt" in seen.text and "(a+)+" in seen.text
    assert use("total").data["complete"]


def test_a_setting_that_is_wrong_is_refused() -> None:
    with pytest.raises(UsageError, match="timeout"):
        Grep(timeout=0)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"pattern": ""}, "the pattern is empty"),
        ({"pattern": "foo("}, "missing ), unterminated subpattern at character 4, after 'foo'\nto search for these"),
        ({"pattern": "foo("}, '{"name": "grep", "arguments": {"pattern": "foo(", "regex": false}}'),
        ({"pattern": "["}, "at character 1\n"),
        ({"pattern": "a\nb"}, "several lines"),
        ({"pattern": "a" * 20_000}, "20000 characters"),
        ({"context": -1}, "context is -1; it must be 0 to 20 lines"),
        ({"context": 21}, "context is 21"),
        ({"max_results": 0}, "max_results is 0"),
        ({"glob": "!"}, "is not a glob"),
        ({"path": "secret"}, "secret is ignored"),
        ({"path": "secret/answer.py"}, "ignored"),
        ({"path": "../x"}, "outside the workspace"),
        ({"path": "nothing"}, "there is no file nothing"),
        ({"regex": "maybe"}, "regex"),
        ({"patern": "x"}, "unknown argument 'patern'"),
    ],
)
def test_what_cannot_be_searched_is_an_error_with_the_reason(
    env: RepoEnv, arguments: dict[str, object], reason: str
) -> None:
    env.step(ToolCall("grep", {"pattern": "x", **arguments}))
    seen = env.last_observations[0]
    assert seen.error and reason in seen.text


odd = st.text(st.sampled_from("at(o[.*+?|)\\{1,}^$\n\r\0\ud800\udce9é"), max_size=12)


@examples(150)
@given(odd, st.one_of(st.none(), odd, st.sampled_from(["*", "**", "{a,b}", "[", "!*", "a/**/b", "/"])), st.booleans())
def test_any_pattern_and_glob_is_answered(env: RepoEnv, pattern: str, glob: str | None, regex: bool) -> None:
    text = env.step(ToolCall("grep", {"pattern": pattern, "glob": glob, "regex": regex}))[0]["text"]
    assert text and "Traceback" not in text and "failed:" not in text
    assert "total = 42" not in text and "secret/" not in text
    text.encode()


def test_ignored_files_are_not_even_named(env: RepoEnv, use: Use, tmp_path: Path) -> None:
    env.session.run(["ln", "-s", "secret/answer.py", "new-link.py"])
    env.session.run(["ln", "-s", str(tmp_path), "new-out"])
    (tmp_path / "outside.py").write_text("total\n")
    seen = use("total|42", glob="*")
    assert "secret" not in seen.text and "42" not in seen.text and "outside" not in seen.text
    assert "ignored" in use("42", path="new-link.py").text
    assert "leads out of the workspace" in use("total", path="new-out").text
