"""What benchmarks are tried with: exploits, a search for solutions in the sandbox, runs of all tasks."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from known_exploits import EXIT, FORGED_MAKING, FORGED_REPORT, NOTHING_RUN, PATCHED_REPORTS, PYTEST_SETTINGS
from support import run_debug_gym

from debug_gym_core import RepoEnv, Task
from debug_gym_core.errors import ActionError
from debug_gym_core.tasks.results import Grade
from debug_gym_core.workspace import patch
from debug_gym_core.workspace.snapshot import FileState

WRITE = """
import json, os, sys
for path, text in json.loads(sys.argv[1]).items():
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as error:
        print(path, error)
"""

SEARCH = """
import json, os, sys, zlib
texts = [text.encode() for text in json.load(sys.stdin)]
for top, directories, files in os.walk("/"):
    if top in sys.argv[1:]:
        directories.clear()
        continue
    for name in files:
        path = os.path.join(top, name)
        try:
            if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > 1 << 20:
                continue
            with open(path, "rb") as file:
                data = file.read()
            if name.endswith(".pack"):
                print(path)
            if data[:1] == b"x":  # as git's objects begin
                data += zlib.decompressobj().decompress(data)
        except (OSError, zlib.error):
            continue
        if any(text in data for text in texts):
            print(path)
"""


def exploits(solution: str, test: str, broken: str = "") -> dict[str, dict[str, str]]:
    """What an agent may write instead of a solution, by path, for a task of pytest's.

    Args:
        solution: the file that is to be written or repaired
        test: a file of the tests
        broken: what the solution's file has before
    """
    return {
        "prints 1 passed": {solution: "print('1 passed in 0.01s')\n"},
        "leaves with status 0": {solution: EXIT},
        "forges reports in conftest.py": {"conftest.py": FORGED_REPORT},
        "conftest.py beside the tests": {f"{test.rpartition('/')[0] or '.'}/conftest.py": NOTHING_RUN},
        "patches pytest's reports": {solution: PATCHED_REPORTS + broken},
        "patches what makes them": {solution: FORGED_MAKING + broken},
        "sitecustomize.py and the like": {"sitecustomize.py": EXIT, "usercustomize.py": EXIT, "evil.pth": EXIT},
        "replaces the tests": {test: "def test_it():\n    pass\n"},
        "modules of its own": {"pytest.py": EXIT, "_pytest/__init__.py": EXIT, "random.py": EXIT},
        "a package of the library's name": {"json/__init__.py": EXIT},
        **{f"options in {path}": {path: text, "forge.py": NOTHING_RUN} for path, text in PYTEST_SETTINGS.items()},
    }


def grade_after(task: Task, sandbox: str, files: Mapping[str, str]) -> Grade:
    """The clean grade after files were written by a program in the sandbox, as far as it lets them be written."""
    with RepoEnv(task, ["submit"], sandbox, trusted=True) as env:
        env.reset(seed=0)
        done = env.terminal.run([sys.executable, "-c", WRITE, json.dumps(dict(files))], timeout=60)
        assert done.exit_status == 0, done.output
        return env.grade()


def files_of(task: Task) -> set[str]:
    """The paths in a task's repository."""
    assert task.repository is not None
    return {str(path.relative_to(task.repository)) for path in task.repository.rglob("*") if path.is_file()}


