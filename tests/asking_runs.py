"""Runs of the toy benchmark with a model behind a service: real HTTP, real environments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from toy_runs import UNSAFE

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.loading import load
from debug_gym_core.runs.experiment import Experiment
from debug_gym_core.runs.run import Run
from debug_gym_core.testing.model_server import ModelServer, Reply, Request

KEY = "sk-planted-0123456789"
COMMANDS = ("echo one > first", "echo two > second", "printf 42 > answer")


class Silent:
    """Nobody looks on."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


def turn(request: Request) -> int:
    """How often the model was asked before in this conversation."""
    return sum(role == "assistant" for role, _ in request.body["messages"])


def player(request: Request) -> Reply:
    """A model that carries out the commands, one a turn."""
    at = turn(request)
    calls = [{"name": "sh", "arguments": {"command": COMMANDS[at]}, "id": f"c{at}"}] if at < len(COMMANDS) else []
    return Reply({"text": f"turn {at}", "calls": calls, "prompt": 1000, "completion": 100})


Serve = Callable[..., ModelServer]


def serving(directory: Path, patch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts servers, each with an llm.yaml in the directory whose model `mine` is there."""
    servers: list[ModelServer] = []

    def serve(answer: Callable[[Request], Reply] = player, **entry: Any) -> ModelServer:
        server = ModelServer(answer)
        servers.append(server)
        patch.setenv("WIRE_KEY", KEY)
        values = {"model": "m", "tags": ["wire"], "endpoint": server.url, "api_key": "${WIRE_KEY}", **entry}
        (directory / "llm.yaml").write_text(json.dumps({"mine": values}))
        patch.setenv("LLM_CONFIG_FILE_PATH", str(directory / "llm.yaml"))
        return server

    yield serve
    for server in servers:
        server.close()


PRICES = {"prompt": 100.0, "completion": 0.0}
PRICE = 0.1
"""Dollars of a call of `player` at these prices."""


def play_asking(
    plugins: Plugins, directory: Path, *overrides: str, force: Mapping[str, bool] | None = None, **options: Any
) -> Run:
    config = load("toy", [UNSAFE, *overrides], agent="historian", llm="mine", plugins=plugins)
    with Run.create(config, directory, plugins=plugins) as run:
        experiment = Experiment(run, plugins, Silent(), **options)
        experiment.choose(**(force or {}))
        experiment.check()
        experiment.play()
    return run
