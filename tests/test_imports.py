"""The floors of the house: an import that climbs, or leaves a package that travels, turns lint-imports red."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import repeated

ROOT = Path(__file__).parents[1]
CORE, PDB = "debug_gym_core/src/debug_gym_core", "plugins/tools/pdb/src/debug_gym_tool_pdb"
TYPE_ONLY = (
    "\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from debug_gym_core.environment.env import RepoEnv\n"
)


def lint(*sources: Path) -> tuple[int, str]:
    """What lint-imports says of the contracts when packages come from other folders."""
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run(
        [program, "--no-cache", "--config", ROOT / "pyproject.toml"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sources))},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("place", "code", "said"),
    [
        (
            f"{CORE}/workspace/patch.py",
            TYPE_ONLY,
            "debug_gym_core.workspace.patch -> debug_gym_core.environment.env",
        ),
        (
            f"{CORE}/grading/runner/main.py",
            "\ndef late():\n    from debug_gym_core import errors\n",
            "debug_gym_core.grading.runner.main -> debug_gym_core.errors",
        ),
        *repeated(
            "documents",
            (
                f"{PDB}/debuggee/report.py",
                "\nfrom debug_gym_tool_pdb import typed\n",
                "debug_gym_tool_pdb.debuggee.report -> debug_gym_tool_pdb.typed",
            ),
            (
                f"{CORE}/sandbox/guest/main.py",
                "\nfrom debug_gym_core.sandbox import frames\n",
                "debug_gym_core.sandbox.guest.main -> debug_gym_core.sandbox.frames",
            ),
            (f"{CORE}/cellar.py", "", "cellar"),
        ),
    ],
    ids=["climbs for a type", "leaves the runner", "leaves the debuggee", "leaves the guest", "a room without a floor"],
)
def test_a_forbidden_import_is_red(tmp_path: Path, place: str, code: str, said: str) -> None:
    for package in (CORE, PDB):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / place).open("a") as file:
        file.write(code)
    status, text = lint(*((tmp_path / package).parent for package in (CORE, PDB)))
    assert status == 1 and said in text, text


def test_no_module_is_longer_than_400_lines() -> None:
    """Tests apart: they grow with what they try, and nobody has to understand one to use another."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    sources = [path for path in map(Path, listed.splitlines()) if "tests" not in path.parts and (ROOT / path).exists()]
    assert len(sources) > 200
    lengths = {str(path): (ROOT / path).read_text().count("\n") for path in sources}
    assert {path: length for path, length in lengths.items() if length > 400} == {}
