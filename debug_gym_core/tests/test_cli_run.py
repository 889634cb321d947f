"""`debug-gym run`: what it prints, keeps and exits with."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support import repeated

from debug_gym_core.cli import guarded, main
from debug_gym_core.runs.episode import Players

TOY = Path(__file__).parent / "toy_plugin.py"


def results(directory: Path) -> dict[str, str]:
    lines = (directory / "results.jsonl").read_text().splitlines()
    found = {line["task"]: line["status"] for line in map(json.loads, lines)}
    assert len(found) == len(lines)
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of task `a` that is over."""
    directory = tmp_path_factory.mktemp("finished") / "out"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as caught:
        patch.setenv("DEBUG_GYM_PLUGINS", "core,terminal-local")
        main(["run", "toy", "--task", "a", "-o", str(directory), "--plugin-file", str(TOY)])
    assert caught.value.code == 0
    return directory


@pytest.fixture
def played(finished: Path, tmp_path: Path) -> Path:
    """A copy of it in the working directory, `out`."""
    return shutil.copytree(finished, tmp_path / "out")


def test_run_list_plays_nothing(inside: Any, tmp_path: Path) -> None:
    done = inside("run", "toy", "--list", "--task", "a", "--task", "*c", "-p", "run.repeats=2")
    assert done.out == "toy/a #1\ntoy/a #2\ntoy/c #1\ntoy/c #2\n" and done.status == 0
    assert not (tmp_path / "exps").exists()


def test_a_run_in_lines(inside: Any, tmp_path: Path) -> None:
    done = inside("run", "toy")
    assert done.status == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("[1/3] toy/a: resolved, score 1/1, 1 step, 0 pdb, ")
    assert lines[3].split() == ["task", "status", "score", "steps", "pdb", "seconds"]
    assert lines[-2].startswith("resolved 3 of 3, ")
    (directory,) = (tmp_path / "exps").iterdir()
    assert lines[-1] == f"results in exps/{directory.name}"
    assert results(directory) == {"toy/a": "resolved", "toy/b": "resolved", "toy/c": "resolved"}


def test_verbose_shows_steps_and_prompts(inside: Any) -> None:
    options = ["--agent", "chatter", "--llm", "echo", "-p", "terminal.allow_unsandboxed=true", "--task", "a"]
    done = inside("run", "toy", *options, "-v")
    assert "toy/a 1/7 sh printf 42 > answer  (score 0/1," in done.out
    assert "so be it" not in done.out
    done = inside("run", "toy", *options, "-vv")
    assert "Task toy/a" in done.out and "echo: 100 + 20 tokens" in done.out and "so be it" in done.out


def test_tasks_that_cannot_be_run_are_status_1(inside: Any) -> None:
    done = inside("run", "toy", "--agent", "breaker", "-o", "out")
    assert done.status == 1
    assert "toy/a: error: ZeroDivisionError: this agent is broken (toy_plugin.py:" in done.out
    assert "toy/b: error: as toy/a\n" in done.out and done.out.count("this agent is broken") == 1
    assert "resolved 0 of 0, 3 could not be run" in done.out
    assert "--resume out" in done.err


