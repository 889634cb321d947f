"""`terminal.setup`: run once, kept by what decides the result, and the same for every sandbox that starts from it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support import reason_not_to_use, run_debug_gym, terminals

from debug_gym_core import RepoEnv, ToolCall, make
from debug_gym_core.errors import RequirementError, SandboxError
from debug_gym_core.plugins import default_plugins, load_plugins
from debug_gym_core.sandbox import kept_setups
from debug_gym_core.testing.sample import write_sample
from debug_gym_core.testing.waiting import processes_with, wait_until

STAMP = "cat /proc/sys/kernel/random/uuid > stamp"
"""A command whose result is another each time that it runs."""

TEST = "import unittest\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        "
UNITTEST = "python -m unittest -q"

BACKEND = """
import os, zipfile

def build_editable(directory, config_settings=None, metadata_directory=None):
    files = {
        "thing.pth": os.path.abspath("src") + "\\n",
        "thing-1.dist-info/METADATA": "Metadata-Version: 2.1\\nName: thing\\nVersion: 1\\n",
        "thing-1.dist-info/WHEEL": "Wheel-Version: 1.0\\nGenerator: own\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files["thing-1.dist-info/RECORD"] = "".join(path + ",,\\n" for path in (*files, "thing-1.dist-info/RECORD"))
    with zipfile.ZipFile(os.path.join(directory, "thing-1-py3-none-any.whl"), "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    os.mkdir("src/thing.egg-info")
    open("src/thing.egg-info/PKG-INFO", "w").close()
    return "thing-1-py3-none-any.whl"
"""
"""A build backend that needs nothing, and leaves something in the repository as others do."""

EDITABLE = {
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    "backend.py": BACKEND,
    "src/thing/__init__.py": "VALUE = 1\n",
}
"""A repository that can be installed."""

Make = Callable[..., RepoEnv]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where setups are kept in this test; whatever is kept at its end is removed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield tmp_path / "cache" / "debug-gym" / "setup"
    assert kept_setups.remove_all(default_plugins().terminals)[1] == []


def settings_of(terminal: str) -> dict[str, Any]:
    """Settings of a terminal; the test is skipped where it cannot be used."""
    reason = reason_not_to_use(terminal)
    if reason:
        pytest.skip(reason)
    return {"image": os.environ["DEBUG_GYM_TEST_IMAGE"]} if terminal == "docker" else {}


@pytest.fixture(params=terminals("bubblewrap", "docker"))
def keeping(request: pytest.FixtureRequest) -> str:
    """Each terminal that keeps what setting up made."""
    settings_of(request.param)
    return str(request.param)


def python_of(terminal: str, installer: str) -> str | None:
    """The Python with pip: the image's, or one of this machine."""
    return os.environ.get("DEBUG_GYM_TEST_PYTHON") if terminal == "docker" else installer


@pytest.fixture(scope="session")
def installer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python of this machine with pip."""
    directory = tmp_path_factory.mktemp("installer") / "venv"
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    return str(directory / "bin" / "python")


@pytest.fixture
def open_env(tmp_path: Path, installer: str) -> Iterator[Make]:
    """Make an environment of a repository and reset it; all are closed at the end."""
    made: list[RepoEnv] = []

    def open_env(
        terminal: str,
        setup: list[str],
        files: Mapping[str, str | bytes] | None = None,
        *,
        tell: Callable[[str], None] = lambda text: None,
        tools: tuple[str, ...] = ("eval", "bash", "rewrite"),
        **settings: Any,
    ) -> RepoEnv:
        repository = write_sample(tmp_path / "repository", files or {"test_it.py": f"{TEST}pass\n"})
        more = settings.pop("settings", {})
        settings.setdefault("python", python_of(terminal, installer))
        env = make(
            "repo",
            list(tools),
            {terminal: {**settings_of(terminal), "setup": setup, **more}},
            path=repository,
            notify=tell,
            allow_unsandboxed=True,
            **{"entrypoint": UNITTEST, **settings},
        )
        made.append(env)
        env.reset(seed=0)
        return env

    try:
        yield open_env
    finally:
        for env in made:
            env.close()


def write_wheel(directory: Path, name: str) -> None:
    """A wheel with a module and a program."""
    directory.mkdir(parents=True, exist_ok=True)
    about = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": "VALUE = 42\n\ndef main():\n    print('value', VALUE)\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": f"[console_scripts]\n{name}-says = {name}:main\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(directory / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)


def output(env: RepoEnv, command: str) -> str:
    """What a command that must not fail prints."""
    result = env.terminal.run(command, timeout=60)
    assert result.exit_status == 0, result.output
    return result.output


def left(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir()) if cache.is_dir() else []


def test_what_pip_installs_is_there_in_every_sandbox(keeping: str, open_env: Make, tmp_path: Path, cache: Path) -> None:
    write_wheel(tmp_path / "repository" / "wheels", "tinything")
    test = f"{TEST}import tinything; self.assertEqual(tinything.VALUE, 42)\n"
    setup = ["pip install --no-index --find-links wheels tinything", STAMP]
    stamps, said = [], list[str]()
    for _ in range(2):
        env = open_env(keeping, setup, {"test_it.py": test}, tell=said.append)
        assert env.step(ToolCall("eval"))[4]["resolved"]
        assert env.patch == b""
        assert output(env, "tinything-says; python3 -c 'import tinything'") == "value 42\n"
        # Whatever the agent does, the next sandbox is as this one was.
        assert env.terminal.run("echo VALUE = 1 > $(python -c 'import tinything as t; print(t.__file__)')").exit_status
        assert env.grade().resolved
        stamps.append(output(env, "cat stamp"))
        env.close()
    assert stamps[0] == stamps[1]
    assert said == ["setting up repo/repository: 2 commands (once, the result is kept for later runs)"]


def test_the_packages_below_are_seen_and_pip_comes_along(open_env: Make, tmp_path: Path) -> None:
    """Over a virtual environment without pip, whose pytest runs the tests."""
    write_wheel(tmp_path / "repository" / "wheels", "tinything")
    if (Path(sys.prefix) / "lib" / f"python3.{sys.version_info[1]}" / "site-packages" / "pip").exists():
        pytest.skip("this Python has pip of its own")
    setup = ["pip install --no-index --find-links wheels tinything"]
    test = "import tinything\n\ndef test_it():\n    assert tinything.VALUE == 42\n"
    env = open_env("bubblewrap", setup, {"test_it.py": test}, python=sys.executable, entrypoint="python -m pytest -q")
    assert env.step(ToolCall("eval"))[4]["resolved"]
    assert env.grade().resolved
    assert "pytest" in output(env, "pytest --version")


def test_an_editable_install_follows_the_workspace(keeping: str, open_env: Make) -> None:
    files = {**EDITABLE, "tests/test_it.py": f"{TEST}import thing; self.assertEqual(thing.VALUE, 2)\n"}
    setup = ["pip install --no-index -e ."]
    for _ in range(2):
        env = open_env(keeping, setup, files, entrypoint="python -m unittest discover -q tests")
        assert not env.step(ToolCall("eval"))[4]["resolved"]
        env.step(ToolCall("rewrite", {"path": "src/thing/__init__.py", "start": 1, "new_code": "VALUE = 2"}))
        assert env.step(ToolCall("eval"))[4]["resolved"]
        assert env.grade().resolved
        assert env.patch.count(b"diff --git") == 1
        assert output(env, "ls -d src/*.egg-info") == "src/thing.egg-info\n"
        env.close()


def test_the_workspace_is_as_the_commands_left_it(keeping: str, open_env: Make) -> None:
    files = {"keep.txt": "keep\n", "gone.txt": "gone\n", "old/a": "a\n", "was-a-file": "x\n", "was/a": "directory\n"}
    setup = [
        "rm -r gone.txt old was-a-file was; mkdir -p was-a-file new/deep empty; echo file > was; ln -s keep.txt link",
        "echo made > new/deep/made.txt; printf '#!/bin/sh\\n' > run; chmod 755 run; chmod 700 empty",
        "echo more >> keep.txt",
        "mkdir __pycache__; touch __pycache__/x.pyc; printf 'bytes' > \"$(printf 'na\\377me')\"",
    ]
    listing = "find . -mindepth 1 -name __pycache__ -prune -o -printf '%p %y %m %l %Ts\\n' | sort"
    seen = []
    for _ in range(2):
        env = open_env(keeping, setup, {**files, "test_it.py": f"{TEST}pass\n"})
        assert env.patch == b""
        assert env.rewrites == 0
        seen.append(output(env, listing) + output(env, "cat keep.txt was new/deep/made.txt na*"))
        env.close()
    assert seen[0] == seen[1]
    assert "./new/deep/made.txt f 644" in seen[0] and "./run f 755" in seen[0] and "./empty d 700" in seen[0]
    assert "./link l 777 keep.txt" in seen[0] and "gone" not in seen[0] and "old" not in seen[0]
    assert seen[0].endswith("keep\nmore\nfile\nmade\nbytes")


def test_what_the_agent_does_to_what_was_made_is_its_change(keeping: str, open_env: Make) -> None:
    test = f"{TEST}self.assertEqual(open('made').read(), 'mine\\n')\n"
    env = open_env(keeping, ["echo made > made; echo other > other"], {"test_it.py": test})
    assert not env.grade().resolved
    env.step(ToolCall("rewrite", {"path": "made", "new_code": "mine\n"}))
    assert env.patch.count(b"diff --git") == 1 and b"+mine" in env.patch
    assert env.grade().resolved


def test_another_command_or_repository_is_set_up_anew(open_env: Make, cache: Path) -> None:
    stamps = set()
    for setup, value in ([STAMP], 1), ([STAMP, "true"], 1), ([STAMP, "true"], 2), ([STAMP], 1):
        env = open_env("bubblewrap", setup, {"value": str(value), "test_it.py": f"{TEST}pass\n"})
        stamps.add(output(env, "cat stamp"))
        env.close()
    assert len(stamps) == 3
    assert len([name for name in left(cache) if not name.endswith(".lock")]) == 3


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


def test_a_command_that_fails_leaves_nothing(keeping: str, open_env: Make, cache: Path) -> None:
    with pytest.raises(RequirementError) as caught:
        open_env(keeping, ["true", "echo first; echo last words; exit 7"])
    assert str(caught.value) == (
        "terminal.setup: 'echo first; echo last words; exit 7' ended with status 7: first / last words"
    )
    assert left(cache) == []
    env = open_env(keeping, ["true", "exit 0"])  # and what was wrong can be mended
    assert env.step(ToolCall("eval"))[4]["resolved"]


def test_no_network_is_named_when_it_is_missed(open_env: Make) -> None:
    with pytest.raises(RequirementError, match=r"it has no network; terminal\.network: host gives it"):
        open_env("bubblewrap", ["pip install --retries 0 --timeout 1 no-such-distribution-at-all"])


def test_the_network_is_there_only_when_granted(keeping: str, open_env: Make) -> None:
    look = ["tail -n +3 /proc/net/dev | cut -d: -f1 | sort > interfaces"]
    env = open_env(keeping, look)
    assert output(env, "cat interfaces").split() == ["lo"]
    granted = open_env(keeping, look, settings={"network": "host"})
    ours = Path("/proc/net/dev").read_text().splitlines()[2:]
    assert sorted(output(granted, "cat interfaces").split()) == sorted(line.split(":")[0].strip() for line in ours)


def test_what_is_required_may_come_by_setting_up(open_env: Make, installer: str) -> None:
    """The interpreter itself has no pytest."""
    entrypoint = {"entrypoint": "python -m pytest -q"}
    files = {"test_it.py": "def test_it():\n    pass\n"}
    with pytest.raises(
        RequirementError, match=rf"{re.escape(installer)} has no pytest; get it with: {installer} -m pip"
    ):
        open_env("bubblewrap", ["true"], files, **entrypoint)
    # What an installation of it would leave, as far as anybody looks.
    made = "cd $VIRTUAL_ENV/lib/python*/site-packages; mkdir pytest-9.9.dist-info; echo 'def main(): 0' > pytest.py"
    with pytest.raises(Exception, match="finds no test") as caught:
        open_env("bubblewrap", [made], files, **entrypoint)
    assert not isinstance(caught.value, RequirementError)


def test_hostile_commands_gain_nothing_on_the_host(open_env: Make, tmp_path: Path, cache: Path) -> None:
    """What they put in the place of the environment's programs is neither run here nor followed."""
    secret = tmp_path / "secret.txt"
    secret.write_text("what nobody may see\n")
    ran = tmp_path / "ran"
    trap = f'#!/bin/sh\\ntouch {ran}\\nexec /usr/bin/env python3 "$@"\\n'
    setup = [
        "cd $VIRTUAL_ENV; rm -r bin/python bin/python3 lib64 pyvenv.cfg; ln -s / root; mkdir closed; chmod 0 closed",
        f"cd $VIRTUAL_ENV; printf '{trap}' > bin/python3; chmod 4755 bin/python3; mkfifo pipe",
        f"cd $VIRTUAL_ENV; ln -s {secret} bin/python; ln -s {secret.parent} lib64; echo home = {tmp_path} > pyvenv.cfg",
        f"cd $VIRTUAL_ENV; echo 'import os; os.system(\"touch {ran}\")' > $(echo lib/python*/site-packages)/x.pth",
    ]
    for _ in range(2):
        env = open_env("bubblewrap", setup)
        assert env.terminal.run(["cat", str(secret)]).exit_status != 0
        assert env.step(ToolCall("eval"))[4]["resolved"]
        env.close()
    assert not ran.exists()
    (environment,) = cache.glob("*/environment")
    assert not (environment / "pipe").exists()
    for path in environment.rglob("*"):
        about = path.lstat()
        assert about.st_uid == os.geteuid()
        assert path.is_symlink() or not about.st_mode & 0o6022, path


def test_the_environment_itself_cannot_be_replaced(open_env: Make, cache: Path, tmp_path: Path) -> None:
    with pytest.raises(RequirementError, match="replaced the environment's directory bin"):
        open_env("bubblewrap", [f"mv $VIRTUAL_ENV/bin $VIRTUAL_ENV/aside; ln -s {tmp_path} $VIRTUAL_ENV/bin"])
    assert left(cache) == []


def test_a_full_disk_ends_it_and_leaves_nothing(open_env: Make, tmp_path: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", cache]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root can make a small disk to fill")
    try:
        with pytest.raises(RequirementError, match="No space left on device"):
            open_env("bubblewrap", ["head -c 3000000 /dev/zero > $VIRTUAL_ENV/big"])
        assert left(cache) == []
        with pytest.raises(RequirementError) as caught:
            open_env("bubblewrap", ["head -c 3000000 /dev/zero > big"])
        assert str(caught.value).startswith(
            f"terminal.setup: what it makes is kept in {cache}: No space left on device; "
        )
        assert left(cache) == []
    finally:
        subprocess.run(["umount", cache], check=True)


def test_closing_the_environment_ends_setting_up(keeping: str, open_env: Make, cache: Path) -> None:
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
    assert left(cache) == []


@pytest.mark.terminals
def test_local_sets_up_in_each_sandbox_and_leaves_your_python_alone(
    open_env: Make, installer: str, cache: Path, tmp_path: Path
) -> None:
    """As the workspace's place is another each time, an editable install is of this sandbox only."""
    write_wheel(tmp_path / "repository" / "wheels", "tinything")
    test = f"{TEST}import thing, tinything; self.assertEqual(thing.VALUE, tinything.VALUE)\n"
    files = {**EDITABLE, "tests/test_it.py": test}
    setup = ["pip install --no-index --find-links wheels -e . tinything", STAMP]
    packages = [installer, "-c", "import site; print(site.getsitepackages()[0])"]
    site = Path(subprocess.run(packages, check=True, capture_output=True, text=True).stdout.strip())
    before = sorted(site.iterdir())
    stamps = []
    for graded in (True, False):
        env = open_env("local", setup, files, entrypoint="python -m unittest discover -q tests")
        stamps.append(output(env, "cat stamp"))
        assert output(env, "tinything-says") == "value 42\n"
        assert env.patch == b""
        env.step(ToolCall("rewrite", {"path": "src/thing/__init__.py", "start": 1, "new_code": "VALUE = 42"}))
        assert env.step(ToolCall("eval"))[4]["resolved"]
        assert not graded or env.grade().resolved
        env.close()
    assert stamps[0] != stamps[1]
    assert sorted(site.iterdir()) == before
    assert left(cache) == []
    with pytest.raises(RequirementError, match="'exit 3' ended with status 3"):
        open_env("local", ["exit 3"])
    with pytest.raises(RequirementError, match=r"'true +' cannot be started: .*too long"):
        open_env("local", ["true" + " " * 200_000])


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
    keeping: str, tmp_path: Path, installer: str, open_env: Make, cache: Path
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
        assert len([path for path in cache.iterdir() if path.is_dir()]) == 1
        assert not list(cache.glob("*/setup.json"))
    done = run_debug_gym(["doctor", "--clean"], tmp_path)
    assert "removed setup: unfinished, " in done.stdout
    assert left(cache) == []


def rows_of(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, str]]:
    """What `doctor --json` found, by name."""
    return {str(item["name"]): item for item in json.loads(done.stdout)}


def test_doctor_lists_and_removes_what_is_kept(keeping: str, open_env: Make, cache: Path, tmp_path: Path) -> None:
    env = open_env(keeping, ["echo made > made"])
    (kept,) = kept_setups.all_kept()
    backend = default_plugins().terminals[keeping]
    assert kept.size > 0 and backend.has_image(kept.image)
    detail = rows_of(run_debug_gym(["doctor", "--json"], tmp_path))["setups"]["detail"]
    assert re.match(rf"{cache}, 1 kept, [1-9][0-9.]* [kM]B; ", detail)
    done = run_debug_gym(["doctor", "--clean", "--setups"], tmp_path)
    assert done.returncode == 1 and f"error: setup {kept.place.name} is in use" in done.stderr
    env.close()
    done = run_debug_gym(["doctor", "--clean", "--setups"], tmp_path)
    assert done.returncode == 0 and f"removed setup {kept.place.name} (echo made > made)" in done.stdout
    assert left(cache) == []
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


def test_a_terminal_that_keeps_nothing_runs_them_in_each_sandbox(tmp_path: Path, installer: str, cache: Path) -> None:
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
        assert left(cache) == []
    finally:
        env.close()


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
