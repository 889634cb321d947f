"""The data of mini_nightmare, checked with nothing but pytest, git and the data itself.

Each task is copied to a temporary directory and run there as an agent's sandbox would run it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="reading task.yaml needs PyYAML: pip install pyyaml")

HERE = Path(__file__).resolve().parent
TASKS = HERE.parent / "src" / "debug_gym_benchmarks" / "mini_nightmare"
WRONG_FIXES = HERE / "wrong_fixes"
NAMES = [
    "config",
    "counter",
    "grader",
    "pandas_dataframe",
    "patcher",
    "purr",
    "scientific_calculator",
    "shopping_cart",
    "sum_tree",
    "tomorrow_date",
]
KEYS = [
    "title",
    "description",
    "why_debugger",
    "entrypoint",
    "max_score",
    "tests",
    "pass_to_pass",
    "stops",
    "requires",
    "time_limit",
]
REPETITIONS = 3
DURATION = re.compile(r"\bin \d+\.\d+s\b")

# A pytest plugin that writes down each line of the repository that a test executes, in order, with test and thread.
TRACER = """
import os
import sys
import threading

import pytest

STOPS = set(os.environ["STOPS"].split())
LOG = open(os.environ["STOPS_LOG"], "w", buffering=1)


def trace(frame, event, arg):
    file = os.path.basename(frame.f_code.co_filename)
    if not any(stop.startswith(file + ":") for stop in STOPS):
        return None
    stop = "%s:%d" % (file, frame.f_lineno)
    if event == "line" and stop in STOPS:
        thread = "main" if threading.current_thread() is threading.main_thread() else "worker"
        LOG.write("%s %s %s\\n" % (os.environ["PYTEST_CURRENT_TEST"].split()[0], stop, thread))
    return trace


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    threading.settrace(trace)
    sys.settrace(trace)
    yield
    sys.settrace(None)
    threading.settrace(None)


def pytest_runtest_logreport(report):
    if report.failed:
        LOG.write("%s failed -\\n" % report.nodeid)
"""


def read_task(name: str) -> dict[str, Any]:
    return yaml.safe_load((TASKS / name / "task.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the subprocesses share compiled modules, also where none may be written beside the installed packages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("bytecode")))
        yield


@pytest.fixture(
    params=[pytest.param(name, marks=() if name == "counter" else pytest.mark.benchmarks) for name in NAMES]
)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def task(name: str) -> dict[str, Any]:
    return read_task(name)


@pytest.fixture
def repo(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(TASKS / name / "repo", tmp_path / "repo"))


@pytest.fixture
def installed(name: str, task: dict[str, Any]) -> None:
    missing = [package for package in task["requires"] if importlib.util.find_spec(package) is None]
    if missing:
        pytest.skip(f"{name} needs {', '.join(missing)}: pip install {' '.join(missing)}")


def run_tests(repo: Path, *options: str, **variables: str) -> tuple[int, str]:
    """Run a repository's tests and return pytest's exit status and output without the duration."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_", "COVERAGE_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test.py"]
    # Some releases of pandas announce on import what the next ones will need; that is not the task's output.
    fixed = {"PYTHONWARNINGS": "ignore::DeprecationWarning", "PY_COLORS": "0", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {**kept, **fixed, **variables}
    finished = subprocess.run(command, cwd=repo, env=environment, text=True, capture_output=True, timeout=60)
    return finished.returncode, DURATION.sub("in *s", finished.stdout + finished.stderr)


def apply_patch(repo: Path, patch: Path) -> None:
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(repo.parent)}
    command = ["git", "apply", "--whitespace=error-all", str(patch)]
    finished = subprocess.run(command, cwd=repo, env=environment, text=True, capture_output=True, timeout=60)
    assert finished.returncode == 0, finished.stderr


def run_alike(repo: Path) -> tuple[int, str]:
    """Run a repository's tests several times, make sure that nothing differs, and return what they gave.

    Each run has another hash seed, so that the order of a set would show.
    """
    runs = [run_tests(repo, PYTHONHASHSEED=str(seed)) for seed in range(REPETITIONS)]
    assert runs == [runs[0]] * REPETITIONS
    return runs[0]


def collected(repo: Path) -> list[str]:
    _, output = run_tests(repo, "--collect-only")
    return [line for line in output.splitlines() if "::" in line]


def patched_files(patch: Path) -> set[str]:
    return set(re.findall(r"^(?:---|\+\+\+) [ab]/(\S+)", patch.read_text(encoding="utf-8"), re.MULTILINE))


