"""The command line where disks are full, readers have gone, streams are closed and names are not UTF-8."""

from __future__ import annotations

import io
import itertools
import json
import logging
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agent_plugin import write_agent
from support import repeated

from debug_gym_core.cli.options import EchoHandler
from debug_gym_core.config.layers import read_text
from debug_gym_core.errors import UsageError

TOY = Path(__file__).parent / "toy_plugin.py"
PROGRAM = [sys.executable, "-c", "from debug_gym_core.cli import main; main()"]
BOMB = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))


def shell(script: str, environment: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which `gym` stands for the program."""
    return subprocess.run(
        ["bash", "-c", script.replace("gym ", shlex.join(PROGRAM) + " ")],
        capture_output=True, text=True, cwd=cwd, env=environment, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip


# a full disk


@pytest.fixture
def full(tmp_path: Path) -> Any:
    """A directory on a file system of 32 kB."""
    directory = tmp_path / "full"
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(directory)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small file system; run the tests as root")
    yield directory
    subprocess.run(["umount", str(directory)], check=True)


@pytest.mark.faults
def test_a_disk_that_is_full_is_one_line_that_says_how_to_go_on(gym: Any, full: Path) -> None:
    print_much = "-p", "agent.commands={b: \"printf '%0100000d' 1; printf 42 > answer\"}"
    done = gym("run", "toy", "-o", "full/out", *print_much)
    assert done.returncode == 4
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "error: full/out: No space left on device; free space, then go on with: debug-gym run --resume full/out"
    )
    done = gym("run", "--resume", "full/out")
    assert done.returncode == 4 and done.stderr.startswith("error: full/out: No space left on device; free space, ")
    subprocess.run(["mount", "-o", "remount,size=4m", str(full)], check=True)
    assert gym("run", "--resume", "full/out").returncode == 0


def test_a_disk_that_is_full_at_the_start_leaves_nothing(gym: Any, full: Path) -> None:
    (full / "filler").write_bytes(b"x" * (28 << 10))
    with (full / "filler").open("ab", buffering=0) as file, pytest.raises(OSError):
        while True:
            file.write(b"x" * 512)
    done = gym("run", "toy", "-o", "full/out")
    assert done.returncode == 4 and done.stderr.startswith("error: full/out: No space left on device")
    assert [path.name for path in full.iterdir()] == ["filler"]


@pytest.mark.faults
@pytest.mark.parametrize(
    ("command", "named"),
    [
        (f"gym export out -o full/t.jsonl --plugin-file {TOY}", "full/t.jsonl"),
        (f"gym view out --html full/a.html --plugin-file {TOY}", "full/a.html"),
        ("gym report out > /dev/full", "standard output"),
        ("PYTHONUNBUFFERED=1 gym report out > /dev/full", "standard output"),
        ("gym config schema > /dev/full", "standard output"),
    ],
)
def test_what_there_is_no_room_for_is_named(
    inside: Any, environment: dict[str, str], full: Path, tmp_path: Path, command: str, named: str
) -> None:
    assert inside("run", "toy", "--task", "a", "-o", "out").status == 0
    (full / "filler").touch()
    with (full / "filler").open("ab", buffering=0) as file, pytest.raises(OSError):
        while True:
            file.write(b"x" * 512)
    environment.pop("PYTHONUNBUFFERED", None)
    done = shell(command, environment, tmp_path)
    assert (done.returncode, done.stderr) == (4, f"error: {named}: No space left on device\n")


def test_a_run_that_cannot_write_what_it_says_names_standard_output(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = shell(f"gym run toy --task a -o out --plugin-file {TOY} > /dev/full", environment, tmp_path)
    assert done.returncode == 4
    said = "error: standard output: No space left on device; free space, then go on with: debug-gym run --resume out"
    assert done.stderr.startswith(said) and done.stderr.count("\n") == 1


# a directory that goes while the run is played

GOES = {"removed": "rm -rf {out}", "emptied": "rm -rf {out}/*", "moved": "mv {out} {out}-2"}
GONE = (
    "error: out was removed or moved while the run was played, with its run.json, results.jsonl, trajectories and "
    "patches: there is nothing to resume\n"
)


@pytest.mark.parametrize("goes", ["removed", *repeated("faults", "emptied", "moved")])
def test_a_directory_that_goes_ends_the_run_and_leaves_the_table(inside: Any, tmp_path: Path, goes: str) -> None:
    command = GOES[goes].format(out=tmp_path / "out")
    done = inside("run", "toy", "-o", "out", "-p", f"agent.commands={{b: '{command}'}}")
    assert (done.status, done.err) == (1, GONE)
    assert "toy/a  resolved" in done.out and "toy/b: stopped" in done.out and "results in" not in done.out
    assert "resolved 1 of 1, 1 not finished, 1 not played" in done.out
    assert not (tmp_path / "out/toy/c").exists()


def test_a_directory_that_goes_with_the_only_task_says_the_same(inside: Any, tmp_path: Path) -> None:
    command = f"rm -rf {tmp_path}/out"
    done = inside("run", "toy", "-o", "out", "--task", "b", "-p", f"agent.commands={{b: '{command}'}}")
    assert (done.status, done.err) == (1, GONE)
    assert "resolved 0 of 0, 1 not finished" in done.out


REPLACED = (
    "error: out/results.jsonl was replaced or removed while the run was played: episodes whose results it does not "
    f"have are played again; go on with: debug-gym run --resume out --plugin-file {TOY}\n"
)


@pytest.mark.parametrize(
    "goes", ["cp {0} {0}.2; mv {0}.2 {0}", *repeated("faults", "rm {0}")], ids=["replaced", "removed"]
)
def test_results_that_are_replaced_end_the_run_which_can_be_resumed(inside: Any, tmp_path: Path, goes: str) -> None:
    once = f"test -e {tmp_path}/once || {{ touch {tmp_path}/once; %s; }}"
    command = once % goes.format(tmp_path / "out/results.jsonl")
    done = inside("run", "toy", "-o", "out", "-p", f"agent.commands={{b: '{command}'}}")
    assert (done.status, done.err) == (1, REPLACED)
    assert "toy/a  resolved" in done.out and "toy/b: stopped" in done.out and "results in out" in done.out
    done = inside("run", "--resume", "out")
    assert "resolved 3 of 3" in done.out and done.err == ""


@pytest.mark.parametrize(
    ("agent", "said"), [("remover", ""), ("fixer", "\nresolved 0 of 0, 3 not played")], ids=["prepared", "begun"]
)
def test_a_directory_that_goes_before_the_first_episode_is_no_wrong_usage(
    inside: Any, tmp_path: Path, agent: str, said: str
) -> None:
    removing = 'shutil.rmtree("out", ignore_errors=True)'
    write_agent(tmp_path / "removers.py", "remover", made=removing, begun=removing)
    done = inside("run", "toy", "-o", "out", "--agent", agent, "--plugin-file", "removers.py")
    assert (done.status, done.err) == (1, GONE) and done.out.startswith(said)
    assert not (tmp_path / "out").exists()


def test_ctrl_c_before_the_episodes_names_no_command_for_a_directory_that_has_gone(inside: Any, tmp_path: Path) -> None:
    leaving = 'if Path("armed").exists():\n    shutil.rmtree("out")\n    signal.raise_signal(signal.SIGINT)'
    write_agent(tmp_path / "leaver.py", "leaver", made=leaving)
    plugin = ("--plugin-file", "leaver.py")
    inside("run", "toy", "-o", "out", "--agent", "leaver", "--task", "a", *plugin)
    (tmp_path / "armed").touch()
    done = inside("run", "--resume", "out", "--force-all", *plugin)
    assert (done.status, done.err) == (130, GONE)


# names that are not UTF-8


def test_names_that_are_not_utf_8(gym: Any, inside: Any, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        'benchmark: {name: toy, tasks: [a]}\nagent: {name: fixer, commands: {b: "caf\\udcff"}}\n'
    )
    done = gym("run", "config.yaml", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out/run.json").read_text())["config"]["agent"]["commands"] == {"b": "caf\udcff"}
    assert inside("run", "--resume", "out").status == 0


@pytest.mark.people
def test_a_directory_that_is_not_utf_8(environment: dict[str, str], tmp_path: Path) -> None:
    directory = Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xff"))
    directory.mkdir()
    done = shell(f'gym run toy --task a -o "$PWD/out" --plugin-file {TOY}; ls out', environment, directory)
    assert "bug" not in done.stderr and "resolved 1 of 1" in done.stdout, done.stderr
    assert "results.jsonl" in done.stdout


# output that nobody reads


@pytest.mark.parametrize(
    "command", ["run toy --list", *repeated("faults", "tasks toy", "plugins", "config show toy", "config schema")]
)
def test_closed_output_is_no_bug(environment: dict[str, str], tmp_path: Path, command: str) -> None:
    done = shell(f"gym {command} --plugin-file {TOY} >&-", environment, tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert all(line.startswith("note: ") for line in done.stderr.splitlines()), done.stderr


def test_warnings_that_nobody_reads_end_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            tried.append(str(text))
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    EchoHandler().emit(logging.LogRecord("debug_gym", logging.WARNING, __file__, 1, "it is so", None, None))
    assert "it is so" in "".join(tried)


@pytest.mark.faults
def test_a_run_whose_reader_goes_says_how_to_go_on(gym: Any, environment: dict[str, str], tmp_path: Path) -> None:
    script = f"set -o pipefail; gym run toy -o out --plugin-file {TOY} | head -1"
    done = shell(script, environment, tmp_path)
    assert done.returncode == 141 and done.stdout.startswith("[1/3] toy/a: resolved")
    (line,) = done.stderr.splitlines()
    assert line.startswith("stopped, as nobody reads the output any more; go on with: debug-gym run --resume out")
    assert gym("run", "--resume", "out").returncode == 0


# configs that are made to harm


@pytest.mark.parametrize("text", [BOMB, BOMB + "tools: {<<: [*a8]}\n"])
def test_aliases_that_stand_for_millions_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"config.yaml: its aliases stand for more than 100,000 values"):
        read_text(text, "config.yaml")


@pytest.mark.parametrize("depth", [60, 500, *repeated("faults", 5000)])
def test_lists_that_lie_deep_in_each_other_are_refused(inside: Any, tmp_path: Path, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    (tmp_path / "deep.yaml").write_text(f"benchmark: {{name: toy}}\nagent: {{name: noop_agent, x: {deep}}}\n")
    for words in (["deep.yaml"], ["toy", "-p", f"agent.x={deep}"]):
        done = inside("run", *words)
        assert (done.status, done.err.count("\n")) == (2, 1), done.err
        assert "more than 50 lists and mappings within each other" in done.err


def test_aliases_that_stand_for_millions_are_refused_on_the_command_line(inside: Any) -> None:
    value = (
        "[&a [1], " + ", ".join(f"&{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in itertools.pairwise("abcdefgh")) + "]"
    )
    done = inside("run", "toy", "--list", "-p", f"agent.commands={value}")
    assert done.status == 2 and "-p agent.commands: its aliases stand for more than 100,000 values" in done.err


def test_a_long_config_without_aliases_is_read() -> None:
    assert len(read_text(f"a: [{'1, ' * 5000}1]\nb: &b [1]\nc: *b\n", "x").data["a"]) == 5001


def test_other_values_of_a_run_are_shown_short(inside: Any) -> None:
    assert inside("run", "toy", "--task", "a", "-o", "out").status == 0
    done = inside("run", "toy", "-o", "out", "-p", f"agent.commands={{b: {'x' * 3000}}}", "-p", "agent.max_steps=3")
    assert done.status == 2 and "agent.commands was {}" in done.err and "agent.max_steps was 7, is now 3" in done.err
    assert len(done.err) < 500 and "xxx..." in done.err
