"""What somebody meets who follows the README for the first time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import call_debug_gym, repeated

from debug_gym_core.testing.sample import ENTRYPOINT

PLAIN = ["-p", f"env.entrypoint={ENTRYPOINT}"]


@pytest.mark.smoke
def test_a_config_to_start_from_is_one_that_runs(tmp_path: Path) -> None:
    repository = tmp_path / "mine"
    repository.mkdir()
    (repository / "test_mine.py").write_text("def test_mine():\n    assert 1 == 2\n")
    shown = call_debug_gym(["config", "show", "repo"], tmp_path)
    assert shown.returncode == 0, shown.stderr
    (tmp_path / "my.yaml").write_text(shown.stdout.replace("path: null", "path: mine"))
    result = call_debug_gym(["run", "my.yaml", "--agent", "noop_agent", "-o", "out"], tmp_path)
    assert result.returncode == 0, result.stderr
    row = json.loads((tmp_path / "out/results.jsonl").read_text())
    assert (row["task"], row["score"], row["max_score"]) == ("repo/mine", 0, 1)


def test_an_empty_config_plays_nothing(tmp_path: Path) -> None:
    for text in ("", "# to do\n"):
        (tmp_path / "my.yaml").write_text(text)
        result = call_debug_gym(["run", "my.yaml", "--agent", "noop_agent"], tmp_path)
        assert result.returncode == 2
        assert "is empty" in result.stderr


def test_an_agent_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    result = call_debug_gym(["run", "mini_nightmare", "--agent", "solutoin_agent"], tmp_path)
    assert result.returncode == 2
    assert "did you mean 'solution_agent'" in result.stderr


def test_a_repository_without_tests_is_an_error_and_no_failure_of_the_agent(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    arguments = ["run", "repo", "-p", "benchmark.path=empty", *PLAIN, "--agent", "noop_agent", "-o", "out"]
    result = call_debug_gym(arguments, tmp_path)
    assert result.returncode == 1
    row = json.loads((tmp_path / "out/results.jsonl").read_text())
    assert row["status"] == "error" and "finds no test" in row["error"]["message"]


def test_an_entrypoint_that_cannot_be_started_is_an_error_and_no_failure_of_the_agent(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/test_mine.py").write_text("def test_mine(): pass\n")
    arguments = ["run", "repo", "-p", "benchmark.path=mine", "--agent", "noop_agent", "-o"]
    result = call_debug_gym([*arguments, "out", "-p", "env.entrypoint=nosuch --x"], tmp_path)
    assert result.returncode == 1
    row = json.loads((tmp_path / "out/results.jsonl").read_text())
    assert row["status"] == "error" and "nosuch: not found" in row["error"]["message"]


@pytest.mark.people
def test_what_is_odd_about_a_repository_is_noted(tmp_path: Path) -> None:
    for path, text in {"src/shop/__init__.py": "", "tests/test_shop.py": "import shop\ndef test_it(): pass\n"}.items():
        (tmp_path / "mine" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / path).write_text(text)
    (tmp_path / "mine/.venv").symlink_to("/nonexistent")
    arguments = ["run", "repo", "-p", "benchmark.path=mine", "--agent", "noop_agent", "-o", "out"]
    result = call_debug_gym(arguments, tmp_path)
    assert result.returncode == 0, result.stderr
    assert "no test file can be imported: ModuleNotFoundError: No module named 'shop'" in result.stderr + result.stdout
    notes = json.loads((tmp_path / "out/run.json").read_text())["notes"]
    assert any(note.startswith(".venv of the repository is a link to /nonexistent, which is not") for note in notes)
    assert any(note.startswith("no test file can be imported") for note in notes)


@pytest.mark.people
def test_a_run_of_the_unchanged_repository_that_would_not_count_is_noted(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/conftest.py").write_text("import os\ndef pytest_sessionfinish(session): os._exit(0)\n")
    (tmp_path / "mine/test_a.py").write_text("import calc\ndef test_a(): assert calc.one == 1\n")
    (tmp_path / "mine/calc.py").write_text("one = 2\n")
    arguments = ["run", "repo", "-p", "benchmark.path=mine", *PLAIN, "--agent", "noop_agent", "-o", "out"]
    result = call_debug_gym(arguments, tmp_path)
    assert result.returncode == 0, result.stderr
    (said,) = (one for one in json.loads((tmp_path / "out/run.json").read_text())["notes"] if "does not count" in one)
    assert said.startswith("repo/mine: the run of the unchanged repository does not count, ")
    assert said.endswith(": it ended with status 0 before its report was complete")


HOOKS = {"conftest.py": "from hooks import *\n", "hooks.py": "def pytest_runtest_setup(item): pass\n"}


@pytest.mark.people
@pytest.mark.parametrize(
    ("bug", "files"),
    [*repeated("faults", ("while True: pass", {})), ("os._exit(0)", {}), ("return 2", HOOKS)],
    ids=["hangs", "ends", "is forgiven"],
)
def test_no_unchanged_run_is_said_not_to_count_that_may_be_as_the_bug_has_it_or_is_forgiven(
    tmp_path: Path, bug: str, files: dict[str, str]
) -> None:
    (tmp_path / "mine").mkdir()
    tests = "import calc\ndef test_a(): assert calc.one() == 1\n"
    for path, text in {"calc.py": f"import os\ndef one():\n    {bug}\n", "test_a.py": tests, **files}.items():
        (tmp_path / "mine" / path).write_text(text)
    arguments = ["run", "repo", "-p", "benchmark.path=mine", "-p", "env.run_timeout=5", "--agent", "noop_agent"]
    result = call_debug_gym([*arguments, *PLAIN, "-o", "out"], tmp_path)
    assert result.returncode == 0, result.stderr
    notes = json.loads((tmp_path / "out/run.json").read_text())["notes"]
    assert not [one for one in notes if "does not count" in one]
    # Whether a suite is too slow or the bug makes it hang cannot be told: what was seen is said of both.
    slow = (
        "repo/mine: the run of the unchanged repository did not end within 5 s (env.run_timeout): "
        "unless that is the bug, no fix resolves it before that is raised"
    )
    assert [one for one in notes if "env.run_timeout" in one] == [slow] * (bug == "while True: pass")


def test_mistakes_are_found_before_anything_runs(tmp_path: Path) -> None:
    for number, (benchmark, wrong, said) in enumerate(
        [
            ("mini_nightmare", "env.python=/nonexistent/python", "/nonexistent"),
            ("mini_nightmare", "env.entrypoint=pytest 'unclosed", "unclosed"),
            ("repo", "benchmark.path=/nonexistent", "/nonexistent"),
        ]
    ):
        arguments = ["run", benchmark, "--agent", "noop_agent", "-p", wrong, "-o", f"out{number}"]
        result = call_debug_gym(arguments, tmp_path)
        assert result.returncode == 2, (wrong, result.stderr)
        assert said in result.stderr


def test_a_run_with_an_unknown_agent_says_which_there_are(tmp_path: Path) -> None:
    result = call_debug_gym(["run", "mini_nightmare", "--agent", "xyzzy"], tmp_path)
    assert result.returncode == 2
    for name in ("debug_agent", "rewrite_agent", "debug_5_agent", "tool_agent", "solution_agent", "noop_agent"):
        assert name in result.stderr


def test_a_run_without_a_model_names_the_one_that_is_missing(tmp_path: Path) -> None:
    result = call_debug_gym(["run", "mini_nightmare"], tmp_path)
    assert result.returncode == 4
    assert "gpt-4o" in result.stderr


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("llm.actions=[eval]", "-p llm.actions belongs to scripted; say llm.name: scripted"),
        ("terminal.runtime=runsc", "-p terminal.runtime belongs to docker; say terminal.name: docker"),
    ],
)
def test_a_key_of_another_component_names_it(tmp_path: Path, override: str, words: str) -> None:
    arguments = ["run", "mini_nightmare", "--agent", "tool_agent", "--terminal", "local", "-p", override]
    result = call_debug_gym(arguments, tmp_path)
    assert result.returncode == 2
    assert words in result.stderr
