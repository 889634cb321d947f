"""The command line, as processes: what it prints, what it imports, how it exits, how it is interrupted."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from debug_gym_core.cli import COMMANDS, guarded, main

TOY = Path(__file__).parent / "toy_plugin.py"


class Done(NamedTuple):
    status: int
    out: str
    err: str


Inside = Callable[..., Done]
PROGRAM = [sys.executable, "-c", "from debug_gym_core.cli import main; main()"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(("DEBUG_GYM", "COLUMNS", "NO_COLOR"))},
        "DEBUG_GYM_PLUGINS": "core,terminal-local",
        "HOME": str(tmp_path),
        "TERM": "xterm",
    }


@pytest.fixture
def gym(tmp_path: Path, environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    def gym(*arguments: str, toy: bool = True, **extra: Any) -> subprocess.CompletedProcess[str]:
        options = ["--plugin-file", str(TOY)] if toy else []
        return subprocess.run(
            [*PROGRAM, *arguments, *options],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=120,
            **extra,
        )

    return gym


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    """A command in this process, for the many that end at once: its status, output and errors."""
    monkeypatch.setenv("DEBUG_GYM_PLUGINS", "core,terminal-local")
    monkeypatch.chdir(tmp_path)

    def inside(*arguments: str) -> Done:
        with pytest.raises(SystemExit) as caught:
            main([*arguments, "--plugin-file", str(TOY)])
        status = caught.value.code
        assert isinstance(status, int)
        return Done(status, *capsys.readouterr())

    return inside


@pytest.fixture
def blocked(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A run whose task `b` waits for ever once it has started (until the file `go` is there)."""
    processes: list[subprocess.Popen[str]] = []
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    commands = json.dumps({"b": f"test -e {tmp_path}/go || {{ echo x > {fifo}; sleep 600; }}"})

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*PROGRAM, "run", "toy", "-o", "out", "--plugin-file", str(TOY), "-p", f"agent.commands={commands}",
             "-p", f"agent.played={tmp_path}/played", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
            env=environment,
        )  # fmt: skip
        processes.append(process)
        assert fifo.read_text() == "x\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def results(directory: Path) -> dict[str, str]:
    lines = (directory / "results.jsonl").read_text().splitlines()
    found = {line["task"]: line["status"] for line in map(json.loads, lines)}
    assert len(found) == len(lines)
    return found


# What it imports


def test_help_and_version_import_nothing_of_weight() -> None:
    heavy = ("pluggy", "pydantic", "rich", "gymnasium", "numpy", "yaml", "debug_gym_core.plugins", "debug_gym_agents")
    for arguments in (["--help"], ["--version"], ["run", "--help"], ["plugins", "--help"]):
        code = (
            "import sys\nfrom debug_gym_core.cli import main\ntry:\n main(sys.argv[1:])\nexcept SystemExit: pass\n"
            "print(*sys.modules, file=sys.stderr)\n"
        )
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
        loaded = set(done.stderr.split())
        assert not {name for name in heavy if name in loaded}, arguments
        assert sum(name.startswith("debug_gym_core") for name in loaded) <= 7


