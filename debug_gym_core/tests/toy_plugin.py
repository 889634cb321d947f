"""A small benchmark with its agents, tool and model, to run experiments with: all real, nothing stands in for another.

The tasks `a`, `b`, `c` are all the directory toy_repository, whose check.py passes once `answer` holds 42.
"""

import os
import threading
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from debug_gym_core import (
    LLM,
    Agent,
    AgentSettings,
    Benchmark,
    BenchmarkSettings,
    Completion,
    Message,
    Settings,
    Task,
    Tool,
    ToolCall,
    Usage,
    UsageError,
    hookimpl,
)
from debug_gym_core.errors import LLMError

REPOSITORY = Path(__file__).parent / "toy_repository"


class ToySettings(BenchmarkSettings):
    source: str | None = None
    split: str | None = None
    revision: str | None = None
    extra_tasks: int = 0
    journal: Path | None = None
    predicts: bool = False
    titled: bool = False
    only_visible: bool = False
    known_to_fail: bool = True


class Toy(Benchmark):
    """Three tasks that want the answer 42."""

    name = "toy"
    Settings: ClassVar = ToySettings
    config: ClassVar = {
        "tools": ["sh"],
        "terminal": {"name": "local"},
        "agent": {"name": "fixer", "max_steps": 7},
        "env": {"run_timeout": 20},
        "fixer": {"agent": {"max_rewrites": 3}},
    }

    def names(self):
        return ["a", "b", "c", *(f"x{number}" for number in range(self.settings.extra_tasks))]

    def load(self, name):
        if name not in (*self.names(), "hopeless"):
            raise UsageError(f"no task {name}")
        return Task(
            benchmark=self.name,
            name=name,
            repository=REPOSITORY,
            entrypoint="python check.py",
            description="The answer is wrong. Nobody knows the question.",
            max_score=1,
            known_to_fail=self.settings.known_to_fail,  # a sandbox less an episode
            mode="visible" if self.settings.only_visible else self.settings.mode,
        )

    def prediction(self, name, patch, model):
        return {"name": name, "patch": patch.decode(), "by": model} if self.settings.predicts else None

    def titles(self):
        return {"a": "Answers the question of\nlife, the universe and everything else"} if self.settings.titled else {}

    def excluded(self):
        return {"hopeless": "its tests pass before the fix"}


class Sh(Tool):
    """Run a command."""

    name = "sh"

    def use(self, env, command: str):
        """Run it.

        Args:
            command: for the shell
        """
        if command == "lose the sandbox":
            env.session.terminal.stop()
        return env.session.run(command, timeout=600).output


class FixerSettings(AgentSettings):
    played: Path | None = None
    commands: dict[str, str] = Field(default_factory=dict)
    lose: int = 0


class Fixer(Agent):
    """Writes the answer, after a command that its settings name for the task."""

    name = "fixer"
    needs_llm = False
    Settings: ClassVar = FixerSettings

    def play(self, env, llm):
        if self.settings.played:
            with self.settings.played.open("a") as file:
                file.write(f"{env.task.name} {env.seed}\n")
        command = self.settings.commands.get(env.task.name)
        if command:
            env.step(ToolCall("sh", {"command": command}))
        if self.settings.lose and self.settings.played.read_text().count(f"{env.task.name} ") <= self.settings.lose:
            env.step(ToolCall("sh", {"command": "lose the sandbox"}))
        env.step(ToolCall("sh", {"command": "printf 42 > answer"}))


class Breaker(Agent):
    """Fails by a fault of its own."""

    name = "breaker"
    needs_llm = False

    def play(self, env, llm):
        raise ZeroDivisionError("this agent\nis broken")


class Wordless(BaseException):
    def __str__(self):
        return self.words


class Quitter(Agent):
    """Wants to end the program."""

    name = "quitter"
    needs_llm = False

    def play(self, env, llm):
        raise {"a": SystemExit, "b": KeyboardInterrupt, "c": Wordless}[env.task.name]("enough")


class Stubborn(Agent):
    """Never comes back, and looks at nobody."""

    name = "stubborn"
    needs_llm = False

    def play(self, env, llm):
        Path("started").write_text("x")
        threading.Event().wait()


