"""The command line, as processes: what it imports, its help, how it says errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from debug_gym_core.cli import COMMANDS, guarded, main, say, say_error, say_note
from debug_gym_core.cli.tables import make_console

TOY = Path(__file__).parent / "toy_plugin.py"
PROGRAM = [sys.executable, "-c", "from debug_gym_core.cli import main; main()"]


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
        assert sum(name.startswith("debug_gym_core") for name in loaded) <= 8


def test_plugins_imports_no_environment() -> None:
    code = (
        "import sys\nfrom debug_gym_core.cli import main\ntry:\n main(['plugins'])\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not {"gymnasium", "numpy", "docker", "openai", "debug_gym_core.environment.env"} & set(done.stderr.split())


def test_help_lists_every_command_with_its_words(gym: Any) -> None:
    done = gym("--help", toy=False)
    assert done.returncode == 0 and "Examples:" in done.stdout
    for name, words in COMMANDS.items():
        assert f"  {name} " in done.stdout and words in done.stdout
        assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    "command",
    [
        (),
        *((name,) for name in COMMANDS),
        ("config", "show"),
        ("config", "schema"),
        ("llm", "init"),
        ("llm", "list"),
        ("llm", "check"),
    ],
)
def test_help_fits_and_every_option_is_one_line(command: tuple[str, ...]) -> None:
    lines = CliRunner().invoke(main, [*command, "--help"]).output.splitlines()
    assert max(map(len, lines)) <= 80
    options = lines[lines.index("Options:") + 1 :]
    for line in options[: options.index("") if "" in options else None]:
        assert line.startswith("  -"), line
    assert command in ((), ("config",), ("llm",)) or "Examples:" in lines


def test_the_words_of_a_command_are_those_of_its_own_help() -> None:
    for name, words in COMMANDS.items():
        command = main.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None and command.name == name
        first = (command.help or "").split(".")[0].split()[0]
        assert words.split()[0] == first, name


def test_version(gym: Any) -> None:
    done = gym("--version", toy=False)
    assert done.returncode == 0 and done.stdout.startswith("debug-gym 0.")
    module = subprocess.run([sys.executable, "-m", "debug_gym_core", "--version"], capture_output=True, text=True)
    assert module.stdout == done.stdout


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
        (["run", "--resume", "x", "--agent", "noop_agent"], 2, "say -n, --llm-config, or -p of what may differ"),
        (["run", "--resume", "x"], 2, "x holds no run"),
        (["run", "tyo"], 2, "unknown benchmark 'tyo'; did you mean 'toy'?"),
        (["run", "missing.yaml"], 2, "missing.yaml: No such file or directory"),
        (["run", "toy", "--task", "d"], 2, "toy has no task 'd'"),
        (["run", "toy", "--agent", "fixr"], 2, "unknown agent 'fixr'; did you mean 'fixer'?"),
        (["run", "toy", "--agent", "debug_agent"], 2, "agent 'debug_agent'"),
        (["run", "toy", "--agent", "xyz"], 2, "unknown agent 'xyz'; known: "),
        (["run", "toy", "--agent", ""], 2, "agent ''"),
        (["run", ""], 2, "the benchmark or config file is empty; name one (toy)"),
        (["run", "toy", "--terminal", "foo"], 2, "unknown terminal 'foo'; known: auto, "),
        (["run", "toy", "--terminal", "docker"], 2, "terminal 'docker'"),
        (["run", "toy", "-p", "env.run_timout=3"], 2, "did you mean 'run_timeout'?"),
        (["run", "toy", "--agent", "chatter", "--llm", "gpt-9"], 4, "model 'gpt-9' is not configured"),
        (["run", "toy", "--agent", "chatter", "--llm", "gpt-9", "--task", "d"], 2, "toy has no task 'd'"),
        (["run", "toy", "--agent", "chatter", "--llm", "echo"], 2, "isolates nothing"),
        (["run", "toy", "--agent", "chatter", "--llm", "echo", "--terminal", "auto"], 4, "no sandbox"),
        (["tasks", "toyy"], 2, "did you mean 'toy'?"),
        (["plugins", "--json", "--requirements"], 2, "not both"),
        (["config", "shwo"], 2, "No such command"),
    ],
)
def test_wrong_usage_is_said_in_two_lines(
    inside: Any, tmp_path: Path, arguments: list[str], status: int, words: str
) -> None:
    got, out, err = inside(*arguments)
    assert got == status, err
    assert words in err and err.startswith("error: ")
    assert len(err.splitlines()) <= 2 and out == ""
    assert not (tmp_path / "exps").exists()


def test_a_traceback_is_shown_with_vv_only(inside: Any) -> None:
    assert "Traceback" not in inside("run", "tyo")[2]
    assert "Traceback" not in inside("run", "tyo", "-v")[2]
    _, _, err = inside("run", "tyo", "-vv")
    assert "Traceback" in err and err.splitlines()[-1].startswith("error: ")


@pytest.mark.parametrize("act", [Path("repository").absolute, Path("llm.yaml").touch], ids=["read", "written"])
def test_who_starts_in_a_directory_that_is_gone_is_told_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert guarded(act, []) == 2
    said = "error: the directory that this was started in is gone; change to one that is there: cd\n"
    assert capsys.readouterr().err == said


def test_a_fault_of_ours_is_said_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise ValueError("oops")

    assert guarded(fail, []) == 1
    assert capsys.readouterr().err.splitlines()[0] == "error: ValueError: oops"


def test_a_reader_that_leaves_is_no_error(environment: dict[str, str], tmp_path: Path) -> None:
    program = " ".join(f"'{word}'" for word in [*PROGRAM, "tasks", "toy", "--plugin-file", str(TOY)])
    command = f"{program} -p benchmark.extra_tasks=50000 | head -n 1; echo status ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.stdout == "toy/a\nstatus 141\n"
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_a_terminal_obeys_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    name = "test_\x1b]0;evil\x07\x9b2J\u202e.py"
    for write in (say, say_error, say_note, make_console().print):
        write(f"{name}\tx\nnext")
    said = capsys.readouterr()
    assert not set(said.out + said.err) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert (said.out + said.err).count("\\x1b]0;evil") == 4 and (said.out + said.err).count("x\nnext\n") == 4
