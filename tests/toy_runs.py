"""Runs of the toy benchmark, who looks on, and their results."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.loading import load
from debug_gym_core.runs.experiment import Experiment
from debug_gym_core.runs.jobs import Job
from debug_gym_core.runs.run import Run
from debug_gym_core.runs.trajectory import Event, Result

UNSAFE = "terminal.allow_unsandboxed=true"


class Onlooker:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.on_event: Callable[[Job, Event], None] = lambda job, event: None

    def started(self, job: Job) -> None:
        self.told.append(("started", str(job)))

    def event(self, job: Job, event: Event) -> None:
        self.on_event(job, event)

    def finished(self, job: Job, result: Result | None) -> None:
        self.told.append(("finished" if result else "stopped", str(job)))

    def note(self, text: str) -> None:
        self.told.append(("note", text))

    def stopping(self) -> None:
        self.told.append(("stopping", ""))


Play = Callable[..., Run]


def playing(plugins: Plugins, onlooker: Onlooker, directory: Path) -> Iterator[Play]:
    """Play the toy benchmark with overrides, in one directory; returns the run, which is closed."""

    def play(*overrides: str, agent: str | None = None, force: dict[str, bool] | None = None, **extra: Any) -> Run:
        config = load("toy", overrides, agent=agent, plugins=plugins)
        with Run.create(config, directory, plugins=plugins) as run:
            experiment = Experiment(run, plugins, onlooker, **extra)
            experiment.choose(**(force or {}))
            experiment.check()
            experiment.play()
        return run

    yield play
    # A second interrupt leaves the end of an episode to its thread, which would tell the next test of it.
    for thread in threading.enumerate():
        if thread.name == "executor":
            thread.join(20)
            assert not thread.is_alive()


def lines(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run.results_file.read_text().splitlines()]


def by_task(run: Run) -> dict[str, dict[str, Any]]:
    return {line["task"]: line for line in lines(run)}
