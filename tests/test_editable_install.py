"""A repository that is installed in editable mode: programs know its files by their place on the host."""

from __future__ import annotations

import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import reason_not_to_use

from debug_gym_core import RepoEnv, make

TYPES = """\
import traceback
import warnings

def convert(value):
    warnings.warn("old")
    return int(value)

def report():
    try:
        convert("x")
    except ValueError:
        traceback.print_exc()
"""
TEST = """\
import unittest
from package import types

class TestIt(unittest.TestCase):
    def test_it(self):
        types.report()
        assert types.convert("one") == 1
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("editable")
    project = base / "project"
    (project / "src" / "package").mkdir(parents=True)
    (project / "src" / "package" / "__init__.py").touch()
    (project / "src" / "package" / "types.py").write_text(TYPES)
    (project / "tests").mkdir()
    (project / "tests" / "test_it.py").write_text(TEST)
    venv.create(base / "env", symlinks=True)
    packages = next((base / "env" / "lib").glob("python*/site-packages"))
    (packages / "__editable__.project.pth").write_text(f"{project / 'src'}\n")
    return project


@pytest.fixture(scope="module")
def env(repository: Path) -> Iterator[RepoEnv]:
    if reason := reason_not_to_use("bubblewrap"):
        pytest.skip(reason)
    tools = ["view", "grep", "edit", "rewrite", "eval", "pdb", "bash"]
    python = str(repository.parent / "env" / "bin" / "python")
    entrypoint = "python -m unittest tests/test_it.py"
    with make(
        "repo", path=str(repository), entrypoint=entrypoint, python=python, tools=tools, terminal="bubblewrap"
    ) as env:
        env.reset(seed=0)
        yield env


def test_text_shows_the_files_as_the_workspace_has_them(env: RepoEnv, repository: Path) -> None:
    texts = [
        env.step(action)[0]["text"]
        for action in ("eval", "pdb c", "bash python -c 'from package import types; types.report()'", "pdb q")
    ]
    assert not [text for text in texts if str(repository) in text or repository.name + "/src" in text]
    assert "\nsrc/package/types.py:5: UserWarning" in texts[0]
    assert "\n  src/package/types.py:6 in convert\n" in texts[0]
    assert "stopped: test failed: tests.test_it.TestIt.test_it at src/package/types.py:6 in convert" in texts[1]
    for text in texts[:3]:
        assert 'File "/testbed/src/package/types.py", line 6, in convert' in text


def test_tools_take_the_place_on_the_host(env: RepoEnv, repository: Path) -> None:
    path = repository / "src" / "package" / "types.py"
    said = env.step(f"view {path} 4 6")[0]["text"]
    assert said.startswith("src/package/types.py, lines 4-6")
    assert "1 line matches in 1 file" in env.step(f"grep 'def convert' {path.parent}")[0]["text"]
    assert "Breakpoint 1 at /testbed/src/package/types.py:6" in env.step(f"pdb b {path}:6")[0]["text"]
    assert [one.file for one in env.breakpoints] == ["src/package/types.py"]
    assert "+    return 1" in env.step(f"rewrite {path} 6 <<<\n    return 1\n>>>")[0]["text"]
    assert "+    return int(value)" in env.step(f"edit {path} 'return 1' 'return int(value)'")[0]["text"]
    assert "outside the workspace" in env.step(f"view {path.parents[3]}/env/pyvenv.cfg")[0]["text"]
    assert path.read_text() == TYPES
