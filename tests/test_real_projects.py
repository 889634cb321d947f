"""Suites of real projects, as they are published: each test that passes is believed, and nearly each has a twin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from grading_bench import Bench
from support import published

from debug_gym_core.grading.measure import measure
from debug_gym_core.tasks.results import PASSING

pytestmark = pytest.mark.grading


class Project(NamedTuple):
    """A project.

    Attributes:
        release: as the package index knows it
        needs: what its tests need besides
        share: of its passing tests have a twin, at least
        variables: of the command
        targets: of the command
    """

    release: str
    needs: tuple[str, ...]
    share: float
    variables: str = ""
    targets: str = ""


PROJECTS = {
    one.release.partition("==")[0]: one
    for one in (
        Project("tomlkit==0.15.2", ("pyyaml",), 0.95),
        Project("attrs==26.1.0", ("hypothesis", "cloudpickle"), 0.9, "PYTHONPATH=src "),
        Project("tenacity==9.2.1", ("tornado", "typeguard", "pytest-asyncio"), 0.9),
        Project("more-itertools==11.2.1", (), 0.95),
        Project("toolz==1.2.0", (), 0.85, targets=" --doctest-modules toolz"),
        Project("sortedcontainers==2.4.0", (), 0.95, targets=" --doctest-modules sortedcontainers"),
        Project("boltons==25.0.0", (), 0.8, targets=" --doctest-modules boltons"),
        Project("networkx==3.4.2", ("numpy",), 0.5, targets=" --doctest-modules networkx/utils networkx/classes"),
        Project("glom==24.11.0", ("pyyaml",), 0.8),
        Project("tabulate==0.9.0", ("wcwidth",), 0.95),
        Project("arrow==1.3.0", ("pytest-mock", "pytz", "dateparser", "simplejson"), 0.95, targets=" -o addopts="),
        Project(
            "httpcore==1.0.7",
            ("trio", "pytest-trio", "pytest-httpbin", "h2", "socksio", "anyio"),
            0.95,
            targets=" tests/_async tests/_sync tests/test_models.py",
        ),
        Project("click==8.5.1", (), 0.95, "PYTHONPATH=src "),
        Project("uncertainties==3.1.7", ("numpy<2", "future"), 0.9),
        Project("numpy-financial==1.0.0", ("numpy<2",), 0.95),
        Project("periodictable==1.7.1", ("numpy<2", "pyparsing"), 0.95, targets=" test"),
    )
}
"""A flat and a src layout, unittest, parameters, fixtures, coroutines, doctests, numpy's assertions, scripts, helpers
beside the tests, mocks of pytest-mock, groups of tasks."""


def interpreter(directory: Path, project: Path, needs: tuple[str, ...]) -> str:
    """One with a project and what its tests need."""
    python = directory / "environment" / "bin" / "python"
    subprocess.run(["uv", "venv", "-q", "--python", sys.executable, python.parents[1]], check=True)
    copies = ["--link-mode", "copy"]  # one more link to a file, for another project, would make it a changed one
    install = ["uv", "pip", "install", "-q", *copies, "--python", python, "pytest", *needs, project]
    subprocess.run(install, check=True)
    return str(python)


@pytest.mark.parametrize("name", PROJECTS)
def test_no_test_is_doubted(name: str, tmp_path: Path) -> None:
    project = PROJECTS[name]
    sources = published(project.release, tmp_path)
    python = interpreter(tmp_path, sources, project.needs)
    entrypoint = f"{project.variables}python -m pytest -q -p no:cacheprovider{project.targets}"
    bench = Bench(sources, {}, entrypoint, python=python)
    with bench.session() as session:
        run = measure(session, entrypoint, timeout=600)
    passing = tuple(test.id for test in run.tests if test.outcome in PASSING)
    assert len(passing) > 15, run.output
    grade = bench.grade({}, passing, timeout=600, twins="always")
    assert (dict(grade.doubts), grade.reason, grade.score) == ({}, "", len(passing))
    assert grade.twins is not None and grade.twins >= project.share * len(passing), f"{grade.twins} of {len(passing)}"
    print(f"{name}: {grade.twins} of {len(passing)} tests have a twin")
