"""Asking the tool `pdb` of an environment."""

from __future__ import annotations

import time

from debug_gym_core import RepoEnv, ToolCall


def ask(env: RepoEnv, command: str, entrypoint: str = "python app.py") -> str:
    """What the environment's pdb answers."""
    return str(env.step(ToolCall("pdb", {"command": command, "entrypoint": entrypoint}))[0]["text"])


def heat(env: RepoEnv, entrypoint: str = "python app.py") -> None:
    """Wait until sessions of an entrypoint are warm, then end the session."""
    before, end = env.session.warm_starts, time.monotonic() + 60
    while env.session.warm_starts == before:
        assert time.monotonic() < end
        ask(env, "restart", entrypoint)
        time.sleep(0.05)
    ask(env, "q", entrypoint)