def test_what_resuming_cannot_mend_is_not_to_be_resumed(
    inside: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBUG_GYM_PLUGINS", "core,terminal-local,benchmarks,agents")
    done = inside("run", "toy", "--task", "a", "-o", "out", "-p", "env.entrypoint='pytst -q'")
    assert done.status == 1 and "play again" not in done.err
    assert done.err.splitlines()[-1] == (
        "toy/a: correct what the error names; this run keeps its settings, so other settings need a new one"
    )
    (tmp_path / "empty").mkdir()
    repo = ["run", "repo", "-p", "benchmark.path=empty", "--agent", "noop_agent", "--terminal", "local"]
    done = inside(*repo, "-o", "none")
    assert done.status == 1 and "play again" not in done.err and "repo/empty: correct what" in done.err
    assert "finds no test that could pass: no tests collected\n" in done.out


def test_a_missing_image_is_said_before_anything_is_kept(
    inside: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBUG_GYM_PLUGINS", "core,terminal-docker")
    done = inside("run", "toy", "--terminal", "docker", "-o", "out")
    assert done.status == 2 and not (tmp_path / "out").exists()
    said = "error: docker needs an image, and the task names none: -p terminal.image=IMAGE, in Python terminal="
    assert done.err.startswith(said)


def test_listing_what_a_resumed_run_would_play_changes_nothing(inside: Any, tmp_path: Path) -> None:
    inside("run", "toy", "--agent", "breaker", "--task", "[ab]", "-o", "out")
    kept = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.rglob("out/**/*") if path.is_file()}
    assert inside("run", "--resume", "out", "--list").out == "toy/a\ntoy/b\n"
    assert inside("run", "--resume", ".").err == "error: . holds no run (no run.json); below it: out\n"
    assert inside("run", "toy", "--agent", "breaker", "--task", "[ab]", "-o", "out", "--list").status == 0
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in kept} == kept


def test_a_run_goes_on_with_the_models_that_it_has_kept(inside: Any, tmp_path: Path) -> None:
    inside("run", "toy", "--agent", "breaker", "--task", "a", "-o", "out", "--llm-config", "first.yaml")
    inside("run", "--resume", "out")
    assert json.loads((tmp_path / "out/run.json").read_text())["config"]["llm_config_file_path"].endswith("first.yaml")


