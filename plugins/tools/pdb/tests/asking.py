"""Asking the tool `pdb` of an environment."""

from __future__ import annotations

import time

from debug_gym_core import RepoEnv, ToolCall


def ask(env: RepoEnv, command: str, entrypoint: str = "python app.py") -> str:
    """What the environment's pdb answers."""
    return str(env.step(ToolCall("pdb", {"command": command, "entrypoint": entrypoint}))[0]["text"])


def heat(env: RepoEnv) -> None:
    """Wait until sessions are warm, then end the session."""
    end = time.monotonic() + 60
    while not env.session.warm_starts:
        assert time.monotonic() < end
        ask(env, "restart")
        time.sleep(0.05)
    ask(env, "q")