class Eager(Agent):
    """Goes on after the end, and does what is right only then."""

    name = "eager"
    needs_llm = False

    def play(self, env, llm):
        while env.ended is None:
            env.step(ToolCall("sh", {"command": "true"}))
        _, reward, terminated, truncated, info = env.step(ToolCall("sh", {"command": "printf 42 > answer"}))
        return f"{env.last_text} {reward} {terminated} {truncated} {info['step']}"


class Chatter(Agent):
    """Does what the model says until it says nothing."""

    name = "chatter"
    end_on_resolved = False

    def play(self, env, llm):
        messages = [Message("user", env.last_text)]
        while calls := llm.complete(messages, []).message.calls:
            for call in calls:
                _, _, terminated, truncated, _ = env.step(call)
                if terminated or truncated:
                    return


class Historian(Agent):
    """Keeps the whole conversation, as an agent that wants its prompts cached."""

    name = "historian"
    end_on_resolved = False

    def play(self, env, llm):
        messages = [Message("user", env.last_text)]
        while calls := (answer := llm.complete(messages, []).message).calls:
            messages.append(answer)
            for call in calls:
                messages.append(Message("tool", env.step(call)[0]["text"]))


class EchoSettings(Settings):
    temperature: float | None = None
    commands: tuple[str, ...] = ("printf 42 > answer",)
    prices: float = 0.25


class Echo(LLM):
    """Says the commands of its settings, one after the other."""

    name = "echo"
    Settings: ClassVar = EchoSettings

    def __init__(self, **settings):
        super().__init__(**settings)
        self._left = list(self.settings.commands)

    def complete(self, messages, tools):
        calls = (ToolCall("sh", {"command": self._left.pop(0)}),) if self._left else ()
        return Completion(Message("assistant", "so be it", calls), Usage(100, 20, 50, self.settings.prices))


class MeterSettings(Settings):
    asked: Path = Path("asked")
    fails_at: int = 0
    closes: bool = True


class Meter(LLM):
    """Says `true` and then writes the answer; notes each call, of which one fails."""

    name = "meter"
    Settings: ClassVar = MeterSettings
    replayable = True

    def complete(self, messages, tools):
        with self.settings.asked.open("a") as file:
            file.write("x")
        if self.settings.asked.stat().st_size == self.settings.fails_at:
            raise LLMError("it is out of words")
        said = sum(message.role == "assistant" for message in messages)
        calls = tuple(ToolCall("sh", {"command": one}) for one in ("true", "printf 42 > answer")[said : said + 1])
        return Completion(Message("assistant", "so be it", calls), Usage(100, 20))

    def close(self):
        if not self.settings.closes:
            raise OSError("it does not let go")


class Watcher:
    """Where the observers write, when the environment names a file."""

    @staticmethod
    def say(text):
        if "TOY_OBSERVED" in os.environ:
            with Path(os.environ["TOY_OBSERVED"]).open("a") as file:
                file.write(text + "\n")


@hookimpl
def debug_gym_register_benchmarks():
    return [Toy]


@hookimpl
def debug_gym_register_tools():
    return [Sh]


@hookimpl
def debug_gym_register_agents():
    return [Fixer, Breaker, Quitter, Eager, Stubborn, Chatter, Historian]


@hookimpl
def debug_gym_register_llms():
    return [Echo, Meter]


@hookimpl
def debug_gym_run_started(run):
    Watcher.say(f"run {run.config.benchmark.name}")


@hookimpl
def debug_gym_episode_started(env):
    Watcher.say(f"episode {env.task.id}")


@hookimpl
def debug_gym_episode_stepped(env, event):
    Watcher.say(f"event {event.kind} {event.number}")


@hookimpl
def debug_gym_episode_finished(result):
    Watcher.say(f"result {result.status}")
    if "TOY_OBSERVED" in os.environ:
        raise (SystemExit if result.task.endswith("b") else BaseException)(
            "an observer's fault " + "stops nobody " * 999
        )


@hookimpl
def debug_gym_run_finished(run):
    Watcher.say("end")
