"""What `debug-gym fix` tells of its tests, its model and itself, and how it is stopped."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pexpect
import pytest
from fixing import CALC, CTRL_C, RIGHT, TESTS, WRONG, at_a_terminal, ended, fixed, state, words
from support import call_debug_gym, run_debug_gym

from debug_gym_core import ToolCall
from debug_gym_core.cli.own_tests import Standing
from debug_gym_core.config.model import Config
from debug_gym_core.tasks.results import Grade
from debug_gym_core.testing.chat_server import chat_reply
from debug_gym_core.testing.model_server import ModelServer, Reply, Request
from debug_gym_core.usage import Usage


@pytest.mark.people
def test_ctrl_c_while_it_plays_leaves_all_as_it_was_and_says_how_to_go_on(project: Path, tmp_path: Path) -> None:
    before = state(project)
    ended_by_hand, asked_again = threading.Event(), threading.Event()

    def answer(request: Request) -> Reply:
        if len(request.body["messages"]) == 2:
            return chat_reply("So:", [ToolCall(RIGHT["name"], RIGHT["arguments"], "1")])
        if not ended_by_hand.is_set():
            asked_again.set()
            ended_by_hand.wait(60)
        return chat_reply("That is all.")

    with ModelServer(answer) as server:
        entry = {"model": "served", "endpoint": f"{server.url}/v1", "api_key": "none"}
        (tmp_path / "llm.yaml").write_text(json.dumps({"mine": entry}))
        asking = ["fix", str(project), "--llm", "mine", "--llm-config", str(tmp_path / "llm.yaml")]
        asking += ["--terminal", "bubblewrap"]
        child = at_a_terminal(tmp_path, asking)
        child.expect("a \\+ b")
        while not asked_again.is_set():
            child.expect(pexpect.TIMEOUT, timeout=0.1)  # reads: who writes to a full terminal waits
        child.send(CTRL_C)
        child.expect("stopping; ")
        ended_by_hand.set()
        said, status = ended(child)
        assert status == 130 and state(project) == before
        # What it says is true: the same in that directory goes on, pays for no answer twice, and asks what to apply.
        said = said.replace("go on with:\r\n", "go on with: ").replace("\r\n", "")
        directory = said.split("stopped; go on with: the same debug-gym fix, with -o ", 1)[1]
        assert (tmp_path / directory / "repo" / project.name / "trajectory.jsonl").is_file(), said
        child = at_a_terminal(tmp_path, [*asking, "-o", directory])
        child.expect(r"Apply it to .*\[y/N\]: ")
        child.sendline("y")
        assert ended(child)[1] == 0 and state(project) == fixed(before)
        # (The answer that was under way may have come in time to be kept.)
        asked = [len(request.body["messages"]) for request in server.requests]
        assert asked[0] == 2 and set(asked[1:]) == {4} and len(asked) <= 3, asked


@pytest.mark.people
def test_a_command_that_is_judged_by_its_exit_status(project: Path) -> None:
    before = state(project)
    command = "cd . && python -m pytest -q"
    done = run_debug_gym(words(project, RIGHT, more=("--entrypoint", command, "--apply")), project.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"`{command}` fails (exit status 1)\n")
    assert f"\n`{command}` passes with this change, on a clean copy (1 step, " in done.stdout
    assert state(project) == fixed(before)


@pytest.mark.people
def test_a_command_that_goes_on_failing_and_one_that_passes(project: Path) -> None:
    command = "sh -c 'python -m pytest -q; exit 2'"
    done = run_debug_gym(words(project, more=("--entrypoint", command)), project.parent)
    assert done.stdout.startswith(f"`{command}` fails (exit status 2)\n"), done.stdout + done.stderr
    assert done.returncode == 1 and f"\n`{command}` fails and nothing was changed (0 steps, " in done.stdout
    assert "of 0 test" not in done.stdout and "of 1 test" not in done.stdout
    done = run_debug_gym(words(project, more=("--entrypoint", "echo fine")), project.parent)
    assert (done.returncode, done.stdout) == (0, "nothing to fix: `echo fine` passes\n")


@pytest.mark.people
def test_a_command_that_cannot_be_started(project: Path) -> None:
    for command in ("mkae test", "cd . && mkae test"):  # which is found without a run, and by one
        done = run_debug_gym(words(project, more=("--entrypoint", command)), project.parent)
        assert done.returncode == 1 and done.stdout == "", done.stdout + done.stderr
        assert f"`{command}` cannot be started, even in the unchanged repository: " in done.stderr


@pytest.mark.people
def test_a_first_run_that_reaches_its_timeout(project: Path) -> None:
    hangs = "def test_hang():\n    import time; time.sleep(600)\n"
    (project / "test_calc.py").write_text(f"def test_a():\n    assert 0\n\n{hangs}\ndef test_c():\n    pass\n")
    done = run_debug_gym(words(project, more=("-p", "env.run_timeout=3")), project.parent)
    first = done.stdout.partition("\n")[0]
    assert first == (
        "1 of 3 tests of project fail: test_calc.py::test_a; 2 have no result: test_calc.py::test_hang, "
        "test_calc.py::test_c; the run reached its timeout of 3 s (env.run_timeout)"
    )
    assert done.stderr.startswith("running the tests of project as they are: python -m pytest -q\n")
    assert "test_calc.py::test_c; it reached its timeout (0 steps, " in done.stdout
    done = run_debug_gym(words(project, more=("--entrypoint", "sleep 600", "-p", "env.run_timeout=1")), project.parent)
    assert done.stdout.startswith("`sleep 600` fails; the run reached its timeout of 1 s (env.run_timeout)\n")


@pytest.mark.people
def test_one_test(project: Path) -> None:
    (project / "test_calc.py").write_text(TESTS.partition("\n\n\ndef test_zero")[0] + "\n")
    done = run_debug_gym(words(project, WRONG), project.parent)
    assert done.stdout.startswith("1 of 1 test of project fails: test_calc.py::test_add\n"), done.stdout
    assert "\n1 of 1 test fails with this change: test_calc.py::test_add (1 step, " in done.stdout, done.stdout
    done = run_debug_gym(words(project, RIGHT, more=("--apply",)), project.parent)
    assert "\nthe test passes with this change, on a clean copy" in done.stdout
    done = run_debug_gym(words(project), project.parent)
    assert done.stdout == "nothing to fix: the test of project passes\n"


@pytest.mark.people
def test_a_run_that_fails_though_no_test_does(project: Path) -> None:
    (project / "calc.py").write_text(CALC.replace("-", "+"))
    (project / "conftest.py").write_text("def pytest_sessionfinish(session):\n    session.exitstatus = 1\n")
    done = run_debug_gym(words(project), project.parent)
    why = "its exit status is 1 although no test failed"
    assert done.stdout.startswith(f"no test of project fails; {why}\n"), done.stdout + done.stderr
    assert f"\nno test fails and nothing was changed; {why} (0 steps, " in done.stdout and done.returncode == 1


@pytest.mark.people
def test_hooks_of_the_projects_own_are_no_reason(project: Path) -> None:
    (project / "conftest.py").write_text("from hooks import *\n")
    (project / "hooks.py").write_text("def pytest_runtest_setup(item): pass\n")
    done = run_debug_gym(words(project, WRONG), project.parent)
    assert done.stdout.startswith("1 of 2 tests of project fail: test_calc.py::test_add\n"), done.stdout + done.stderr
    assert "\n1 of 2 tests fail with this change: test_calc.py::test_add (1 step, " in done.stdout, done.stdout


def test_hooks_that_a_change_added_are_told_where_no_test_fails() -> None:
    added = "a hook pytest_runtest_setup was added by calc"
    standing = Standing.of_grade("pytest", Grade(False, 0, 2, {"a": "passed", "b": "skipped"}, "clean", reason=added))
    assert not standing.passes
    assert standing.about_failing(with_it=" with this change") == f"no test fails with this change; {added}"


@pytest.mark.people
def test_a_test_that_skips_itself_and_counts(project: Path) -> None:
    (project / "test_calc.py").write_text(
        TESTS.replace("def test_zero", "def test_zero():\n    import pytest; pytest.skip()\n\n\ndef test_two")
    )
    done = run_debug_gym(words(project, RIGHT), project.parent)
    assert done.stdout.startswith("1 of 3 tests of project fail: test_calc.py::test_add\n"), done.stdout
    assert done.returncode == 0 and "all 3 tests pass with this change" in done.stdout, done.stdout


@pytest.mark.people
def test_what_a_terminal_would_obey_is_shown_as_text(project: Path) -> None:
    code = "    return a + b  # \x1b[2J\x07 red\n"
    rewrite = {"name": "rewrite", "arguments": {**RIGHT["arguments"], "new_code": code}}  # type: ignore[dict-item]
    done = run_debug_gym(words(project, rewrite), project.parent)
    assert "+    return a + b  # \\x1b[2J\\x07 red\n" in done.stdout.rpartition("diff --git")[2]


@pytest.mark.people
def test_a_key_is_left_nowhere(project: Path, tmp_path: Path) -> None:
    """One that is written in llm.yaml, and a service that repeats it; what the sandbox has is seen in the requests."""
    key = "sk-planted-0123456789"
    look = "env; cat /proc/*/environ | tr '\\0' '\\n'; cat ~/llm.yaml ../llm.yaml; echo looked"
    turns = [[ToolCall("bash", {"command": look}, "1")], [ToolCall(RIGHT["name"], RIGHT["arguments"], "2")]]

    def answer(request: Request) -> Reply:
        assert request.headers["authorization"] == f"Bearer {key}"
        asked = sum(message["role"] == "assistant" for message in request.body["messages"])
        return chat_reply(f"Your key is {key}.", turns[asked] if asked < len(turns) else [])

    config = tmp_path / "llm.yaml"
    with ModelServer(answer) as server:
        config.write_text(json.dumps({"mine": {"model": "m", "endpoint": f"{server.url}/v1", "api_key": key}}))
        asking = ["fix", project, "--llm", "mine", "--llm-config", config, "--terminal", "bubblewrap", "--apply", "-vv"]
        done = run_debug_gym(asking, tmp_path, {"OPENAI_API_KEY": key, "LLM_CONFIG_FILE_PATH": str(config)})
        seen = next(m["content"] for m in server.requests[1].body["messages"] if m["role"] == "tool")
    assert done.returncode == 0 and "Your key is ***." in done.stdout, done.stdout + done.stderr
    assert "PATH=" in seen and "looked" in seen and key not in seen and "***" not in seen
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path != config]
    assert {"run.json", "trajectory.jsonl", "log.txt", "spending.jsonl", "calc.py"} <= {path.name for path in files}
    assert [path for path in files if key.encode() in path.read_bytes()] == []
    assert key not in done.stdout + done.stderr


@pytest.mark.people
def test_what_it_may_cost(project: Path, tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        asked = len(request.body["messages"])
        return chat_reply("", [ToolCall("listdir", {}, str(asked))], usage=Usage(1000, 0))

    config = tmp_path / "llm.yaml"
    with ModelServer(answer) as server:
        entry = {"model": "m", "endpoint": f"{server.url}/v1", "api_key": "none", "max_tokens": 10}
        asking = ["fix", project, "--llm", "mine", "--llm-config", config, "--terminal", "bubblewrap"]
        config.write_text(json.dumps({"mine": entry}))
        done = run_debug_gym([*asking, "--max-cost", "0.25"], tmp_path)
        assert done.returncode == 4 and "mine has no prices" in done.stderr and not server.requests
        config.write_text(json.dumps({"mine": {**entry, "prices": {"prompt": 100, "completion": 0}}}))
        done = run_debug_gym([*asking, "--max-cost", "0.25"], tmp_path)
        assert done.returncode == 1 and len(server.requests) == 3, done.stdout + done.stderr
        said, _, command = done.stderr.splitlines()[-1].partition("give it more: the same debug-gym fix, with -o ")
        assert "the run has spent what it may (run.max_cost)" in said and command.endswith(" -p run.max_cost=MORE")
        directory = command.removesuffix(" -p run.max_cost=MORE")
        done = run_debug_gym([*asking, "-o", directory, "-p", "run.max_cost=0.35"], tmp_path)
        assert done.returncode == 1 and len(server.requests) == 4, done.stdout + done.stderr


@pytest.mark.people
def test_what_is_wrong_is_said_in_a_line(project: Path, tmp_path: Path) -> None:
    def says(*arguments: object) -> tuple[int, str]:
        done = run_debug_gym(["fix", *arguments], tmp_path)
        return done.returncode, done.stderr

    assert says("nowhere") == (2, "error: nowhere: there is no such directory\n")
    assert says(__file__) == (2, f"error: {__file__} is no directory: fix takes that of a repository\n")
    status, said = says(project)
    assert status == 4 and "debug-gym llm init" in said
    (tmp_path / "llm.yaml").write_text("one: {model: m, endpoint: 'http://127.0.0.1:9'}\ntwo: {model: m}\n")
    assert says(project, "--llm-config", "llm.yaml") == (2, "error: say which model with --llm: one, two\n")
    scripted = ("--llm", "scripted", "-p", "llm.actions=[]")
    where = f"error: fix works on its PATH, {project}: leave out benchmark.name and benchmark.path\n"
    assert says(project, *scripted, "-p", "benchmark.path=/tmp") == (2, where)
    assert says(project, *scripted, "-p", "benchmark={name: mini_nightmare}") == (2, where)
    once = "error: run.repeats is 2: fix plays once, for one change; leave it out\n"
    assert says(project, *scripted, "-p", "run.repeats=2") == (2, once)
    nothing = "error: the entrypoint is empty: say how the tests run, or leave it out for python -m pytest -q\n"
    assert says(project, *scripted, "--entrypoint", " ") == (2, nothing)
    assert says(project, *scripted, "--entrypoint", "") == (2, nothing)
    empty = tmp_path / "empty"
    empty.mkdir()
    status, said = says(empty, "--llm", "scripted", "-p", "llm.actions=[]")
    assert status == 1 and said.splitlines()[-1] == (
        "error: `python -m pytest -q` finds no test that could pass: no tests collected; where there are no tests, say "
        "how the program that fails is run, as in --entrypoint 'python main.py'"
    )


def test_what_is_missing_is_said_before_the_tests_are_run(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "llm.yaml").write_text("one: {model: m}\n")
    done = call_debug_gym(["fix", project, "--llm-config", "llm.yaml"], tmp_path)
    assert (done.returncode, done.stdout) == (4, "") and "one (m): there is no key" in done.stderr
    done = call_debug_gym(["fix", project, "--llm", "scripted"], tmp_path)
    assert (done.returncode, done.stdout) == (2, "") and "say what to play" in done.stderr
    home = {"XDG_STATE_HOME": str(tmp_path / "llm.yaml")}
    done = call_debug_gym(["fix", project, "--agent", "noop_agent"], tmp_path, home)
    said = f"error: {tmp_path}/llm.yaml/debug-gym/fix: Not a directory\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("full", r"full is not empty ('notes.txt') and holds no run; name a new directory"),
        ("link", "link is a link to gone, which is not there"),
        ("other", "other holds a run with another config: "),
    ],
)
def test_an_output_that_no_run_can_be_kept_in_is_said_before_the_tests_are_run(
    project: Path, tmp_path: Path, output: str, said: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").touch()
    (tmp_path / "link").symlink_to("gone")
    kept = {"id": "x", "schema_version": 1, "config": Config().model_dump(mode="json")}
    (tmp_path / "other").mkdir()
    (tmp_path / "other/run.json").write_text(json.dumps(kept))
    done = call_debug_gym(["fix", project, "--agent", "noop_agent", "-o", output], tmp_path)
    assert (done.returncode, done.stdout) == (2, "") and f"error: {said}" in done.stderr
    assert json.loads((tmp_path / "other/run.json").read_text()) == kept and not (tmp_path / "gone").exists()


@pytest.mark.people
def test_the_only_model_is_taken(project: Path, tmp_path: Path) -> None:
    (tmp_path / "llm.yaml").write_text(
        "one: {model: m, endpoint: 'http://127.0.0.1:9', max_retries: 0, api_key: none}\n"
    )
    done = run_debug_gym(["fix", project, "--llm-config", "llm.yaml"], tmp_path)
    assert done.returncode == 1 and "Connection" in done.stdout + done.stderr, done.stdout + done.stderr


@pytest.mark.people
def test_an_agent_that_asks_no_model_needs_none(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "llm.yaml").write_text("one: {model: m}\ntwo: {model: m}\n")
    done = run_debug_gym(["fix", project, "--agent", "noop_agent", "--llm-config", "llm.yaml"], tmp_path)
    assert done.returncode == 1 and "1 of 2 tests fail and nothing was changed" in done.stdout, done.stderr
