"""Episodes that were kept, played again: the same actions in a fresh environment, and what they show compared.

Nothing of the old run is written and no model is asked. What an agent without a model does beside its actions, such as
applying a patch, no trajectory tells; so it plays again itself, and its actions are compared too.
"""

from __future__ import annotations

import contextlib
import difflib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core.config.loading import from_data
from debug_gym_core.config.paths import sources
from debug_gym_core.environment.backend import choose_terminal
from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.errors import NO_FAULT, DebugGymError, EpisodeEnds, RequirementError, UsageError, cause_of
from debug_gym_core.postponed import postponed_interrupts, wait_for
from debug_gym_core.redaction import redact
from debug_gym_core.runs.parts import EpisodeParts
from debug_gym_core.runs.provenance import naming_absent
from debug_gym_core.runs.reading import Episode, Trajectory, as_action, was_malformed
from debug_gym_core.runs.run import read_record
from debug_gym_core.tools.action import ToolCall

if TYPE_CHECKING:
    from debug_gym_core.agents.agent import Agent
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.runs.trajectory import Event
    from debug_gym_core.sandbox.terminal import Terminal
    from debug_gym_core.tasks.results import Grade
    from debug_gym_core.tasks.task import Task

LONGEST = 2_000
"""Lines of a text that are compared one by one; of a longer one these first."""

PATIENCE = 30.0
"""Seconds that a sandbox has to end when the replay is stopped."""


class Enough(EpisodeEnds):
    """There is nothing more to compare."""


@dataclass(frozen=True)
class Difference:
    """The first thing that is not as it was.

    Attributes:
        step: of which it is
        words: what differs
        diff: the lines of a unified diff from the saved text to the new one; empty where no text differs
    """

    step: int
    words: str
    diff: Sequence[str] = ()


@dataclass(frozen=True)
class Outcome:
    """What came of a replay.

    Attributes:
        steps: that were played, the reset not counted
        of: how many were saved
        difference: the first one; None: all showed the same
        grade: the new one; None where there is no old one to compare with, or not all was played
        was: the facts of the old one
        python: the new interpreter's version, where it is another one than the old one's
        notes: what a person should know of how it was played
    """

    steps: int
    of: int
    difference: Difference | None
    grade: Grade | None
    was: Mapping[str, Any] | None
    python: str | None = None
    notes: Sequence[str] = ()

    @property
    def scored_same(self) -> bool:
        """Whether the score is the old one, as far as it was measured."""
        if self.grade is None or self.was is None:
            return True
        new = (self.grade.score, self.grade.max_score, self.grade.resolved)
        return new == (self.was["score"], self.was["max_score"], self.was["resolved"])

    @property
    def same(self) -> bool:
        """Whether all is as it was."""
        return self.difference is None and self.scored_same