def test_plugins_imports_no_environment() -> None:
    code = (
        "import sys\nfrom debug_gym_core.cli import main\ntry:\n main(['plugins'])\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not {"gymnasium", "numpy", "docker", "openai", "debug_gym_core.env"} & set(done.stderr.split())


def test_help_is_cheap() -> None:
    def cpu(command: list[str]) -> float:
        spent = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(spent)

    assert cpu([*PROGRAM, "--help"]) < 2.5 * cpu([sys.executable, "-c", "import click"])


# Help, version, usage


def test_help_lists_every_command_with_its_words(gym: Any) -> None:
    done = gym("--help", toy=False)
    assert done.returncode == 0 and "Examples:" in done.stdout
    for name, words in COMMANDS.items():
        assert f"  {name} " in done.stdout and words in done.stdout
        assert gym(name, "--help", toy=False).returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_words_of_a_command_are_those_of_its_own_help() -> None:
    for name, words in COMMANDS.items():
        command = main.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None and command.name == name
        first = (command.help or "").split(".")[0].split()[0]
        assert words.split()[0] == first, name


def test_version(gym: Any) -> None:
    done = gym("--version", toy=False)
    assert done.returncode == 0 and done.stdout.startswith("debug-gym 0.")


def test_works_with_clicks_runner() -> None:
    runner = CliRunner()
    assert runner.invoke(main, ["--version"]).exit_code == 0
    answer = runner.invoke(main, ["rnu"])
    assert answer.exit_code == 2 and "error: no command 'rnu'; did you mean 'run'?" in answer.output


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["rnu"], 2, "no command 'rnu'; did you mean 'run'?"),
        (["run"], 2, "say which benchmark or config file to run, or --resume DIR"),
        (["run", "--wrkers", "3"], 2, "No such option"),
        (["run", "toy", "-n", "0"], 2, "0 is not in the range x>=1"),
        (["run", "toy", "--force-all", "--force-failed"], 2, "not both"),
        (["run", "--resume", "x", "-o", "y"], 2, "leave out -o"),
        (["run", "--resume", "x", "-p", "a=b"], 2, "only -n may differ"),
        (["run", "--resume", "x"], 2, "x holds no run"),
        (["run", "tyo"], 2, "unknown benchmark 'tyo'; did you mean 'toy'?"),
        (["run", "missing.yaml"], 2, "missing.yaml: No such file or directory"),
        (["run", "toy", "--task", "d"], 2, "toy has no task 'd'"),
        (["run", "toy", "--agent", "fixr"], 2, "unknown agent 'fixr'; did you mean 'fixer'?"),
        (["run", "toy", "--agent", "debug_agent"], 2, "agent 'debug_agent'"),
        (["run", "toy", "--terminal", "docker"], 2, "terminal 'docker'"),
        (["run", "toy", "-p", "env.run_timout=3"], 2, "did you mean 'run_timeout'?"),
        (["run", "toy", "--agent", "chatter", "--llm", "gpt-9"], 4, "model 'gpt-9' is not configured"),
        (["run", "toy", "--agent", "chatter", "--llm", "echo"], 2, "isolates nothing"),
        (["run", "toy", "--agent", "chatter", "--llm", "echo", "--terminal", "auto"], 4, "no sandbox"),
        (["tasks", "toyy"], 2, "did you mean 'toy'?"),
        (["plugins", "--json", "--requirements"], 2, "not both"),
        (["config", "shwo"], 2, "No such command"),
    ],
)
def test_wrong_usage_is_said_in_two_lines(
    inside: Inside, tmp_path: Path, arguments: list[str], status: int, words: str
) -> None:
    got, out, err = inside(*arguments)
    assert got == status, err
    assert words in err and err.startswith("error: ")
    assert len(err.splitlines()) <= 2 and out == ""
    assert not (tmp_path / "exps").exists()


def test_a_traceback_is_shown_with_vv_only(inside: Inside) -> None:
    assert "Traceback" not in inside("run", "tyo")[2]
    assert "Traceback" not in inside("run", "tyo", "-v")[2]
    _, _, err = inside("run", "tyo", "-vv")
    assert "Traceback" in err and err.splitlines()[-1].startswith("error: ")


def test_a_fault_of_ours_is_said_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise ValueError("oops")

    assert guarded(fail, []) == 1
    assert capsys.readouterr().err.splitlines()[0] == "error: ValueError: oops"


# plugins, tasks, config


