"""Byte code of pytest, and of what a task requires, in an environment that has none, as uv leaves it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SITE = Path(pytest.__file__).parents[1]
MAKE = """
import dataclasses, sys
sys.path += {path!r}
from pathlib import Path
from debug_gym_core.sandbox import own_bytecode
from debug_gym_core.sandbox.interpreter import probe
interpreter = probe(sys.executable)
ours = dataclasses.replace(interpreter, executable=Path({executable!r} or interpreter.executable))
own_bytecode.make(ours, ["pytest>=7", "acme-data", "not-here", "os", "b.c"])
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An environment with pytest's sources; returns its site-packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    [site] = (tmp_path / "venv/lib").glob("python*/site-packages")
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None
        shutil.copytree(Path(spec.origin).parent, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SITE / "py.py", site)
    (site / "acme_data").mkdir()
    (site / "acme_data/__init__.py").write_text("import acme_data.more\n")
    (site / "acme_data/more.py").touch()
    return site


def make(site: Path, executable: str = "", **env: str) -> None:
    source = MAKE.format(path=[path for path in sys.path if path], executable=executable)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    python = site.parents[2] / "bin" / "python"
    subprocess.run([python, "-c", source], check=True, cwd="/", env={**environment, **env})


def test_pytest_is_compiled_once(site: Path) -> None:
    cached = site / "_pytest/config/__pycache__", site / "pytest/__pycache__", site / "_pytest/assertion/__pycache__"
    make(site)
    assert all(list(one.glob("*.pyc")) for one in cached)
    assert list(site.glob("acme_data/__pycache__/more.*.pyc"))
    shutil.rmtree(cached[0])
    make(site)
    assert not cached[0].exists()


def test_what_is_not_ours_is_left_alone(site: Path) -> None:
    make(site, executable="/usr/bin/python3")
    make(site, PYTHONDONTWRITEBYTECODE="1")
    assert not [*site.glob("*pytest/__pycache__"), *site.glob("acme_data/__pycache__")]
