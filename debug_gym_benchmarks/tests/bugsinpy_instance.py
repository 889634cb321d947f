"""A checkout in the layout that BugsInPy publishes, and the history of the project that it names."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from debug_gym_benchmarks.bugsinpy import BugsInPy
from debug_gym_core import Task

BUGGY = "def total(prices):\n    return max(prices)\n"
FIXED = "def total(prices):\n    return sum(prices)\n"
OLD_TESTS = "from shop import total\n\n\ndef test_one():\n    assert total([3]) == 3\n"
NEW_TESTS = (
    "import pytest\nfrom shop import total\n\n\ndef test_one():\n    assert total([3]) == 3\n\n\n"
    "@pytest.mark.parametrize('n', [2, 3])\ndef test_more(n):\n    assert total([1] * n) == n\n"
)
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def git(directory: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *arguments], cwd=directory, check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Published:
    """A checkout in BugsInPy's layout with one project, `till`, and the project's own repository."""

    def __init__(self, top: Path) -> None:
        self.projects = top / "projects"
        project = self.projects / "acme+till"
        (project / "tests" / "data").mkdir(parents=True)
        git(project, "init", "-q")
        self.buggy = self._commit(project, BUGGY, OLD_TESTS)
        (project / "tests" / "data" / "new.txt").write_text("1\n")
        self.fixed = self._commit(project, FIXED, NEW_TESTS)
        self.patch = git(project, "diff", self.buggy, self.fixed, "--", "shop.py") + "\n"
        self.source = top / "BugsInPy"
        self.add(1)

    @staticmethod
    def _commit(project: Path, code: str, tests: str) -> str:
        (project / "shop.py").write_text(code)
        (project / "tests" / "test_shop.py").write_text(tests)
        git(project, "add", "-A")
        git(project, "commit", "-qm", "a state")
        return git(project, "rev-parse", "HEAD")

    def add(self, number: int, **changes: str) -> None:
        """A bug's directory; `changes` are files, by name without their ends."""
        files = {
            "bug": f'python_version="{VERSION}.9"\r\nbuggy_commit_id="{self.buggy}"\r\n'
            f'fixed_commit_id="{self.fixed}"\r\ntest_file="tests/test_shop.py;tests/data/new.txt"',
            "run_test": "pytest tests/test_shop.py::test_more\r\n",
            "bug_patch": self.patch,
            "requirements": "pytest==1.0\n-e git+https://localhost/acme/till@0#egg=till\npkg-resources==0.0.0\nTill==3\n",
            "setup": "true\n",
            **changes,
        }
        names = {"bug": "bug.info", "run_test": "run_test.sh", "bug_patch": "bug_patch.txt", "setup": "setup.sh"}
        directory = self.source / "projects" / "till" / "bugs" / str(number)
        directory.mkdir(parents=True)
        for name, text in files.items():
            encoding = "utf-16" if name == "requirements" else "utf-8"
            (directory / names.get(name, f"{name}.txt")).write_bytes(text.encode(encoding))
        (directory.parents[1] / "project.info").write_text('github_url="https://localhost/acme/till/"\nstatus="OK"\n')

    def made(self, kind: type[BugsInPy] = BugsInPy, **settings: Any) -> BugsInPy:
        return kind(**{"source": str(self.source), "projects": self.projects, **settings})


class Runnable(BugsInPy):
    """Of the Pythons of one version, the one that has what the tests need."""

    def load(self, name: str) -> Task:
        return replace(super().load(name), python=sys.executable)
