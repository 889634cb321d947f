"""A backend behind which a person sits: it sees the environment, plays one episode at a time, can stop the run."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from debug_gym_core.cli.attended import AttendedDisplay, asking_twice
from debug_gym_core.cli.tables import make_console
from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.loading import load
from debug_gym_core.errors import SandboxLost
from debug_gym_core.plugins import load_plugins
from debug_gym_core.runs import episode_env, recorder
from debug_gym_core.runs.experiment import Experiment
from debug_gym_core.runs.jobs import Job
from debug_gym_core.runs.run import Run
from debug_gym_core.runs.trajectory import Event, Result


def test_ctrl_c_interrupts_what_runs_and_asks_before_it_stops_the_run() -> None:
    under_way: list[int | None] = [3]
    asked: list[int | None] = []

    def interrupt(step: int | None) -> int | None:
        asked.append(step)
        return under_way[0] if step in (None, under_way[0]) else None

    said: list[str] = []
    display: Any = SimpleNamespace(prose=said.append, happened=0)
    press, again, last = (partial(asking_twice(display, interrupt), 2, None) for _ in range(3))
    press()
    under_way[0] = None  # which hears nothing any more
    with pytest.raises(KeyboardInterrupt):  # it went on
        press()
    under_way[0], display.happened = 4, 1
    with pytest.raises(KeyboardInterrupt):  # the run is being stopped: at once
        press()
    press = again
    press()
    display.happened = 2  # it came back
    under_way[0] = None  # a tool that begins
    press()
    under_way[0] = 5
    press()
    with pytest.raises(KeyboardInterrupt):
        press()
    press = last
    under_way[0] = None
    press()
    with pytest.raises(KeyboardInterrupt):  # nothing can be interrupted
        press()
    stops = "stops the run: patch kept, nothing graded"
    goes_on = f"\ninterrupted; if it goes on, Ctrl-C again {stops}"
    begins = f"\nCtrl-C again interrupts the tool, if it can by then, or {stops}; else wait for the tool"
    assert said == [goes_on, goes_on, begins, goes_on, begins] and asked.count(None) == 8


TOY = Path(__file__).parent / "toy_plugin.py"
PERSON = '''
import threading

from debug_gym_core import LLM, Completion, Message, hookimpl

seen = []
asked = threading.Event()
answered = threading.Event()


class Person(LLM):
    """Somebody who waits, and may want to stop."""

    name = "person"
    trusted = True

    def begin(self, env):
        seen.append(("begin", env.task.name, env.steps, env.last_text.split("\\n")[0]))

    def complete(self, messages, tools):
        seen.append(("complete", threading.current_thread().name))
        asked.set()
        answered.wait()
        if "stop" in seen:
            raise KeyboardInterrupt
        return Completion(Message("assistant", "done"))

    def interrupt(self):
        seen.extend(["interrupt", "stop"])
        answered.set()


@hookimpl
def debug_gym_register_llms():
    return [Person]
'''


class Nobody:
    """Looks on and remembers who was stopped."""

    def __init__(self) -> None:
        self.ends: list[bool] = []

    def started(self, job: Job) -> None: ...
    def event(self, job: Job, event: Event) -> None: ...
    def note(self, text: str) -> None: ...
    def stopping(self) -> None: ...

    def finished(self, job: Job, result: Result | None) -> None:
        self.ends.append(result is not None)


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    monkeypatch.setenv("DEBUG_GYM_PLUGINS", "core,terminal-local")
    file = tmp_path / "person.py"
    file.write_text(PERSON)
    yield load_plugins(files=[TOY, file], strict=True)


@pytest.fixture
def person(plugins: Plugins) -> Any:
    """The module of the person: what they saw, and how to make them answer."""
    import sys

    return sys.modules[plugins.llms["person"].__module__]


@pytest.fixture
def experiment(plugins: Plugins, tmp_path: Path) -> Iterator[Experiment]:
    config = load("toy", ["benchmark.tasks=[a, b]"], agent="chatter", llm="person", plugins=plugins)
    with Run.create(config, tmp_path / "run", plugins=plugins) as run:
        yield Experiment(run, plugins, Nobody(), workers=4)


def test_the_environment_is_shown_before_the_first_question(experiment: Experiment, person: Any) -> None:
    person.answered.set()
    experiment.play()
    assert [item for item in person.seen if item[0] == "begin"] == [
        ("begin", "a", 0, "Task toy/a"),
        ("begin", "b", 0, "Task toy/b"),
    ]
    order = [item[0] for item in person.seen]
    assert order[0] == "begin" and "complete" in order[1 : order.index("begin", 1)]


def test_one_episode_at_a_time_however_many_workers(experiment: Experiment, person: Any) -> None:
    person.answered.set()
    experiment.play()
    assert {item[1] for item in person.seen if item[0] == "complete"} == {"worker-0"}


def test_who_is_asked_can_stop_the_run(experiment: Experiment, person: Any) -> None:
    person.seen.append("stop")
    person.answered.set()
    experiment.play()
    assert experiment.stopped
    assert not experiment.run.results
    assert len([item for item in person.seen if item[0] == "begin"]) == 1


def test_stopping_the_run_interrupts_who_is_asked(experiment: Experiment, person: Any) -> None:
    def stop() -> None:
        person.asked.wait()
        experiment.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    experiment.play()
    thread.join()
    assert "interrupt" in person.seen
    assert not experiment.run.results


def test_a_sandbox_that_does_not_answer_does_not_hang_the_stop(
    experiment: Experiment, person: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, asked = threading.Event(), []

    def patch(env: Any) -> bytes:
        asked.append(env)
        answers.wait()
        return b""

    monkeypatch.setattr(recorder, "RESCUE_TIME", 0.05)
    monkeypatch.setattr(episode_env.EpisodeEnv, "patch", property(patch))
    person.seen.append("stop")
    person.answered.set()
    experiment.play()
    assert experiment.stopped and len(asked) == 1
    answers.set()


@pytest.mark.parametrize("concluded", [False, True])
def test_whoever_plays_is_told_why_the_task_starts_anew(concluded: bool) -> None:
    stream = io.StringIO()
    display = AttendedDisplay(make_console(stream), 50, 2, None, concluded=concluded)
    job = Job("toy/a", "a", 0)
    display.started(job)
    display.event(job, Event.error(SandboxLost("the container is gone"), retried=True))
    display.event(job, Event.error(SandboxLost("gone again"), retried=False))
    display.finished(job, Result("toy/a", "tool_agent", "human", "resolved", True, 1, 1))
    assert display.happened == 2
    said = stream.getvalue()
    assert "the container is gone; the task starts anew" in said
    assert "gone again" not in said
    assert ("toy/a: resolved" in said) is not concluded
