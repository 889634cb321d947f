"""The examples as their readers would use them: built, installed beside our wheels, tested, and run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import run_debug_gym

from debug_gym_core.config import loading
from debug_gym_core.testing import write_sample

pytestmark = pytest.mark.documents

TOP = Path(__file__).parent.parent
EXAMPLES = sorted(path.parent for path in (TOP / "examples").glob("*/pyproject.toml"))
CONFIGS = sorted((TOP / "examples" / "configs").glob("*.yaml"))
OURS = [
    TOP / "debug_gym_core",
    TOP / "debug_gym_agents",
    TOP / "plugins" / "terminals" / "local",
    TOP / "debug_gym_benchmarks",
    TOP / "plugins" / "terminals" / "bubblewrap",
    TOP / "plugins" / "llms" / "scripted",
    *(TOP / "plugins" / "tools" / name for name in ("listdir", "view", "rewrite", "eval", "pdb")),
]
BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROVIDES = {
    "acme-agent-random": {"agents": ["random_agent"]},
    "acme-benchmark-pocket": {"benchmarks": ["pocket"]},
    "acme-results": {"exporters": ["csv"]},
    "acme-terminal-prlimit": {"terminals": ["prlimit"]},
    "acme-tool-syntax": {"tools": ["syntax"]},
    "acme-tools-journal": {"tools": ["hypothesis", "journal"]},
}


@dataclass(frozen=True)
class Installed:
    """A clean environment with the examples and what they need."""

    bin: Path
    place: Path

    def run(self, program: str, *arguments: object, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        wanted = ("PATH", "HOME", "LANG", "TMPDIR", "USER")
        return subprocess.run(
            [self.bin / program, *map(str, arguments)],
            cwd=self.place,
            env={"COLUMNS": "120", **{name: os.environ[name] for name in wanted if name in os.environ}},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("needs uv on the PATH: pip install uv")
    place = tmp_path_factory.mktemp("examples")
    python = place / "venv" / "bin" / "python"
    subprocess.run([uv, "venv", "-q", "--no-project", "-p", sys.executable, place / "venv"], check=True, cwd=place)
    fetched = subprocess.run(
        [uv, "pip", "install", "-q", "-p", python, "hatchling>=1.25", "pytest>=8.3", "hypothesis>=6.100"],
        cwd=place,
        capture_output=True,
        text=True,
    )
    if fetched.returncode != 0:
        pytest.skip(f"needs a package index: {fetched.stderr.strip().splitlines()[-1]}")
    for folder in [*OURS, *EXAMPLES]:
        build = [uv, "build", "-q", "--wheel", "--no-build-isolation", "-p", python, "-o", place / "wheels", folder]
        subprocess.run(build, check=True, cwd=place)
    wheels = sorted((place / "wheels").glob("*.whl"))
    assert len(wheels) == len(OURS) + len(EXAMPLES)
    subprocess.run([uv, "pip", "install", "-q", "-p", python, *wheels], check=True, cwd=place)
    return Installed(python.parent, place)


def test_every_example_is_installed_from_its_wheel(installed: Installed) -> None:
    result = installed.run("debug-gym", "plugins", "--json")
    assert result.returncode == 0 and result.stderr == ""
    records = {record["distribution"]: record for record in json.loads(result.stdout)}
    theirs = {name: record for name, record in records.items() if name.startswith("acme-")}
    assert {name: record["provides"] for name, record in theirs.items()} == PROVIDES
    assert all(record["state"] == "loaded" and record["version"] == "1.0.0" for record in theirs.values())
    assert len(theirs) == len(EXAMPLES)


def test_their_own_tests_pass(installed: Installed) -> None:
    for folder in EXAMPLES:
        shutil.copytree(folder / "tests", installed.place / "tests" / folder.name)
    result = installed.run("python", "-m", "pytest", "-q", "-x", "-W", "error", "--import-mode=importlib", "tests")
    assert result.returncode == 0, result.stdout[-8000:] + result.stderr
    assert " passed" in result.stdout.splitlines()[-1]


def test_pytest_in_the_directory_of_one_takes_its_tests_only(installed: Installed, tmp_path: Path) -> None:
    """The repositories in the benchmark's package data have tests that fail; they are no tests of the package."""
    for folder in EXAMPLES:
        shutil.copytree(folder, tmp_path / folder.name)
        done = subprocess.run(
            [installed.bin / "python", "-m", "pytest", "-q", "--collect-only"],
            cwd=tmp_path / folder.name,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout
        found = [line for line in done.stdout.splitlines() if "::" in line]
        assert found and all(line.startswith("tests/") for line in found), found


def test_they_work_together_from_the_command_line(installed: Installed) -> None:
    """The example benchmark in the example terminal, solved; then played by the example agent with example tools."""
    solved = installed.run(
        "debug-gym", "run", "pocket", "--agent", "solution_agent", "--terminal", "prlimit", "-o", "solved"
    )
    assert solved.returncode == 0, solved.stderr
    played = installed.run(
        "debug-gym", "run", "pocket/roman", "--agent", "random_agent", "--terminal", "prlimit", "-o", "played",
        "-p", "tools=[syntax, hypothesis, journal]", "-p", "agent.max_steps=6",
    )  # fmt: skip
    assert played.returncode == 0, played.stderr
    results = [json.loads(line) for line in (installed.place / "solved" / "results.jsonl").read_text().splitlines()]
    assert [(one["task"], one["status"], one["grading"]) for one in sorted(results, key=lambda one: one["task"])] == [
        (f"pocket/{name}", "resolved", "clean") for name in ("cache", "median", "roman")
    ]
    [result] = [json.loads(line) for line in (installed.place / "played" / "results.jsonl").read_text().splitlines()]
    assert result["status"] == "unresolved" and result["steps"] == 6
    assert set(result["tool_calls"]) <= {"syntax", "hypothesis", "journal"}
    tally = installed.run("debug-gym", "tally", "solved", "played")
    assert tally.stdout.splitlines() == ["random_agent  unresolved  1", "solution_agent  resolved  3"], tally.stderr
    assert "tally" in installed.run("debug-gym", "--help").stdout


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_the_commands_of_its_readme_work(folder: Path, installed: Installed, sandbox: str, tmp_path: Path) -> None:
    text = (folder / "README.md").read_text()
    commands = BLOCK.findall(text)
    assert commands and text.count("debug-gym run") + text.count("debug-gym tasks") <= len(commands[0].splitlines())
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(commands)],
        cwd=tmp_path,
        env={"PATH": f"{installed.bin}:{os.environ['PATH']}", "HOME": str(tmp_path), "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = {
        "tool-syntax": "counter_code.py: no syntax error",
        "tools-journal": "the lock is not held",
        "results": "resolved  1",
        "benchmark-pocket": "pocket/roman",
    }
    assert told.get(folder.name, "mini_nightmare/counter: ") in done.stdout


