"""Environments of a repository with one small test, and a tool that changes files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import debug_gym_core
from debug_gym_core import ActionError, RepoEnv, Tool

# Not pytest, which takes longer to start and would tell no more here.
ENTRYPOINT = "python -m unittest -q"
TEST = "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        assert False\n"


class Write(Tool):
    """Write a file."""

    name = "write"

    def use(self, env: Any, path: str, text: str, fail: bool = False) -> str:
        """Write, and fail afterwards where that is wanted."""
        env.workspace.write_bytes(path, text.encode())
        if fail:
            raise ActionError("written, and yet wrong")
        return "written"


def make_env(path: Path, tools: Any, **settings: Any) -> RepoEnv:
    """Make an environment of a repository, in `local`."""
    return debug_gym_core.make(
        "repo", tools, "local", path=path, allow_unsandboxed=True, entrypoint=ENTRYPOINT, **settings
    )


def parts(observation: dict[str, str]) -> list[tuple[str, str]]:
    return [(part["source"], part["text"]) for part in json.loads(observation["json"])]
