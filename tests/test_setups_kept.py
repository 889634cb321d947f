"""`terminal.setup` is run once: what it made is kept by what decides it, shared, ended whole, listed and removed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from setups import STAMP, TEST, UNITTEST, Make, left, output, python_of, settings_of
from support import call_debug_gym, run_debug_gym

from debug_gym_core import RepoEnv, make
from debug_gym_core.errors import RequirementError, SandboxError
from debug_gym_core.plugins import default_plugins, load_plugins
from debug_gym_core.sandbox import kept_setups
from debug_gym_core.testing.sample import write_sample
from debug_gym_core.testing.waiting import processes_with, wait_until

pytestmark = pytest.mark.usefixtures("setup_cache")


@pytest.mark.terminals
def test_another_command_or_repository_is_set_up_anew(open_env: Make, setup_cache: Path) -> None:
    stamps = set()
    for setup, value in ([STAMP], 1), ([STAMP, "true"], 1), ([STAMP, "true"], 2), ([STAMP], 1):
        env = open_env("bubblewrap", setup, {"value": str(value), "test_it.py": f"{TEST}pass\n"})
        stamps.add(output(env, "cat stamp"))
        env.close()
    assert len(stamps) == 3
    assert len([name for name in left(setup_cache) if not name.endswith(".lock")]) == 3


@pytest.mark.terminals
def test_a_package_that_comes_to_the_interpreter_is_no_secret(open_env: Make, tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    stamps = []
    for version in ("1.0", "2.0"):
        (site / f"other-{version}.dist-info").mkdir()
        env = open_env("bubblewrap", [STAMP], python=str(python))
        stamps.append(output(env, "cat stamp"))
        env.close()
        (site / f"other-{version}.dist-info").rmdir()
    assert stamps[0] != stamps[1]


def test_a_full_disk_ends_it_and_leaves_nothing(open_env: Make, tmp_path: Path, setup_cache: Path) -> None:
    setup_cache.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", setup_cache]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root can make a small disk to fill")
    try:
        with pytest.raises(RequirementError, match="No space left on device"):
            open_env("bubblewrap", ["head -c 3000000 /dev/zero > $VIRTUAL_ENV/big"])
        assert left(setup_cache) == []
        with pytest.raises(RequirementError) as caught:
            open_env("bubblewrap", ["head -c 3000000 /dev/zero > big"])
        assert str(caught.value).startswith(
            f"terminal.setup: what it makes is kept in {setup_cache}: No space left on device; "
        )
        assert left(setup_cache) == []
    finally:
        subprocess.run(["umount", setup_cache], check=True)


def test_closing_the_environment_ends_setting_up(keeping: str, open_env: Make, setup_cache: Path) -> None:
    """Its own, and waiting for another's."""
    told: list[str] = []
    failures: list[BaseException] = []

    def reset(env: RepoEnv) -> None:
        try:
            env.reset(seed=0)
        except SandboxError as error:
            failures.append(error)

    env = open_env(keeping, [])
    envs = [
        make(
            "repo", [], {keeping: {**settings_of(keeping), "setup": ["sleep 1000"]}}, path=env.task.repository,
            entrypoint=UNITTEST, notify=told.append, python=env.settings.python,
        )
        for _ in range(2)
    ]  # fmt: skip
    threads = [threading.Thread(target=reset, args=(env,)) for env in envs]
    for number, thread in enumerate(threads, 1):
        thread.start()
        wait_until(lambda count=number: len(told) == count, "nobody is told", 30)
    assert told[1].startswith("another debug-gym is setting up")
    for env in reversed(envs):
        env.close()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert len(failures) == 2
    assert left(setup_cache) == []


PROGRAM = """
import json, sys
from debug_gym_core import make
options = json.loads(sys.argv[1])
env = make("repo", [], notify=lambda text: print(text, flush=True), allow_unsandboxed=True, **options)
env.reset(seed=0)
print(env.terminal.run("cat stamp").output, end="", flush=True)
env.close()
"""