@pytest.mark.people
def test_a_run_goes_on_with_the_models_that_it_has_kept_or_that_are_named_now(
    inside: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(out: str = "out") -> str | None:
        path = json.loads((tmp_path / out / "run.json").read_text())["config"]["llm_config_file_path"]
        return path and Path(path).name

    monkeypatch.setenv("LLM_CONFIG_FILE_PATH", "exported.yaml")
    inside("run", "toy", "--agent", "breaker", "--task", "a", "-o", "found")
    assert kept("found") is None  # so that the variable counts when it is gone on with, too
    inside("run", "toy", "--agent", "breaker", "--task", "a", "-o", "out", "--llm-config", "first.yaml")
    inside("run", "--resume", "out")
    assert kept() == "first.yaml"  # a config's goes before the variable
    inside("run", "--resume", "out", "-p", "llm_config_file_path=third.yaml")
    assert kept() == "third.yaml"
    inside("run", "--resume", "out", "--llm-config", "fourth.yaml")
    assert kept() == "fourth.yaml"


def test_a_run_is_not_gone_on_with_without_its_plugin_file(inside: Any, tmp_path: Path) -> None:
    """Its model, say, would be looked for elsewhere."""
    (tmp_path / "my plugin.py").write_text(
        "from debug_gym_core import hookimpl\n\n@hookimpl\ndef debug_gym_register_tools():\n    return []\n"
    )
    first = inside("run", "toy", "--agent", "breaker", "--task", "a", "-o", "out", "--plugin-file", "my plugin.py")
    assert first.status == 1, first.err
    said = "error: out was played with --plugin-file 'my plugin.py', which is not given now.\n"
    command = f"Say debug-gym run --resume out --plugin-file {TOY} --plugin-file 'my plugin.py'\n"
    for more in (["--list"], ["--force-all"], []):
        done = inside("run", "--resume", "out", *more)
        assert (done.status, done.err.replace(f"{tmp_path}/", "")) == (2, said + command), more


def test_an_unresolved_task_is_status_0(inside: Any) -> None:
    commands = "agent.commands={a: 'mkdir x && mv answer x; mkdir answer'}"
    done = inside("run", "toy", "--task", "[ab]", "-p", commands)
    assert done.status == 0 and "toy/a: unresolved, score 0/1, 2 steps" in done.out
    assert "resolved 1 of 2" in done.out


@pytest.mark.people
def test_the_summary_says_why_and_which_repeats_differ(inside: Any, tmp_path: Path) -> None:
    """Task `a` is solved once, then it cannot be any more; b always."""
    once = f"test -e {tmp_path}/again && mv answer x && mkdir answer; touch {tmp_path}/again"
    done = inside(
        "run", "toy", "--task", "[ab]", "--repeats", "2", "-o", "out", "-p", f"agent.commands={{a: '{once}'}}"
    )
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert "unresolved toy/a #2: the entrypoint failed" in lines
    assert "flaky toy/a: resolved 1 of 2 (#1), unresolved 1 of 2 (#2)" in lines
    assert lines[-2].startswith("resolved 3 of 4 episodes of 2 tasks, ")
    rows = [json.loads(line) for line in (tmp_path / "out/results.jsonl").read_text().splitlines()]
    assert [(row["task"], row["repeat"]) for row in rows] == [("toy/a", 1), ("toy/a", 2), ("toy/b", 1), ("toy/b", 2)]
    done = inside("run", "toy", "--repeats", "3", "-o", "out")
    assert done.status == 2 and "run.repeats was 2, is now 3" in done.err
    assert inside("run", "--resume", "out", "--repeats", "2").status == 2


def test_a_task_that_passes_unchanged_is_an_error_before_anybody_plays_it(inside: Any, tmp_path: Path) -> None:
    done = inside("run", "toy", "--task", "a", "-p", f"agent.played={tmp_path}/played", "-p", "env.entrypoint='true'")
    assert done.status == 1 and not (tmp_path / "played").exists()
    assert "`true` passes in the unchanged repository" in done.out and "env.allow_passing: true" in done.out


def test_what_is_known_to_fail_is_looked_at_only_with_another_entrypoint(
    inside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(Players, "fails_unchanged", lambda self, task, look: not looked.append(task) and look())
    done = inside("run", "toy", "--task", "a", "-o", "first")
    assert done.status == 0 and "resolved 1 of 1" in done.out and looked == []
    done = inside("run", "toy", "--task", "a", "-o", "second", "-p", "env.entrypoint='true'")
    assert looked == ["toy/a"] and "passes in the unchanged repository" in done.out


def test_a_task_that_is_resolved_without_a_change_is_named(inside: Any) -> None:
    options = ["--agent", "chatter", "--llm", "echo", "-p", "terminal.allow_unsandboxed=true", "--task", "a"]
    options += ["-p", "env.allow_passing=true"]
    done = inside("run", "toy", *options, "-p", "llm.commands=[]", "-p", "env.entrypoint='true'")
    assert done.status == 0 and "broken toy/a: its tests pass without a change" in done.out


def test_finished_tasks_are_not_played_again(inside: Any, tmp_path: Path) -> None:
    options = ["-o", "out", "-p", f"agent.played={tmp_path}/played"]
    inside("run", "toy", "--task", "a", *options)
    done = inside("run", "toy", "--task", "[ab]", *options)
    assert "1 of 2 episodes are finished already" in done.out
    done = inside("run", "--resume", "out")
    assert done.status == 0 and "2 of 2 episodes are finished already" in done.out
    assert (tmp_path / "played").read_text() == "a 0\nb 0\n"
    done = inside("run", "toy", *options, "-p", "agent.max_steps=3")
    assert done.status == 2 and "agent.max_steps was 7, is now 3" in done.err
    inside("run", "--resume", "out", "--force-all")
    assert (tmp_path / "played").read_text() == "a 0\nb 0\n" * 2


def test_a_run_that_has_spent_all_says_what_goes_on_with_it(inside: Any, tmp_path: Path) -> None:
    options = ["--agent", "chatter", "--llm", "echo", "-p", "terminal.allow_unsandboxed=true", "-o", "out"]
    options += ["--task", "[ab]"]
    done = inside("run", "toy", *options, "-p", "run.max_cost=0.7")
    said, _, command = done.err.splitlines()[-1].partition("; give it more: ")
    assert (done.status, said) == (1, "the run has spent what it may (run.max_cost); not finished: 1")
    assert command.startswith("debug-gym run --resume out --plugin-file ") and command.endswith("-p run.max_cost=MORE")
    assert inside("run", "--resume", "out", "--list", "-p", "run.max_cost=2").out == "toy/b\n"
    assert inside("run", "--resume", "out", "-p", "run.max_cost=2").status == 0
    assert results(tmp_path / "out") == dict.fromkeys(("toy/a", "toy/b"), "resolved")
    again = inside("run", "--resume", "out", "--force-all", "-p", "run.max_cost=9")
    assert "\nthe run has spent $2.25: also on what has no result or was played again\n" in again.out
    done = inside("run", "--resume", "out", "-p", "agent.max_steps=3")
    assert done.status == 2 and "agent.max_steps was 7, is now 3" in done.err


def test_a_prompt_with_an_unknown_name_is_refused_before_the_run(inside: Any, tmp_path: Path) -> None:
    options = ["--agent", "chatter", "--llm", "echo", "-p", "terminal.allow_unsandboxed=true", "-o", "out"]
    done = inside("run", "toy", *options, "-p", "agent.system_prompt='{{ tsk }}'")
    said = "error: agent.system_prompt: <template>:1: 'tsk' is undefined; did you mean 'task'?\n"
    assert (done.status, done.err, (tmp_path / "out").exists()) == (2, said, False)


def test_an_episode_that_ran_out_of_time_is_replayed_to_where_it_did(inside: Any, tmp_path: Path) -> None:
    assert inside("run", "toy", "--task", "a", "-o", "out", "-p", "run.task_timeout=0.000001").status == 0
    assert json.loads((tmp_path / "out/results.jsonl").read_text())["ended"] == "time"
    done = inside("replay", "out", "--terminal", "local")
    assert (done.status, done.out) == (0, "toy/a: same (1 step, score 1/1)\n"), done.err


def test_errors_of_ours_are_said_without_their_class(inside: Any) -> None:
    losing = ["-p", "agent.lose=9", "-p", "agent.played=played", "-p", "run.max_retries=0"]
    done = inside("run", "toy", "--task", "a", *losing)
    assert done.status == 1
    assert "SandboxLost" not in done.out + done.err and "toy/a: error: " in done.out


def test_a_step_is_written_so_that_it_can_be_pasted(inside: Any) -> None:
    options = ["--agent", "chatter", "--llm", "echo", "-p", "terminal.allow_unsandboxed=true", "--task", "a"]
    done = inside("run", "toy", *options, "-p", r'llm.commands=["printf 4 > answer\nprintf 2 >> answer\n"]', "-v")
    assert "\nsh <<<\nprintf 4 > answer\nprintf 2 >> answer\n>>>\n" in done.out
    assert "toy/a: resolved" in done.out


def test_vv_shows_what_is_new_in_a_prompt(inside: Any) -> None:
    options = ["--agent", "historian", "--llm", "echo", "-p", "terminal.allow_unsandboxed=true", "--task", "a"]
    done = inside("run", "toy", *options, "-p", 'llm.commands=["echo one", "echo two"]', "-vv")
    lines = [line.strip() for line in done.out.splitlines()]
    assert lines.count("The answer is wrong. Nobody knows the question.") == 1
    assert lines.count("(the observation of step 0, above)") == 1
    assert "(1 message as in the last prompt)" in lines and "(3 messages as in the last prompt)" in lines
    assert lines.count("-> sh echo two") == 1 and lines.count("(the answer above)") == 2
    assert lines.count("two") == 1


# Where it is kept


def test_a_directory_of_something_else_is_left_alone(inside: Any, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.txt").write_text("all of it")
    done = inside("run", "toy", "-o", "out")
    assert done.status == 2 and "is not empty ('thesis.txt') and holds no run" in done.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]
    done = inside("run", "toy", "-o", "out/thesis.txt")
    assert done.status == 2 and "out/thesis.txt is a file; -o names the directory of a run" in done.err


@pytest.mark.usefixtures("played")
def test_a_run_does_not_lie_in_another(inside: Any, tmp_path: Path) -> None:
    """`report` would stop at the outer one."""
    for where in ("out/inner", "out/toy/a/inner"):
        for command in (["-o", where], ["-o", where, "--list"]):
            done = inside("run", "toy", *command)
            assert (done.status, done.out) == (2, "") and f"lies in a run, {tmp_path}/out; name" in done.err
        assert not (tmp_path / where).exists()
    assert inside("run", "toy", "--task", "a", "-o", "out").status == 0


def test_a_run_may_lie_beside_a_file_of_that_name_that_is_no_runs(inside: Any, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    assert inside("run", "toy", "--task", "a", "-o", "out").status == 0
    assert inside("run", "toy", "--task", "b", "-o", "out").status == 0


@pytest.mark.parametrize("there", [False, *repeated("people", True)])
def test_a_run_that_cannot_start_leaves_nothing(inside: Any, tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "deep/out").mkdir(parents=True)
    wrong = ["-p", "env.python=/nowhere/python"]
    assert inside("run", "toy", "-o", "deep/out", *wrong).status == 2
    assert (tmp_path / "deep").exists() == there
    assert list(tmp_path.glob("deep/out/*")) == list(tmp_path.glob("deep/out/.*")) == []
    assert inside("run", "toy", "-o", "deep/out", "--task", "a").status == 0


def test_what_was_kept_is_not_lost_when_playing_again_cannot_start(inside: Any, played: Path) -> None:
    kept, record = (played / "results.jsonl").read_text(), played / "run.json"
    record.write_text(record.read_text().replace('"python": null', '"python": "/nowhere/python"'))
    done = inside("run", "--resume", "out", "--force-all")
    assert done.status == 2 and "/nowhere/python" in done.err
    assert (played / "results.jsonl").read_text() == kept


def test_list_is_what_would_be_played(inside: Any, tmp_path: Path) -> None:
    commands = ["-o", "out", "-p", "agent.commands={b: 'mkdir x && mv answer x; mkdir answer'}"]
    assert inside("run", "toy", *commands, "--task", "[ab]").status == 0
    before = (tmp_path / "out/run.json").read_text()
    assert inside("run", "toy", *commands, "--list").out == "toy/c\n"
    assert inside("run", "toy", *commands, "--list", "--force-failed").out == "toy/b\ntoy/c\n"
    assert inside("run", "toy", *commands, "--list", "--force-all").out == "toy/a\ntoy/b\ntoy/c\n"
    assert inside("run", "--resume", "out", "--list", "--force-failed").out == "toy/b\n"
    assert (tmp_path / "out/run.json").read_text() == before
    assert not (tmp_path / "exps").exists()


@pytest.mark.usefixtures("played")
def test_list_promises_nothing_that_the_run_refuses(inside: Any) -> None:
    for where in (["-o", "out"], ["--resume", "out"]):
        other = ["run", "toy", "-p", "agent.max_steps=3", *where]
        refused, listed = inside(*other), inside(*other, "--list")
        assert refused.status == listed.status == 2 and listed.out == ""
        assert "out holds a run with another config: agent.max_steps was 7, is now 3" in listed.err


@pytest.mark.people
def test_force_failed_plays_what_is_not_resolved(inside: Any, tmp_path: Path) -> None:
    commands = ["-o", "out", "-p", f"agent.played={tmp_path}/played"]
    commands += ["-p", "agent.commands={b: 'mkdir x && mv answer x; mkdir answer'}"]
    inside("run", "toy", *commands)
    assert inside("run", "--resume", "out", "--force-failed").status == 0
    assert (tmp_path / "played").read_text() == "a 0\nb 0\nc 0\nb 0\n"
    assert results(tmp_path / "out") == {"toy/a": "resolved", "toy/b": "unresolved", "toy/c": "resolved"}


# The original's


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--config", "name the file without it"),
        ("--num-workers", "say -n N"),
        ("--timeout", "-p run.task_timeout=SECONDS"),
        ("--max-retries", "-p run.max_retries=N"),
        ("--no-live-display", "leave it out"),
        ("--keep-completed-tasks", "finished tasks are kept"),
        ("--logging-level", "say -v"),
    ],
)
def test_options_of_the_original_are_answered(inside: Any, option: str, words: str) -> None:
    done = inside("run", "toy", option)
    assert done.status == 2 and done.err.startswith(f"error: there is no {option}: ") and words in done.err


def test_the_originals_own_example_is_answered(inside: Any) -> None:
    done = inside("run", "toy", "--agent", "rewrite_agent", "-v", "-p", 'rewrite_agent.llm_name="human"')
    assert done.status == 2
    assert done.err == "error: -p rewrite_agent.llm_name is now rewrite_agent.llm.name\n"
    done = inside("run", "scripts/config_aider.yaml", "--agent", "rewrite_agent")
    assert done.status == 2 and done.err.endswith("debug-gym run aider\n")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "results.jsonl",
            '{"passed": 3}\n',
            "results.jsonl:1: not a result of a run: it has no task, agent, llm, status",
        ),
        ("results.jsonl", "hello\n", "results.jsonl:1: not JSON: 'hello'"),
        (
            "results.jsonl",
            '{"task": "a", "agent": "b", "llm": null, "status": "resolved", "score": "x"}\n',
            "results.jsonl:1: not a result of a run: score is no whole number",
        ),
        (
            "results.jsonl",
            '{"task": "a", "agent": "b", "llm": null, "status": "error", "error": {"kind": 3}}\n',
            "results.jsonl:1: not a result of a run: error has no kind and message",
        ),
        ("run.json", "{", "run.json: not JSON (line 1); a run cannot go on without it, name a new directory"),
        ("run.json", "\udcff", "run.json: not JSON; a run cannot"),
        ("run.json", '{"schema_version": 1, "config": 5}', "run.json: not the record of a run: it has no config"),
    ],
)
def test_files_of_something_else_are_named_in_words(
    inside: Any, played: Path, name: str, content: str, words: str
) -> None:
    (played / name).write_text(content, encoding="utf-8", errors="surrogateescape")
    done = inside("run", "--resume", "out")
    assert (done.status, done.err.count("\n")) == (2, 1) and words in done.err, done.err