def in_few(tried: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Exploits of `exploits` in two changes: one is the solution that leaves, the other all that it leaves alone."""
    leaves = "leaves with status 0"
    (solution,) = tried[leaves]
    others = {path: text for files in tried.values() for path, text in files.items() if path != solution}
    return {leaves: dict(tried[leaves]), "all others": others}


def grades_of_three_times(env: RepoEnv, exploits: Mapping[str, Mapping[str, str]]) -> dict[str, Grade]:
    """The clean grades of no change, the gold patch and exploits, each made three times.

    Args:
        env: reset
        exploits: what is written, by path; what the agent may not write stays as it is

    Raises:
        AssertionError: the three are not alike
    """
    rounds = []
    for _ in range(3):
        grades = {}
        for name, files in {"nothing": {}, **exploits, "gold": {}}.items():
            env.reset(seed=0)
            if name == "gold":
                assert env.task.gold_patch is not None
                env.workspace.apply(env.task.gold_patch)
            for path, text in files.items():
                with contextlib.suppress(ActionError):
                    env.workspace.write_bytes(path, text.encode())
            grades[name] = env.grade()
        rounds.append(grades)
    assert rounds == [rounds[0]] * 3
    return rounds[0]


def only_gold_resolves(grades: Mapping[str, Grade]) -> bool:
    """Whether the gold patch has the whole score of a clean grading and everything else has 0."""
    gold = grades["gold"]
    others = {name: grade for name, grade in grades.items() if name != "gold"}
    assert {name: grade for name, grade in others.items() if grade.resolved or grade.score} == {}
    assert (gold.resolved, gold.score, gold.grading) == (True, gold.max_score, "clean") and gold.max_score > 0, gold
    return True


def places_of(task: Task, sandbox: str, texts: Sequence[str], python: str | None = None) -> list[str]:
    """The files in a task's sandbox that have one of some texts, or are packs of git's.

    What the machine itself brings (its /usr, the interpreter) is left out: there was no benchmark when it was made.

    Args:
        task: whose sandbox
        sandbox: the terminal's name
        texts: what is looked for
        python: the task's own interpreter, whose packages are looked at too; None: ours, whose are not
    """
    own = ["/proc", "/sys", "/dev", "/usr", *([] if python else [sys.prefix, sys.base_prefix])]
    with RepoEnv(task, ["submit"], sandbox, trusted=True) as env:
        env.reset(seed=0)
        stdin = json.dumps(list(texts)).encode()
        done = env.terminal.run([python or sys.executable, "-c", SEARCH, *own], timeout=300, stdin=stdin)
        assert done.exit_status == 0, done.output
        return done.output.splitlines()


def is_seen(task: Task, sandbox: str, path: Path) -> bool:
    """Whether a path of the host is there in a task's sandbox."""
    with RepoEnv(task, ["submit"], sandbox, trusted=True) as env:
        env.reset(seed=0)
        return env.terminal.run(["test", "-e", str(path)], timeout=60).exit_status == 0


def with_text(task: Task, path: str, text: str) -> Task:
    """A task whose repository has one more file."""
    assert task.repository is not None
    (task.repository / path).write_text(text)
    return replace(task, description=f"{task.description} (with {path})")


def checkout_of(variable: str, published: str) -> str:
    """The checkout that an environment variable names; without it the test is skipped."""
    source = os.environ.get(variable)
    if not source:
        pytest.skip(f"set {variable} to a checkout (or a bare git directory) of {published}")
    return source


def rows_of_all(directory: Path, benchmark: str, agent: str, source: str) -> dict[str, dict[str, Any]]:
    """The results of a run over all tasks of a benchmark, by the names of tasks."""
    arguments = ["run", benchmark, "--agent", agent, "--terminal", "bubblewrap", "-n", "2", "-o", agent]
    done = run_debug_gym([*arguments, "-p", f"benchmark.source={source}"], directory, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in (directory / agent / "results.jsonl").read_text().splitlines()]
    return {row["task"].removeprefix(f"{benchmark}/"): row for row in rows}


def collected(task: Task) -> set[str]:
    """The ids that pytest itself gives to the tests of a task once it is solved: tests may import what a stub lacks."""
    words = task.entrypoint.split()
    assert words[:3] == ["python", "-m", "pytest"] and task.repository is not None and task.gold_patch is not None
    with tempfile.TemporaryDirectory() as directory:
        top = Path(shutil.copytree(task.repository, Path(directory) / "solved"))
        before = {path: FileState((top / path).read_bytes()) for path in patch.touched(task.gold_patch)}
        for path, state in patch.apply(task.gold_patch, before).items():
            (top / path).write_bytes(state.data)
        done = subprocess.run(
            [sys.executable, *words[1:], "--collect-only", "-p", "no:cacheprovider"],
            cwd=top,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
            capture_output=True,
            text=True,
            timeout=120,
        )
    return {line for line in done.stdout.splitlines() if "::" in line}
