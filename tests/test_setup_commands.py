"""`terminal.setup`: what its commands may do, what they leave for every sandbox, and what is said when they fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from setups import EDITABLE, STAMP, TEST, Make, left, output, write_wheel

from debug_gym_core import ToolCall
from debug_gym_core.errors import RequirementError

pytestmark = pytest.mark.usefixtures("setup_cache")


@pytest.mark.terminals
def test_what_pip_installs_is_there_in_every_sandbox(
    keeping: str, open_env: Make, tmp_path: Path, setup_cache: Path
) -> None:
    write_wheel(tmp_path / "repository" / "wheels", "tinything")
    test = f"{TEST}import tinything; self.assertEqual(tinything.VALUE, 42)\n"
    setup = ["pip install --no-index --find-links wheels tinything", STAMP]
    stamps, said = [], list[str]()
    for _ in range(2):
        env = open_env(keeping, setup, {"test_it.py": test, "app.py": ""}, tell=said.append)
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
    env.step(ToolCall("rewrite", {"path": "made", "new_code": "mine\n"}))
    assert env.patch.count(b"diff --git") == 1 and b"+mine" in env.patch
    assert env.grade().resolved


@pytest.mark.terminals
def test_a_command_that_fails_leaves_nothing(keeping: str, open_env: Make, setup_cache: Path) -> None:
    with pytest.raises(RequirementError) as caught:
        open_env(keeping, ["true", "echo first; echo last words; exit 7"])
    assert str(caught.value) == (
        "terminal.setup: 'echo first; echo last words; exit 7' ended with status 7: first / last words"
    )
    assert left(setup_cache) == []
    env = open_env(keeping, ["true", "exit 0"])  # and what was wrong can be mended
    assert env.step(ToolCall("eval"))[4]["resolved"]


@pytest.mark.terminals
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


@pytest.mark.terminals
def test_hostile_commands_gain_nothing_on_the_host(open_env: Make, tmp_path: Path, setup_cache: Path) -> None:
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
    (environment,) = setup_cache.glob("*/environment")
    assert not (environment / "pipe").exists()
    for path in environment.rglob("*"):
        about = path.lstat()
        assert about.st_uid == os.geteuid()
        assert path.is_symlink() or not about.st_mode & 0o6022, path


def test_the_environment_itself_cannot_be_replaced(open_env: Make, setup_cache: Path, tmp_path: Path) -> None:
    with pytest.raises(RequirementError, match="replaced the environment's directory bin"):
        open_env("bubblewrap", [f"mv $VIRTUAL_ENV/bin $VIRTUAL_ENV/aside; ln -s {tmp_path} $VIRTUAL_ENV/bin"])
    assert left(setup_cache) == []


@pytest.mark.terminals
def test_local_sets_up_in_each_sandbox_and_leaves_your_python_alone(
    open_env: Make, installer: str, setup_cache: Path, tmp_path: Path
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
    assert left(setup_cache) == []
    with pytest.raises(RequirementError, match="'exit 3' ended with status 3: it printed nothing"):
        open_env("local", ["exit 3"])
    with pytest.raises(RequirementError, match=r"'true +' cannot be started: .*too long"):
        open_env("local", ["true" + " " * 200_000])