@pytest.mark.parametrize(
    ("first", "then", "kept", "episodes"),
    [
        (["a"], ["b"], ["a", "b"], 2),
        *repeated(
            "people",
            ([], ["a"], "all", 3),
            (["[ab]"], ["a", "c"], ["[ab]", "a", "c"], 3),
            (["a"], ["all"], "all", 3),
            (["!a"], ["!a"], ["!a"], 2),
        ),
    ],
)
def test_a_run_keeps_the_tasks_that_it_has(
    inside: Any, tmp_path: Path, first: list[str], then: list[str], kept: str | list[str], episodes: int
) -> None:
    for tasks in (first, then):
        assert inside("run", "toy", "-o", "out", *(word for one in tasks for word in ("--task", one))).status == 0
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (record["config"]["benchmark"]["tasks"], record["episodes"]) == (kept, episodes)


def test_tasks_that_cannot_be_written_together_are_another_config(inside: Any) -> None:
    assert inside("run", "toy", "--task", "![ab]", "-o", "out").status == 0
    done = inside("run", "toy", "--task", "a", "-o", "out")
    assert done.status == 2
    assert 'holds a run with another config: benchmark.tasks was ["![ab]"], is now ["a"]' in done.err


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "config.yaml"), 2),
        (PermissionError(errno.EACCES, "Permission denied", "exps"), 2),
        (OSError(errno.ENOSPC, "No space left on device", "exps/a"), 4),
        (OSError(errno.EMFILE, "Too many open files"), 4),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), 4),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), 1),
        (OSError(errno.EIO, "Input/output error"), 1),
        (TimeoutError(), 1),
    ],
)
def test_only_a_wrong_path_is_wrong_usage(error: OSError, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise error

    assert guarded(fail, []) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and len(line) > len("error: ")