def test_the_documented_installation_from_a_checkout_works(tmp_path: Path) -> None:
    """As a stranger does it: nothing but the checkout, a new environment, the tutorial's package, its tests.

    With uv in pip's place, which is quicker and reads the same command line.
    """
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("needs uv on the PATH: pip install uv")
    tutorial = (TOP / "docs" / "plugins" / "tool.md").read_text()
    [block] = [text for text in BLOCK.findall(tutorial) if "CHECKOUT=" in text]
    install, _, rest = block.replace("path/to/debug-gym ", f"'{TOP}' ").partition("debug-gym plugins")
    assert install.split("\n", 1)[1] in (TOP / "examples" / "README.md").read_text()
    shutil.copytree(TOP / "docs" / "examples" / "word_count", tmp_path / "mine")
    environments = [tmp_path / "venv", tmp_path / "another"]
    for environment in environments:
        subprocess.run([uv, "venv", "-q", "--no-project", "-p", sys.executable, environment], check=True, cwd=tmp_path)

    def run(script: str, environment: Path = environments[0]) -> subprocess.CompletedProcess[str]:
        known = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "DEBUG_GYM"))}
        place = {"PATH": f"{environment}/bin:{os.environ['PATH']}", "VIRTUAL_ENV": str(environment), "COLUMNS": "150"}
        command = ["bash", "-euo", "pipefail", "-c", f"pip() {{ '{uv}' pip \"$@\"; }}\n{script}"]
        return subprocess.run(
            command, cwd=tmp_path / "mine", env=known | place, capture_output=True, text=True, timeout=600
        )

    fetched = run("pip install hatchling pytest hypothesis", environments[1])
    if fetched.returncode != 0:
        pytest.skip(f"needs a package index: {fetched.stderr.strip().splitlines()[-1]}")
    done = run(install)
    assert done.returncode == 0, done.stderr
    used = run(f"debug-gym plugins{rest}")
    assert used.returncode == 0, used.stdout + used.stderr
    assert re.search(r"tool-wc +tool +wc .* loaded", used.stdout) and re.search(r"\d passed", used.stdout)
    pinned = run("debug-gym plugins --requirements | tee pinned.txt")
    assert f"-e file://{tmp_path}/mine" in pinned.stdout and "==" not in pinned.stdout
    again = run("pip install --dry-run -r pinned.txt 2>&1", environments[1])
    assert again.returncode == 0 and "my-word-count==0.1.0" in again.stdout, again.stdout


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_configs_are_valid(path: Path) -> None:
    config = loading.load(str(path))
    assert config.agent.name == "tool_agent"