class Replayer:
    """Plays the episodes of one run again, one after the other."""

    def __init__(self, run: Path, plugins: Plugins, terminal: str | None = None, *, trusted: bool = False) -> None:
        """Look up what the run's config names.

        Args:
            run: its directory
            plugins: what is installed
            terminal: the sandbox backend; None: the run's, if it isolates. A run may be somebody else's, so that what
                it says does not make its actions trusted: only who names a backend here may do without isolation
            trusted: whether what the run says of this machine is believed too: paths, sources, a weaker sandbox, none

        Raises:
            UsageError: there is no run, its config does not fit what is installed, or it says what is not believed
            PluginError: a plugin that is needed failed
        """
        record = read_record(run)
        self.run, self.plugins, self._terminal, self._trusted = run, plugins, terminal, trusted
        with naming_absent(record, plugins):
            self.config = from_data(record["config"], str(run / "run.json"), plugins)
        self.agent_class: type[Agent] = plugins.get("agents", self.config.agent.name)
        if not trusted:
            self._refuse_what_is_not_believed()
        self._parts = EpisodeParts.of(self.config, plugins)
        self._env: ReplayEnv | None = None

    def play(self, episode: Episode, trajectory: Trajectory, stop_after: int | None = None) -> Outcome:
        """Play an episode again; an interrupt ends its sandbox first.

        Args:
            episode: of the run
            trajectory: what happened in it
            stop_after: the last step that is played, without a grade; None: all

        Raises:
            UsageError: no step is saved, the task is unknown
            RequirementError: there is no sandbox, or something else is missing
            SandboxError: the sandbox was lost
            TaskError: the task is not what its benchmark says, or the agent cannot play it
        """
        found: list[Outcome] = []
        failures: list[BaseException] = []
        done = threading.Event()

        def work() -> None:
            try:
                found.append(self._play(episode, trajectory, stop_after))
            except BaseException as error:
                failures.append(error)
            finally:
                done.set()

        # In a thread of its own, as in a run: an interrupt comes between any two instructions of the main one.
        playing = threading.Thread(target=work, name="replay", daemon=True)
        try:
            with postponed_interrupts():
                playing.start()
            wait_for(done)
        except KeyboardInterrupt:
            env = self._env
            if env is not None:
                ending = threading.Thread(target=_end, args=(env,), daemon=True)
                ending.start()
                ending.join(PATIENCE)
                done.wait(PATIENCE)
            raise
        if failures:
            raise failures[0]
        return found[0]

    def _refuse_what_is_not_believed(self) -> None:
        """Refuse a run whose config reaches beyond an ordinary sandbox: who wrote it may be anybody.

        Raises:
            UsageError: it does
        """
        sections = {"benchmark", "env", "tools", "terminal"} | (set() if self.agent_class.needs_llm else {"agent"})
        data = self.config.model_dump(mode="json")
        found = [f"{key} is {value}" for key, value in sources(data, self.plugins, sections)]
        section = self.config.terminal
        name = self._terminal or section.name
        backends = [cls for cls in self.plugins.terminals.values() if cls.isolates] if name == "auto" else []
        for backend in backends or [self.plugins.get("terminals", name)]:
            found += backend.check_settings(section.settings_for(backend)).weakened()
        if found:
            said = "; ".join(dict.fromkeys(found))
            whose = f"{self.run / 'run.json'} may be somebody else's, so what it says of this machine is not believed"
            raise UsageError(f"{whose}: {said}; if the run is yours, add --trust")

    def _play(self, episode: Episode, trajectory: Trajectory, stop_after: int | None) -> Outcome:
        saved = _whole(trajectory.steps)
        if not saved:
            raise UsageError(f"{episode}: no step is saved, so there is nothing to play")
        notes: list[str] = []
        if len(saved) < len(trajectory.steps):
            notes.append(f"step {len(saved)} is missing in the trajectory; what came after it is not played")
        last = len(saved) - 1
        if not trajectory.ended or len(saved) < len(trajectory.steps):
            stop_after = last if stop_after is None else min(last, stop_after)
        task = self._parts.load(episode.task.removeprefix(f"{self._parts.benchmark.name}/"))
        backend, note = self._backend(task)
        notes += [note] if note else []
        out_of_time = last if trajectory.result is not None and trajectory.result.ended == "time" else None
        env = self._env = self._make(task, backend, saved=saved, stop_after=stop_after, out_of_time=out_of_time)
        agent = self._parts.new_agent()
        grade = None
        try:
            agent.prepare(env)
            with contextlib.suppress(Enough):
                env.reset(seed=trajectory.started.get("seed", self.config.run.seed + (episode.repeat or 1) - 1))
                try:
                    self._act(agent, env)
                except DebugGymError as error:
                    if env.difference is None:
                        raise
                    notes.append(str(error))
                env.end_compared()
                if env.failure is not None:
                    raise env.failure
                if trajectory.grade is not None:
                    grade = env.final_grade or env.grade()
            other = _other_python(trajectory, env.session.interpreter["version"])
            return Outcome(env.steps, last, env.difference, grade, trajectory.grade, other, notes)
        finally:
            self._env = None
            env.close()

    def _act(self, agent: Agent, env: ReplayEnv) -> None:
        """Have the actions carried out.

        Raises:
            DebugGymError: the agent cannot play, or failed
        """
        if agent.needs_llm:
            env.play_saved()
            return
        try:
            agent.play(env, None)
        except (DebugGymError, *NO_FAULT):
            raise
        except BaseException as error:
            raise DebugGymError(f"{agent.name} failed: {cause_of(error)}") from error

    def _backend(self, task: Task) -> tuple[type[Terminal], str | None]:
        """The sandbox that it is played in, and what a person should read."""
        section = self.config.terminal
        name, note = self._terminal or section.name, None
        chosen = self._terminal is not None or self._trusted
        if not chosen and name != "auto" and not self.plugins.get("terminals", name).isolates:
            name, note = "auto", f"played in a sandbox; the run was played in {name}, which --terminal {name} takes"
        try:
            settings = {"image": section.image}
            backend, other = choose_terminal(name, task, chosen, self.plugins, settings)
        except RequirementError as error:
            if name != "auto":
                raise
            why = str(error).split("\n", 1)[0]
            raise RequirementError(f"{why}\n--terminal local plays what was saved without isolation") from error
        return backend, note or other

    def _make(self, task: Task, backend: type[Terminal], **saved: Any) -> ReplayEnv:
        arguments = self._parts.env_arguments(backend)
        arguments["max_seconds"] = None  # how long it takes here says nothing of how long it took
        arguments["terminal"][backend.name].pop("allow_unsandboxed", None)
        trusted = self._terminal is not None or self._trusted
        return ReplayEnv(task, trusted=trusted, run="replay", **saved, **arguments)


