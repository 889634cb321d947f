"""What `terminal.setup` is tried with: repositories and packages to install, and environments that are set up."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support import reason_not_to_use

from debug_gym_core import RepoEnv, make
from debug_gym_core.testing.sample import write_sample

STAMP = "cat /proc/sys/kernel/random/uuid > stamp"
"""A command whose result is another each time that it runs."""

TEST = "import unittest\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        "
UNITTEST = "python -m unittest -q"

BACKEND = """
import os, zipfile

def build_editable(directory, config_settings=None, metadata_directory=None):
    files = {
        "thing.pth": os.path.abspath("src") + "\\n",
        "thing-1.dist-info/METADATA": "Metadata-Version: 2.1\\nName: thing\\nVersion: 1\\n",
        "thing-1.dist-info/WHEEL": "Wheel-Version: 1.0\\nGenerator: own\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files["thing-1.dist-info/RECORD"] = "".join(path + ",,\\n" for path in (*files, "thing-1.dist-info/RECORD"))
    with zipfile.ZipFile(os.path.join(directory, "thing-1-py3-none-any.whl"), "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    os.mkdir("src/thing.egg-info")
    open("src/thing.egg-info/PKG-INFO", "w").close()
    return "thing-1-py3-none-any.whl"
"""
"""A build backend that needs nothing, and leaves something in the repository as others do."""

EDITABLE = {
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    "backend.py": BACKEND,
    "src/thing/__init__.py": "VALUE = 1\n",
}
"""A repository that can be installed."""

Make = Callable[..., RepoEnv]


def settings_of(terminal: str) -> dict[str, Any]:
    """Settings of a terminal; the test is skipped where it cannot be used."""
    reason = reason_not_to_use(terminal)
    if reason:
        pytest.skip(reason)
    return {"image": os.environ["DEBUG_GYM_TEST_IMAGE"]} if terminal == "docker" else {}


def python_of(terminal: str, installer: str) -> str | None:
    """The Python with pip: the image's, or one of this machine."""
    return os.environ.get("DEBUG_GYM_TEST_PYTHON") if terminal == "docker" else installer


def opening(directory: Path, installer: str) -> Iterator[Make]:
    """Make an environment of a repository in a directory and reset it; all are closed at the end."""
    made: list[RepoEnv] = []

    def open_env(
        terminal: str,
        setup: list[str],
        files: Mapping[str, str | bytes] | None = None,
        *,
        tell: Callable[[str], None] = lambda text: None,
        tools: tuple[str, ...] = ("eval", "bash", "rewrite"),
        **settings: Any,
    ) -> RepoEnv:
        repository = write_sample(directory / "repository", files or {"test_it.py": f"{TEST}pass\n"})
        more = settings.pop("settings", {})
        settings.setdefault("python", python_of(terminal, installer))
        env = make(
            "repo",
            list(tools),
            {terminal: {**settings_of(terminal), "setup": setup, **more}},
            path=repository,
            notify=tell,
            allow_unsandboxed=True,
            **{"entrypoint": UNITTEST, **settings},
        )
        made.append(env)
        env.reset(seed=0)
        return env

    try:
        yield open_env
    finally:
        for env in made:
            env.close()


def write_wheel(directory: Path, name: str) -> None:
    """A wheel with a module and a program."""
    directory.mkdir(parents=True, exist_ok=True)
    about = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": "VALUE = 42\n\ndef main():\n    print('value', VALUE)\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": f"[console_scripts]\n{name}-says = {name}:main\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(directory / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)


def output(env: RepoEnv, command: str) -> str:
    """What a command that must not fail prints."""
    result = env.terminal.run(command, timeout=60)
    assert result.exit_status == 0, result.output
    return result.output


def left(setup_cache: Path) -> list[str]:
    return sorted(path.name for path in setup_cache.iterdir()) if setup_cache.is_dir() else []