def test_the_config_to_copy_runs_on_a_repository(sandbox: str, tmp_path: Path) -> None:
    """As its first lines say, with nothing changed: it lies in a repository whose tests pytest finds."""
    repository = write_sample(tmp_path / "shop")
    shutil.copy(TOP / "examples" / "configs" / "my-repository.yaml", repository)
    (repository / "secrets").mkdir()
    (repository / "secrets" / "key").write_text("the agent must not see this")
    arguments = ["run", repository / "my-repository.yaml", "--agent", "noop_agent", "--terminal", sandbox, "-o", "out"]
    done = run_debug_gym(arguments, tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    assert row["status"] == "unresolved" and 0 < row["score"] < row["max_score"] and row["changed"] is False
    assert f"unresolved repo/shop: {row['max_score'] - row['score']} of {row['max_score']} failed: " in done.stdout
    looking = [
        "--agent", "tool_agent", "--llm", "scripted", "--terminal", sandbox, "-o", "looked",
        "-p", "llm.actions=[listdir, 'view secrets/key']",
    ]  # fmt: skip
    done = run_debug_gym(["run", repository / "my-repository.yaml", *looking], tmp_path)
    assert done.returncode == 0, done.stderr
    seen = (tmp_path / "looked/repo/shop/trajectory.jsonl").read_text()
    assert "shop.py" in seen and "must not see this" not in seen


def test_every_line_of_the_config_to_copy_is_explained() -> None:
    text = (TOP / "examples" / "configs" / "my-repository.yaml").read_text()
    silent = [line for line in text.splitlines() if line.strip() and "#" not in line]
    assert silent == []


def test_every_directory_is_told_of() -> None:
    readme = (TOP / "examples" / "README.md").read_text()
    for folder in filter(Path.is_dir, (TOP / "examples").iterdir()):
        assert f"[{folder.name}]({folder.name})" in readme
    for folder in EXAMPLES:
        assert (folder / "README.md").is_file()
        assert "debug-gym-core>=0.1,<0.2" in (folder / "pyproject.toml").read_text()


def test_a_tool_is_under_thirty_lines() -> None:
    source = TOP / "examples" / "tool-syntax" / "src" / "acme_tool_syntax" / "__init__.py"
    assert len(source.read_text().splitlines()) < 30
