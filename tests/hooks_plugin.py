"""A plugin of a third party that implements every hook and every event; what it is told is kept in `TOLD`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from debug_gym_core import (
    LLM,
    Agent,
    Benchmark,
    Completion,
    Message,
    Terminal,
    Tool,
    ToolCall,
    UsageError,
    hookimpl,
)
from debug_gym_core.plugins import default_plugins
from debug_gym_core.runs.jobs import Executor, Exporter
from debug_gym_core.testing import sample_task, write_sample
from debug_gym_core.testing.sample import FIXED_SHOP

TOLD: list[tuple[Any, ...]] = []
FAILING: set[str] = set()


def tell(hook: str, *facts: Any) -> None:
    TOLD.append((hook, *facts))
    if hook in FAILING:
        raise RuntimeError(f"{hook} fails")


class Mend(Tool):
    """Mend the file."""

    name = "mend"

    def use(self, env: Any) -> str:
        """Write it."""
        env.workspace.write_text("shop.py", FIXED_SHOP)
        return "mended"


class Listen(Tool):
    """Run the tests, or submit; and hear of everything."""

    name = "listen"

    def use(self, env: Any, submit: bool = False) -> str:
        """Measure or submit.

        Args:
            submit: whether to end the episode
        """
        if submit:
            env.submit("mended it")
            return "submitted"
        return f"{len(env.measure().tests)} tests"

    @hookimpl
    def on_reset(self, env: Any) -> str:
        tell("on_reset", env.task.id)
        return "heard of the reset"

    @hookimpl
    def on_file_changed(self, env: Any, path: str, edits: Any) -> str:
        tell("on_file_changed", path, [(one.start, one.old, one.new) for one in edits])
        return "heard of the change"

    @hookimpl
    def on_evaluated(self, env: Any, result: Any) -> str:
        tell("on_evaluated", sorted(result.outcomes.values()), env.score)
        return "heard of the tests"

    @hookimpl
    def on_step(self, env: Any, call: ToolCall) -> str:
        tell("on_step", call.name)
        return "heard of the step"

    @hookimpl
    def on_submitted(self, env: Any, message: str | None) -> str:
        tell("on_submitted", message)
        return "heard of the submission"


class Hooked(Benchmark):
    """The sample, three times."""

    name = "hooked"
    config: ClassVar[dict[str, Any]] = {
        "tools": ["mend", "listen"],
        "terminal": {"name": "nearby"},
        "agent": {"name": "asker"},
        "llm": {"name": "answers"},
        "run": {"executor": "backwards"},
    }
    _directory: ClassVar[tempfile.TemporaryDirectory[str] | None] = None

    def names(self) -> list[str]:
        return ["one", "two", "three"]

    def load(self, name: str) -> Any:
        if name not in self.names():
            raise UsageError(f"no task {name}")
        Hooked._directory = Hooked._directory or tempfile.TemporaryDirectory()
        repository = write_sample(Path(Hooked._directory.name) / name)
        return sample_task(repository, benchmark=self.name, name=name)


class Asker(Agent):
    """Asks until nothing is asked of it."""

    name = "asker"

    def play(self, env: Any, llm: LLM | None) -> None:
        assert llm is not None
        over = False
        while not over:
            message = llm.complete([Message("user", env.last_text)], []).message
            over = not message.calls
            for call in message.calls:
                *_, terminated, truncated, _ = env.step(call)
                over = terminated or truncated


class Answers(LLM):
    """Answers from a list."""

    name = "answers"
    trusted = True

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.left = [ToolCall("listen"), ToolCall("mend"), ToolCall("listen", {"submit": True})]

    def complete(self, messages: Any, tools: Any) -> Completion:
        return Completion(Message("assistant", "", (self.left.pop(0),) if self.left else ()))


class Backwards(Executor):
    """Plays the last one first."""

    name = "backwards"

    def execute(self, jobs: Any, play: Any, finished: Any, *, workers: int, stop: Any) -> None:
        for job in reversed(jobs):
            finished(job, play(job))


class Names(Exporter):
    """The names of the tasks, a line each."""

    name = "names"

    def export(self, run: Path, target: Path) -> None:
        try:
            lines = (run / "results.jsonl").read_text().splitlines()
            target.write_text("".join(f"{json.loads(line)['task']}\n" for line in lines))
        except OSError as error:
            raise UsageError(f"{error.filename}: {error.strerror}") from error


@hookimpl
def debug_gym_register_tools() -> list[type[Tool]]:
    return [Mend, Listen]


@hookimpl
def debug_gym_register_terminals() -> list[type[Terminal]]:
    local = default_plugins().get("terminals", "local")
    return [type("Nearby", (local,), {"name": "nearby", "__doc__": "The local terminal under another name."})]


@hookimpl
def debug_gym_register_benchmarks() -> list[type[Benchmark]]:
    return [Hooked]


@hookimpl
def debug_gym_register_agents() -> list[type[Agent]]:
    return [Asker]


@hookimpl
def debug_gym_register_llms() -> list[type[LLM]]:
    return [Answers]


@hookimpl
def debug_gym_register_executors() -> list[type[Executor]]:
    return [Backwards]


@hookimpl
def debug_gym_register_exporters() -> list[type[Exporter]]:
    return [Names]


@hookimpl
def debug_gym_run_started(run: Any) -> None:
    tell("run_started", run.directory.is_dir(), len(run.results))


@hookimpl
def debug_gym_episode_started(env: Any) -> None:
    tell("episode_started", env.task.id, env.steps, env.session.run("echo live", timeout=20).output)


@hookimpl
def debug_gym_episode_stepped(env: Any, event: Any) -> None:
    tell("episode_stepped", str(event.kind), event.data.get("step"))


@hookimpl
def debug_gym_episode_finished(result: Any) -> None:
    tell("episode_finished", result.task, result.status)


@hookimpl
def debug_gym_run_finished(run: Any) -> None:
    tell("run_finished", len(run.results), len((run.directory / "results.jsonl").read_text().splitlines()))