class ReplayEnv(RepoEnv):
    """An environment that compares what it shows with what was saved.

    Attributes:
        difference: the first one
    """

    def __init__(
        self,
        *arguments: Any,
        saved: Sequence[Event],
        stop_after: int | None,
        out_of_time: int | None,
        **settings: Any,
    ) -> None:
        """As `RepoEnv`.

        Args:
            arguments: of `RepoEnv`
            saved: the steps, the reset the first of them, none left out
            stop_after: the last step that is played; None: as many as come
            out_of_time: the step at which the saved episode had no time left; None: it had always some
            settings: of `RepoEnv`
        """
        super().__init__(*arguments, **settings)
        self.difference: Difference | None = None
        self._saved, self._stop_after, self._out_of_time = saved, stop_after, out_of_time

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """Start the episode, and compare what the agent sees first.

        Raises:
            Enough: no step is to be played
        """
        observation, info = super().reset(seed=seed, options=options)
        self._compare(observation["text"])
        return observation, info

    def step(self, action: Any) -> tuple[dict[str, str], float, bool, bool, dict[str, Any]]:
        """Carry out and compare one action.

        Raises:
            Enough: it was the last one that is to be played
        """
        observation, reward, terminated, truncated, info = super().step(action)
        if self.steps < len(self._saved):
            data = self._saved[self.steps].data
            said = self.last_call or action
            if isinstance(said, ToolCall) and _differs(said, data["action"]):
                self._note("the agent did something else")
            self._compare(observation["text"], ends=terminated or truncated)
        return observation, reward, terminated, truncated, info

    def play_saved(self) -> None:
        """Carry the saved actions out, whatever they show; ends where the episode does."""
        for event in self._saved[1:]:
            if self.ended is not None:
                return
            action = as_action(event.data["action"])
            if isinstance(action, ToolCall) and not was_malformed(event):
                self.give_back(action.name)  # which the agent withheld at first and gave back by now
            self.step(action)

    def end_compared(self) -> None:
        """The episode is over: tell when it has fewer or more steps than were saved."""
        last = len(self._saved) - 1
        if self.steps != last:
            how = f"{self.steps} steps, was {last}"
            self._note(f"the episode has {how}", min(self.steps, last) + 1)

    def _compare(self, text: str, *, ends: bool = False) -> None:
        saved = self._saved[self.steps].data
        old, new = saved["observation"]["text"], redact(text)
        if old != new:
            self._note("the text differs", diff=tuple(_diff(old, new)))
        if ends != (saved["terminated"] or saved["truncated"]):
            self._note(f"the episode ends here ({self._why()})" if ends else "the episode goes on where it ended")
        if self._stop_after is not None and self.steps >= self._stop_after:
            raise Enough

    def _truncated(self) -> str:
        """Which limit truncates the episode; that of time does where it did."""
        return super()._truncated() or ("time" if self.steps == self._out_of_time else "")

    def _why(self) -> str:
        return (self.ended or "").replace("_", " ")

    def _note(self, words: str, step: int | None = None, diff: Sequence[str] = ()) -> None:
        if self.difference is None:
            self.difference = Difference(self.steps if step is None else step, words, diff)


def _differs(said: ToolCall, saved: Any) -> bool:
    """Whether a call is another one than the saved; what its id was does not matter."""
    before = as_action(saved)
    return isinstance(before, ToolCall) and said.as_json() != before.as_json()


def _other_python(trajectory: Trajectory, version: str) -> str | None:
    """The version of the interpreter, where the old one had another."""
    was = trajectory.started.get("python")
    return version if isinstance(was, Mapping) and was.get("version") not in (None, version) else None


def _whole(steps: Sequence[Event]) -> list[Event]:
    """The steps up to the first that is missing."""
    gap = next((number for number, event in enumerate(steps) if event.data["step"] != number), len(steps))
    return list(steps[:gap])


def _diff(old: str, new: str) -> list[str]:
    before, after = old.split("\n")[:LONGEST], new.split("\n")[:LONGEST]
    lines = list(difflib.unified_diff(before, after, "saved", "now", lineterm="", n=2))
    return lines or [f"(only what comes after {LONGEST} lines differs)"]


def _end(env: RepoEnv) -> None:
    with contextlib.suppress(Exception):
        env.close()