def executable_lines(code: CodeType) -> Iterator[int]:
    """Yield the lines inside the functions of a compiled module on which a debugger can stop."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from (line for _, _, line in constant.co_lines() if line is not None)
            yield from executable_lines(constant)


def test_there_are_ten_tasks() -> None:
    found = sorted(path.parent.name for path in TASKS.glob("*/task.yaml"))
    assert found == NAMES
    patches = sorted(path.stem for path in WRONG_FIXES.glob("*.patch"))
    assert patches == NAMES


def test_description_is_complete(name: str, task: dict[str, Any]) -> None:
    assert list(task) == KEYS
    assert 2 <= len(re.findall(r"[.!?](?:\s|$)", task["description"])) <= 4
    assert len(re.findall(r"[.!?](?:\s|$)", task["why_debugger"])) == 1
    assert shlex.split(task["entrypoint"]) == ["python", "-m", "pytest", "-q", "test.py"]
    assert task["requires"][0] == "pytest"
    assert 0 < task["time_limit"] <= 60
    files = {path.name for path in (TASKS / name / "repo").iterdir()}
    assert {f"{name}_code.py", "test.py", "README.md", ".debugreadonly"} <= files


def test_description_does_not_say_where(name: str, task: dict[str, Any]) -> None:
    readme = (TASKS / name / "repo" / "README.md").read_text(encoding="utf-8")
    for stop in task["stops"]:
        assert stop not in readme
        assert stop not in task["description"]
    assert "bug" not in readme.lower().split()


@pytest.mark.usefixtures("installed")
def test_exactly_the_tests_of_the_task_are_collected(task: dict[str, Any], repo: Path) -> None:
    tests = [*task["tests"], *task["pass_to_pass"]]
    assert sorted(collected(repo)) == sorted(tests)
    assert 3 <= len(tests) <= 8
    assert task["max_score"] == len(task["tests"])


@pytest.mark.benchmarks
@pytest.mark.usefixtures("installed")
def test_fails_as_shipped_and_always_alike(task: dict[str, Any], repo: Path) -> None:
    status, output = run_alike(repo)
    assert status == 1
    assert f"{len(task['tests'])} failed, {len(task['pass_to_pass'])} passed in *s" in output
    assert set(re.findall(r"^FAILED (\S+)", output, re.MULTILINE)) == set(task["tests"])
    assert not re.search(r"\bat 0x[0-9a-f]+", output)
    assert str(repo) not in output


@pytest.mark.usefixtures("installed")
def test_passes_with_the_gold_patch_and_always_alike(name: str, task: dict[str, Any], repo: Path) -> None:
    apply_patch(repo, TASKS / name / "gold.patch")
    status, output = run_alike(repo)
    assert status == 0
    assert f"{len(task['tests']) + len(task['pass_to_pass'])} passed in *s" in output


@pytest.mark.usefixtures("installed")
def test_wrong_fix_still_fails(name: str, task: dict[str, Any], repo: Path) -> None:
    apply_patch(repo, WRONG_FIXES / f"{name}.patch")
    status, output = run_tests(repo)
    assert status == 1
    assert re.search(r"^\d+ failed(, \d+ passed)? in \*s$", output, re.MULTILINE)


def test_stops_are_executable_lines(name: str, task: dict[str, Any], repo: Path) -> None:
    assert 1 <= len(task["stops"]) <= 2
    for stop in task["stops"]:
        file, _, line = stop.partition(":")
        path = repo / file
        assert path.parent == repo
        assert path.suffix == ".py"
        assert "test" not in path.stem
        code = compile(path.read_text(encoding="utf-8"), file, "exec")
        assert int(line) in set(executable_lines(code))


@pytest.mark.benchmarks
@pytest.mark.usefixtures("installed")
def test_failing_tests_reach_each_stop_in_the_main_thread(task: dict[str, Any], repo: Path, tmp_path: Path) -> None:
    (tmp_path / "stop_tracer.py").write_text(TRACER, encoding="utf-8")
    log = tmp_path / "stops.log"
    status, traced = run_tests(
        repo, "-p", "stop_tracer", PYTHONPATH=str(tmp_path), STOPS=" ".join(task["stops"]), STOPS_LOG=str(log)
    )
    assert (status, traced) == run_tests(repo)  # being watched changes nothing
    rows = [tuple(row.split()) for row in log.read_text(encoding="utf-8").splitlines()]
    failed = {test for test, event, _ in rows if event == "failed"}
    for stop in task["stops"]:
        threads = [thread for test, event, thread in rows if event == stop and test in failed]
        assert "main" in threads


def test_patches_touch_no_read_only_file(name: str, repo: Path) -> None:
    patterns = (repo / ".debugreadonly").read_text(encoding="utf-8").splitlines()
    assert "*test*.py" in patterns
    files = {str(path.relative_to(repo)) for path in repo.rglob("*") if path.is_file()}
    read_only = {file for file in files for pattern in patterns if Path(file).match(pattern)}
    assert {"test.py"} | {file for file in files if file.endswith((".csv", ".json"))} == read_only
    for patch in (TASKS / name / "gold.patch", WRONG_FIXES / f"{name}.patch"):
        touched = patched_files(patch)
        assert touched
        assert touched <= files - read_only
