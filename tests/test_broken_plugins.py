"""Broken plugins, installed for real: everything else works, `plugins` names each with its cause, using one exits 3."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from debug_gym_core.testing.sample import ENTRYPOINT

GOOD_TOOL = '''
from debug_gym_core import Tool, hookimpl

class {cls}(Tool):
    """A tool of a third party."""
    name = "{name}"
    def use(self, env):
        """Say hello."""
        return "hello"

@hookimpl
def debug_gym_register_tools():
    return [{cls}]
'''

BROKEN = {
    "importerror": ("import nosuchmodule_of_anybody\n", "nosuchmodule_of_anybody"),
    "exits": ("import sys\nsys.exit('leaving at import')\n", "leaving at import"),
    "panicking": (
        "class PanicException(BaseException): pass\n\nraise PanicException('no interpreter')\n",
        "PanicException: no interpreter",
    ),
    "misspelt": (
        "from debug_gym_core import hookimpl\n\n@hookimpl\ndef debug_gym_register_toolz():\n    return []\n",
        "there is no hook 'debug_gym_register_toolz'; did you mean 'debug_gym_register_tools'",
    ),
    "raising": (
        "from debug_gym_core import hookimpl\n\n"
        "@hookimpl\ndef debug_gym_register_tools():\n    raise OSError('no disk')\n",
        "OSError: no disk",
    ),
    "clashing": (GOOD_TOOL.format(cls="Listdir", name="listdir"), "debug-gym-tool-listdir"),
    "outdated": (GOOD_TOOL.format(cls="Outdated", name="outdated"), "it needs debug-gym-core>=99"),
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which all of them, and a good one, are installed beside ours."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("needs uv on the PATH: pip install uv")
    base = tmp_path_factory.mktemp("plugins")
    for name, source in {**{name: source for name, (source, _) in BROKEN.items()},
                         "good": GOOD_TOOL.format(cls="Good", name="good")}.items():  # fmt: skip
        project = base / name
        project.mkdir()
        (project / f"acme_{name}.py").write_text(source)
        core = '"debug-gym-core>=99"' if name == "outdated" else '"debug-gym-core>=0.1,<0.2"'
        if name == "good":  # what others need is no business of ours, nor what is for another Python
            core += """, "debug-gym-core-extras>=99", "Debug.Gym_Core>=99; python_version < '3'\""""
        (project / "pyproject.toml").write_text(
            f"""[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "acme-tool-{name}"
version = "1.2.3"
dependencies = [{core}]
[project.entry-points.debug_gym]
acme-{name} = "acme_{name}"
[tool.hatch.build.targets.wheel]
include = ["acme_{name}.py"]
"""
        )
    target = base / "site"
    subprocess.run(
        [uv, "pip", "install", "-q", "--no-deps", "--target", target, *(base / name for name in [*BROKEN, "good"])],
        check=True,
    )
    return {**os.environ, "PYTHONPATH": str(target), "COLUMNS": "200"}


def debug_gym(env: dict[str, str], *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).parent / "debug-gym"
    return subprocess.run(
        [command, *arguments], env=env, cwd=cwd, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=120
    )


@pytest.mark.smoke
def test_plugins_names_each_with_its_cause(installed: dict[str, str]) -> None:
    result = debug_gym(installed, "plugins", "--json")
    assert result.returncode == 0, result.stderr
    records = {record["name"]: record for record in json.loads(result.stdout)}
    for name, (_, cause) in BROKEN.items():
        record = records[f"acme-{name}"]
        assert record["state"] == "failed"
        assert record["distribution"] == f"acme-tool-{name}"
        assert record["version"] == "1.2.3"
        assert cause in record["cause"]
    assert records["acme-good"]["state"] == "loaded"
    assert records["tool-view"]["state"] == "loaded"


@pytest.mark.parametrize("command", [("plugins",), pytest.param(("tasks", "mini_nightmare"), marks=pytest.mark.people)])
def test_each_is_reported_once_on_stderr_without_a_traceback(installed: dict[str, str], command: tuple[str]) -> None:
    result = debug_gym(installed, *command)
    assert result.returncode == 0
    for name in set(BROKEN) - {"clashing"}:
        assert result.stderr.count(f"acme-{name} ") == 1, result.stderr
    assert result.stderr.count("tool 'listdir' is provided by acme-tool-clashing and debug-gym-tool-listdir") == 1
    assert "Traceback" not in result.stderr + result.stdout


def test_check_fails_for_each_and_for_no_other(installed: dict[str, str]) -> None:
    result = debug_gym(installed, "plugins", "--check", "--json")
    assert result.returncode == 3
    failed = {item["plugin"] for item in json.loads(result.stdout) if item["state"] == "failed"}
    assert failed == {*(f"acme-{name}" for name in BROKEN), "tool-listdir"}


def test_doctor_shows_each(installed: dict[str, str]) -> None:
    found = json.loads(debug_gym(installed, "doctor", "--json").stdout)
    failed = {item["name"]: item["detail"] for item in found if item["kind"] == "plugin"}
    for name, (_, cause) in BROKEN.items():
        assert cause in failed[f"acme-{name}"]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if number == 0 else pytest.mark.people) for number, name in enumerate(sorted(BROKEN))],
)
def test_using_it_exits_3_with_the_cause(installed: dict[str, str], name: str, tmp_path: Path) -> None:
    tool = "listdir" if name == "clashing" else name
    result = debug_gym(
        installed, "run", "mini_nightmare", "--agent", "noop_agent", "--task", "counter",
        "-p", f"tools=[{tool}]", "-o", str(tmp_path / "run"), cwd=tmp_path,
    )  # fmt: skip
    assert result.returncode == 3, result.stderr
    assert BROKEN[name][1] in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.people
def test_the_rest_works(installed: dict[str, str], tmp_path: Path) -> None:
    result = debug_gym(
        installed, "run", "mini_nightmare", "--agent", "solution_agent", "--task", "tomorrow_date",
        "-p", f"env.entrypoint={ENTRYPOINT} test.py", "-o", str(tmp_path / "run"), cwd=tmp_path,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "run" / "results.jsonl").read_text())["resolved"] is True


def test_a_clash_is_told_apart_by_distribution(installed: dict[str, str]) -> None:
    code = (
        "from debug_gym_core import load_plugins; p = load_plugins();"
        "print(p.get('tools', 'debug-gym-tool-listdir:listdir').__module__, p.get('tools', 'good').__module__)"
    )
    result = subprocess.run([sys.executable, "-c", code], env=installed, text=True, capture_output=True, check=True)
    assert result.stdout.split() == ["debug_gym_tool_listdir", "acme_good"]


def test_some_can_be_left_out_before_they_are_imported(installed: dict[str, str]) -> None:
    env = {**installed, "DEBUG_GYM_DISABLE_PLUGINS": ",".join(f"acme-{name}" for name in BROKEN)}
    result = debug_gym(env, "plugins")
    assert result.returncode == 0
    assert result.stderr == ""