def test_plugins_lists_what_is_there_and_what_failed(inside: Inside, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import no_such_module\n")
    done = inside("plugins", "--plugin-file", str(broken))
    assert done.status == 0 and done.err == ""
    row = next(line for line in done.out.splitlines() if line.startswith("toy_plugin.py "))
    assert "loaded" in row
    assert "No module named 'no_such_module'" in done.out
    data = {item["name"]: item for item in json.loads(inside("plugins", "--json", "--plugin-file", str(broken)).out)}
    assert data["toy_plugin.py"]["provides"]["benchmarks"] == ["toy"]
    assert data["core"]["provides"] == {"executors": ["local"]} and data["core"]["distribution"] == "debug-gym-core"
    assert data["broken.py"]["state"] == "failed" and "no_such_module" in data["broken.py"]["cause"]
    assert "debug-gym-core==" in inside("plugins", "--requirements").out


def test_a_failed_plugin_that_is_needed_is_status_3(inside: Inside, tmp_path: Path) -> None:
    broken = tmp_path / "tool-magic"
    broken.write_text("not Python")
    done = inside("run", "toy", "--plugin-file", str(broken), "-p", "tools=[magic]")
    assert done.status == 3 and "tool 'magic': plugin tool-magic" in done.err
    assert done.err.startswith("warning: plugin tool-magic")  # said once a process
    assert inside("run", "toy", "--task", "a", "--plugin-file", str(broken)).status == 0
    assert inside("run", "toy", "--strict-plugins", "--plugin-file", str(broken)).status == 3


def test_tasks(inside: Inside) -> None:
    done = inside("tasks", "toy")
    assert done.out == "toy/a\ntoy/b\ntoy/c\n"
    assert "note: toy/hopeless is left out of `all`: its tests pass before the fix" in done.err


def test_run_list_plays_nothing(inside: Inside, tmp_path: Path) -> None:
    done = inside("run", "toy", "--list", "--task", "a", "--task", "*c", "-p", "run.repeats=2")
    assert done.out == "toy/a #1\ntoy/a #2\ntoy/c #1\ntoy/c #2\n" and done.status == 0
    assert not (tmp_path / "exps").exists()


def test_config_show_is_a_config(inside: Inside, tmp_path: Path) -> None:
    done = inside("config", "show", "toy")
    assert done.status == 0 and "max_steps: 7 " in done.out
    (tmp_path / "c.yaml").write_text(done.out)
    again = inside("config", "show", "c.yaml", "-p", "run.output=exps")
    assert again.out == done.out


def test_a_reader_that_leaves_is_no_error(environment: dict[str, str], tmp_path: Path) -> None:
    program = " ".join(f"'{word}'" for word in [*PROGRAM, "tasks", "toy", "--plugin-file", str(TOY)])
    command = f"{program} -p benchmark.extra_tasks=50000 | head -n 1; echo status ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.stdout == "toy/a\nstatus 141\n"
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


# Runs


def test_a_run_in_lines(gym: Any, tmp_path: Path) -> None:
    done = gym("run", "toy")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("[1/3] toy/a: resolved, score 1/1, 1 step, 0 pdb, ")
    assert lines[3].split() == ["task", "status", "score", "steps", "pdb", "seconds"]
    assert lines[-2].startswith("resolved 3 of 3, ")
    (directory,) = (tmp_path / "exps").iterdir()
    assert lines[-1] == f"results in exps/{directory.name}"
    assert results(directory) == {"toy/a": "resolved", "toy/b": "resolved", "toy/c": "resolved"}


def test_verbose_shows_steps_and_prompts(inside: Inside) -> None:
    options = ["--agent", "chatter", "--llm", "echo", "-p", "terminal.allow_unsandboxed=true", "--task", "a"]
    done = inside("run", "toy", *options, "-v")
    assert "toy/a 1/7 sh command=printf 42 > answer  (score 0/1," in done.out
    assert "so be it" not in done.out
    done = inside("run", "toy", *options, "-vv")
    assert "Task toy/a" in done.out and "echo: 100 + 20 tokens" in done.out and "so be it" in done.out


def test_tasks_that_cannot_be_run_are_status_1(inside: Inside) -> None:
    done = inside("run", "toy", "--agent", "breaker", "-o", "out")
    assert done.status == 1
    assert "error 3 tasks (toy/a, ...): ZeroDivisionError: this agent is broken" in done.out
    assert "resolved 0 of 0, 3 could not be run" in done.out
    assert "--resume out" in done.err


def test_an_unresolved_task_is_status_0(inside: Inside) -> None:
    done = inside("run", "toy", "-p", "agent.commands={a: 'mkdir x && mv answer x; mkdir answer'}")
    assert done.status == 0 and "toy/a: unresolved, score 0/1, 2 steps" in done.out
    assert "resolved 2 of 3" in done.out


def test_finished_tasks_are_not_played_again(inside: Inside, tmp_path: Path) -> None:
    options = ["-o", "out", "-p", f"agent.played={tmp_path}/played"]
    inside("run", "toy", "--task", "a", *options)
    done = inside("run", "toy", *options)
    assert "1 of 3 episodes are finished already" in done.out
    done = inside("run", "--resume", "out")
    assert done.status == 0 and "3 of 3 episodes are finished already" in done.out
    assert (tmp_path / "played").read_text() == "a 0\nb 0\nc 0\n"
    done = inside("run", "toy", *options, "-p", "agent.max_steps=3")
    assert done.status == 2 and "agent.max_steps was 7, is now 3" in done.err
    inside("run", "--resume", "out", "--force-all")
    assert (tmp_path / "played").read_text() == "a 0\nb 0\nc 0\n" * 2


def test_a_second_interrupt_does_not_wait(environment: dict[str, str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    process = subprocess.Popen(
        [*PROGRAM, "run", "toy", "-o", "out", "--plugin-file", str(TOY), "--agent", "stubborn"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment,
    )  # fmt: skip
    (tmp_path / "started").read_text()
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None and "stopping" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "--resume out" in err


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_keeps_what_was_done_and_says_how_to_go_on(
    blocked: Any, gym: Any, tmp_path: Path, number: int, status: int
) -> None:
    process = blocked()
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == status
    assert "stopping" in out and "toy/b: stopped" in out and "resolved 1 of 1, 2 not played" in out
    (hint,) = err.splitlines()
    assert hint.startswith("stopped; go on with: debug-gym run --resume out --plugin-file ")
    assert hint.endswith("toy_plugin.py")
    assert results(tmp_path / "out") == {"toy/a": "resolved"}
    (tmp_path / "go").touch()
    assert gym("run", "--resume", "out").returncode == 0
    assert results(tmp_path / "out") == {"toy/a": "resolved", "toy/b": "resolved", "toy/c": "resolved"}
    assert (tmp_path / "played").read_text() == "a 0\nb 0\nb 0\nc 0\n"


def test_a_killed_run_goes_on(blocked: Any, gym: Any, tmp_path: Path) -> None:
    process = blocked()
    process.kill()
    process.communicate()
    assert results(tmp_path / "out") == {"toy/a": "resolved"}
    (tmp_path / "go").touch()
    assert gym("run", "--resume", "out").returncode == 0
    assert list(results(tmp_path / "out")) == ["toy/a", "toy/b", "toy/c"]
    assert (tmp_path / "played").read_text() == "a 0\nb 0\nb 0\nc 0\n"
    assert (tmp_path / "out/toy/b/abandoned-1.jsonl").exists()


def test_a_second_run_in_the_same_directory_is_refused(blocked: Any, gym: Any) -> None:
    process = blocked()
    done = gym("run", "--resume", "out")
    assert done.returncode == 2 and f"in use by another debug-gym (process {process.pid})" in done.stderr


def test_debug_pauses_after_each_step(gym: Any, tmp_path: Path) -> None:
    commands = ["--task", "a", "--task", "b", "-p", "agent.commands={a: echo hello}", "-o", "out", "--debug"]
    done = gym("run", "toy", *commands, input="what\nc\nc\nq\n")
    assert done.returncode == 130
    assert done.stdout.count("(debug-gym) ") == 4 and "c: go on to the next step" in done.stdout
    assert results(tmp_path / "out") == {"toy/a": "resolved"}


def test_debug_stops_at_the_end_of_input(gym: Any) -> None:
    assert gym("run", "toy", "--debug", input="").returncode == 130


# A terminal


def on_terminal(command: list[str], environment: dict[str, str], cwd: Path, width: int, until: str) -> str:
    """Run in a pseudo terminal of 24 lines; press Ctrl-C when a pattern is seen; returns what was written."""
    pid, descriptor = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execvpe(command[0], command, environment)
    subprocess.run(["stty", "rows", "24", "cols", str(width)], stdin=descriptor, check=True)
    written = b""
    pressed = False
    while True:
        ready, _, _ = select.select([descriptor], [], [], 60)
        assert ready, written
        try:
            data = os.read(descriptor, 65536)
        except OSError:
            break
        written += data
        if not pressed and re.search(until.encode(), written):
            os.write(descriptor, b"\x03")
            pressed = True
    _, status = os.waitpid(pid, 0)
    os.close(descriptor)
    return written.decode() + f"<status {os.waitstatus_to_exitcode(status)}>"


@pytest.mark.parametrize("width", [80, 120])
def test_live_table_and_ctrl_c_on_a_terminal(environment: dict[str, str], tmp_path: Path, width: int) -> None:
    commands = json.dumps({"b": "sleep 600"})
    command = [*PROGRAM, "run", "toy", "-o", "out", "--plugin-file", str(TOY), "-p", f"agent.commands={commands}"]
    environment = {**environment, "COLUMNS": str(width), "LINES": "24"}
    written = on_terminal(command, environment, tmp_path, width, r"toy/b[^\r\n]*playing")
    assert "elapsed" in written and "playing" in written and "resolved" in written
    assert "resolved 1 of 1, 2 not played" in written
    assert "go on with: debug-gym run --resume out" in written
    assert written.endswith("<status 130>")