def start_program(
    repository: Path, terminal: str, setup: list[str], python: str, run: str = "test"
) -> subprocess.Popen[str]:
    """Set up in a process of its own, which prints what it tells and the stamp."""
    options: dict[str, Any] = {"path": str(repository), "entrypoint": UNITTEST, "run": run}
    options["terminal"] = {terminal: {**settings_of(terminal), "setup": setup}}
    options["python"] = python_of(terminal, python)
    command = [sys.executable, "-c", PROGRAM, json.dumps(options)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.terminals
def test_of_two_processes_one_sets_up_and_the_other_waits(tmp_path: Path, installer: str) -> None:
    repository = write_sample(tmp_path / "repository", {"test_it.py": f"{TEST}pass\n"})
    programs = [start_program(repository, "bubblewrap", ["sleep 2", STAMP], installer) for _ in range(2)]
    said = [program.communicate(timeout=120) for program in programs]
    assert [program.returncode for program in programs] == [0, 0], said
    lines = sorted(out.splitlines() for out, _ in said)
    assert lines[0][0] == "another debug-gym is setting up repo/repository: waiting for it"
    assert lines[1][0].startswith("setting up repo/repository: 2 commands")
    assert lines[0][1] == lines[1][1]


def containers_of(run: str) -> str:
    """What the engine has of a run."""
    listing = ["docker", "ps", "--all", "--quiet", "--filter", f"label=run={run}"]
    return subprocess.run(listing, check=True, capture_output=True, text=True).stdout


@pytest.mark.terminals
def test_a_killed_process_leaves_nothing_that_counts(
    keeping: str, tmp_path: Path, installer: str, open_env: Make, setup_cache: Path
) -> None:
    """Of its first command something is there; the next to set up removes it, or `doctor --clean` does."""
    repository = write_sample(tmp_path / "repository", {"test_it.py": f"{TEST}pass\n"})
    run = uuid.uuid4().hex
    marked = f"{STAMP}; DEBUG_GYM_TEST={run} sleep 1000"
    for _ in range(2):
        with start_program(repository, keeping, [marked], installer, run) as program:
            try:
                assert program.stdout is not None and program.stdout.readline().startswith("setting up")
                wait_until(lambda: bool(processes_with(run)), "the command does not run", 30)
            finally:
                program.send_signal(signal.SIGKILL)
        assert program.returncode == -signal.SIGKILL
        wait_until(lambda: not processes_with(run), "the command goes on", 30)
        if keeping == "docker":
            wait_until(lambda: not containers_of(run), "the container is still there", 30)
        assert len([path for path in setup_cache.iterdir() if path.is_dir()]) == 1
        assert not list(setup_cache.glob("*/setup.json"))
    done = run_debug_gym(["doctor", "--clean"], tmp_path)
    assert "removed setup: unfinished, " in done.stdout
    assert left(setup_cache) == []


def rows_of(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, str]]:
    """What `doctor --json` found, by name."""
    return {str(item["name"]): item for item in json.loads(done.stdout)}


def test_doctor_lists_and_removes_what_is_kept(keeping: str, open_env: Make, setup_cache: Path, tmp_path: Path) -> None:
    env = open_env(keeping, ["echo made > made"])
    (kept,) = kept_setups.all_kept()
    backend = default_plugins().terminals[keeping]
    assert kept.size > 0 and backend.has_image(kept.image)
    detail = rows_of(call_debug_gym(["doctor", "--json"], tmp_path))["setups"]["detail"]
    assert re.match(rf"{setup_cache}, 1 kept, [1-9][0-9.]* [kM]B; ", detail)
    done = call_debug_gym(["doctor", "--clean", "--setups"], tmp_path)
    assert done.returncode == 1 and f"error: setup {kept.place.name} is in use" in done.stderr
    env.close()
    done = call_debug_gym(["doctor", "--clean", "--setups"], tmp_path)
    assert done.returncode == 0 and f"removed setup {kept.place.name} (echo made > made)" in done.stdout
    assert left(setup_cache) == []
    assert not kept.image or not backend.has_image(kept.image)


@pytest.mark.terminals
def test_an_image_that_somebody_removed_is_made_again(open_env: Make) -> None:
    stamps = []
    for _ in range(2):
        env = open_env("docker", [STAMP])
        stamps.append(output(env, "cat stamp"))
        env.close()
        (kept,) = kept_setups.all_kept()
        default_plugins().terminals["docker"].remove_image(kept.image)
    assert stamps[0] != stamps[1]


@pytest.mark.terminals
def test_an_image_that_is_removed_meanwhile_is_the_sandboxes_failure(open_env: Make) -> None:
    """So that the episode is tried again, which makes it anew."""
    env = open_env("docker", [STAMP])
    (kept,) = kept_setups.all_kept()
    env.terminal.close()
    default_plugins().terminals["docker"].remove_image(kept.image)
    with pytest.raises(SandboxError, match=r"the image that terminal\.setup made was removed meanwhile"):
        env.reset()
    env.close()
    assert output(open_env("docker", [STAMP]), "cat stamp")


def test_a_terminal_that_keeps_nothing_runs_them_in_each_sandbox(
    tmp_path: Path, installer: str, setup_cache: Path
) -> None:
    terminal = tmp_path / "plain.py"
    terminal.write_text(
        "from debug_gym_core import hookimpl\n"
        "from debug_gym_terminal_local.terminal import LocalTerminal\n\n"
        "class Plain(LocalTerminal):\n"
        '    """Knows nothing of setting up."""\n'
        '    name = "plain"\n'
        "    def start(self, spec):\n"
        "        self.settings = self.settings.model_copy(update={'setup': ()})\n"
        "        super().start(spec)\n\n"
        "@hookimpl\n"
        "def debug_gym_register_terminals():\n    return [Plain]\n"
    )
    plugins = load_plugins(files=[terminal])
    repository = write_sample(tmp_path / "repository", {"test_it.py": f"{TEST}pass\n"})
    settings: dict[str, Any] = {"path": repository, "entrypoint": UNITTEST, "python": installer, "plugins": plugins}
    env = make("repo", [], {"plain": {"setup": [STAMP]}}, allow_unsandboxed=True, **settings)
    try:
        stamps = []
        for _ in range(2):
            env.reset(seed=0)
            stamps.append(output(env, "cat stamp"))
            assert output(env, "python -c 'import sys; print(sys.executable)'").strip() == installer
            assert env.patch == b""
        assert stamps[0] != stamps[1]
        assert left(setup_cache) == []
    finally:
        env.close()


@pytest.mark.terminals
def test_doctor_looks_into_images(tmp_path: Path) -> None:
    image = settings_of("docker")["image"]
    done = run_debug_gym(["doctor", "--json", "--image", image, "--image", "no-such-image"], tmp_path)
    found, absent = rows_of(done)[image], rows_of(done)["no-such-image"]
    assert found["kind"] == "image" and found["detail"].startswith("docker: Python 3.")
    assert found["state"] == "limited" and "has no pytest, pandas; take an image that has" in found["detail"]
    assert absent["state"] == "missing" and absent["detail"] == (
        "docker: it is not here; get it with: docker pull no-such-image"
    )
    assert done.returncode == 4


@pytest.mark.terminals
def test_a_run_says_that_it_sets_up_and_its_workers_share_it(tmp_path: Path, sandbox: str, installer: str) -> None:
    repository = write_sample(tmp_path / "repository", {"test_it.py": f"{TEST}pass\n"})
    command = [
        "run", "repo", "-p", f"benchmark.path={repository}", "-p", f"env.entrypoint={UNITTEST}", "-p", "run.repeats=2",
        "--agent", "noop_agent", "--terminal", sandbox, "-p", f"env.python={installer}", "-n", "2",
        "-p", "env.allow_passing=true", "-p", f"terminal.setup=[{STAMP}, sleep 1]",
    ]  # fmt: skip
    line = "setting up repo/repository: 2 commands (once, the result is kept for later runs)"
    for number, lines in enumerate([1, 0]):
        done = run_debug_gym([*command, "-o", f"run-{number}"], tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(line) + done.stderr.count(line) == lines, done.stdout + done.stderr
    failing = ["-p", "terminal.setup=[echo why; exit 9]", "-p", "run.repeats=1", "-o", "failing"]
    done = run_debug_gym([*command, *failing], tmp_path)
    assert done.returncode == 4
    assert "terminal.setup: 'echo why; exit 9' ended with status 9: why" in done.stdout + done.stderr
