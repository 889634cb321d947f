"""One episode: a task made live, an agent that plays it, its journal, its grade."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core import interpreter as interpreters
from debug_gym_core.choice import choose_terminal
from debug_gym_core.entrypoint import Entrypoint
from debug_gym_core.env import RepoEnv
from debug_gym_core.errors import RequirementError, SandboxLost
from debug_gym_core.llm import LLM, Completion, Message, Usage
from debug_gym_core.names import nearest
from debug_gym_core.trajectory import Event, EventKind, Journal, Result, Tokens, describe

if TYPE_CHECKING:
    from debug_gym_core.agent import Agent
    from debug_gym_core.experiment import Job, Watch
    from debug_gym_core.grading import Grade
    from debug_gym_core.plugins import Plugins
    from debug_gym_core.run import Run
    from debug_gym_core.task import Benchmark, Task
    from debug_gym_core.terminal import Terminal

log = logging.getLogger("debug_gym")


class EpisodeStopped(BaseException):
    """The run was stopped; not an Exception, so that no agent goes on after it."""


class OutOfMoney(BaseException):
    """The run's money is spent; ends the episode as a limit does. Not an Exception, as `EpisodeStopped`."""


class Players:
    """Plays the episodes of one run; `play` may be called from several threads at once.

    Attributes:
        benchmark: where the tasks are
    """

    def __init__(self, run: Run, plugins: Plugins, watch: Watch, stop: threading.Event, *, verbose: bool) -> None:
        """Look up what the config names.

        Args:
            run: the run
            plugins: what is installed
            watch: is told what happens
            stop: when it is set, episodes under way end without a result
            verbose: keep prompts and answers in the trajectories

        Raises:
            UsageError: a name is unknown
            PluginError: a plugin that is needed failed
        """
        config = run.config
        self.run, self.plugins, self.watch, self.stopping, self.verbose = run, plugins, watch, stop, verbose
        self.config = config
        benchmark_class = plugins.get("benchmarks", config.benchmark.name)
        self.benchmark: Benchmark = benchmark_class(**config.benchmark.settings_for(benchmark_class))
        self.agent_class: type[Agent] = plugins.get("agents", config.agent.name)
        self.llm_class: type[LLM] | None = None
        if self.agent_class.needs_llm:
            self.llm_class = _find_llm(config.llm.name, plugins)
        self.trusted = self.llm_class is None or self.llm_class.trusted
        settings = config.tool_settings()
        names = list(settings) if self.agent_class.tools is None else self.agent_class.tools
        self.tools: list[Any] = [{name: settings[name]} if settings.get(name) else name for name in names]
        for name in names:
            plugins.get("tools", name)(**settings.get(name, {}))
        self.spent = sum(result.cost for result in run.results.values())
        self._mutex = threading.Lock()
        self._loading = threading.Lock()
        self._live: set[RepoEnv] = set()
        for text in self._weakened():
            run.note(text)

    def check(self, job: Job) -> None:
        """Make sure that an episode could start: its task loads, a sandbox can be had, the model is known.

        Raises:
            UsageError, PluginError, RequirementError: it could not
        """
        self._new_agent()
        self._new_llm()
        task = self._load(job)
        backend = self._backend(task)
        env = self.config.env
        for entrypoint in filter(None, (env.entrypoint or task.entrypoint, env.debug_entrypoint)):
            Entrypoint.parse(entrypoint)
        if not backend.runs_images:
            interpreters.find(task.repository, env.python or task.python)

    def play(self, job: Job) -> Result | None:
        """Play one episode, again when its sandbox is lost.

        Returns:
            its result; None when the run was stopped or its money is spent
        """
        if self.is_spent():
            return None
        self.watch.started(job)
        started = time.monotonic()
        directory = self.run.task_directory(job.task, job.repeat)
        directory.mkdir(parents=True, exist_ok=True)
        with EpisodeLog(directory / "log.txt") as transcript:
            for attempt in range(1, self.config.run.max_retries + 2):
                recorder = Recorder(self, job, directory, attempt, transcript)
                try:
                    result = self._attempt(job, recorder)
                except EpisodeStopped:
                    transcript.write("stopped")
                    return None
                except Exception as error:
                    if self.stopping.is_set():
                        transcript.write("stopped", error)
                        return None
                    again = isinstance(error, SandboxLost) and attempt <= self.config.run.max_retries
                    transcript.write(f"{job} failed", error)
                    recorder(Event.error(error, retried=again))
                    if again:
                        continue
                    result = recorder.result(time.monotonic() - started, error=error)
                finally:
                    recorder.close()
                return result
        raise AssertionError("the last attempt returns")

    def stop(self) -> None:
        """End the environments of the episodes under way; what waits in them for a sandbox comes back at once."""
        with self._mutex:
            live = list(self._live)
        for env in live:
            threading.Thread(target=_close_quietly, args=(env,), daemon=True).start()

    def stop_if_asked(self) -> None:
        """Leave the episode when the run is being stopped."""
        if self.stopping.is_set():
            raise EpisodeStopped

    def pay(self, cost: float) -> None:
        """Count money that a call cost."""
        with self._mutex:
            self.spent += cost

    def is_spent(self) -> bool:
        """Whether the run has spent what it may (`run.max_cost`)."""
        limit = self.config.run.max_cost
        return limit is not None and self.spent >= limit

    def _attempt(self, job: Job, recorder: Recorder) -> Result:
        started = time.monotonic()
        self.stop_if_asked()
        task = self._load(job)
        backend = self._backend(task)
        agent = self._new_agent()
        llm = self._new_llm()
        config = self.config
        ends = config.env.end_on_resolved
        env = EpisodeEnv(
            task,
            self.tools,
            {backend.name: _without_none(config.terminal.settings_for(backend))},
            plugins=self.plugins,
            trusted=self.trusted,
            max_steps=config.agent.max_steps,
            max_rewrites=config.agent.max_rewrites,
            max_seconds=config.run.task_timeout,
            run=self.run.id,
            notify=lambda _: None,
            **{
                **dict(config.env),
                "end_on_resolved": self.agent_class.end_on_resolved if ends is None else ends,
            },
        )
        env.episode = recorder
        recorder.env = env
        with self._mutex:
            self._live.add(env)
        try:
            recorder(
                Event.episode_started(
                    task=task.id,
                    agent=config.agent.name,
                    llm=config.llm.name if llm else None,
                    terminal=backend.name,
                    tools=list(env.tools),
                    seed=job.seed,
                    attempt=recorder.attempt,
                )
            )
            env.reset(seed=job.seed)
            with contextlib.suppress(OutOfMoney):
                agent.play(env, RecordedLLM(llm, config.llm.name, recorder) if llm else None)
            self.stop_if_asked()
            if env.failure is not None:
                raise env.failure
            recorder.keep_patch(env.patch)
            grade = env.final_grade or env.grade()
            recorder(Event.grade(grade))
            result = recorder.result(time.monotonic() - started, grade=grade)
            recorder(Event.episode_finished(result))
            return result
        finally:
            with self._mutex:
                self._live.discard(env)
            recorder.env = None
            _close_quietly(env)

    def _load(self, job: Job) -> Task:
        with self._loading:
            return self.benchmark.load(job.name)

    def _backend(self, task: Task) -> type[Terminal]:
        section = self.config.terminal
        settings = {"image": section.image, "allow_unsandboxed": section.allow_unsandboxed}
        backend, note = choose_terminal(section.name, task, self.trusted, self.plugins, settings)
        self.note(note)
        return backend

    def note(self, text: str | None) -> None:
        """Note for the run's record what weakens it, and tell it once."""
        if text and self.run.note(text):
            self.watch.note(text)

    def _new_agent(self) -> Agent:
        return self.agent_class(**self.config.agent.settings_for(self.agent_class))

    def _new_llm(self) -> LLM | None:
        if self.llm_class is None:
            return None
        return self.llm_class(**self.config.llm.settings_for(self.llm_class))

    def _weakened(self) -> Iterator[str]:
        """What the config takes away from the sandbox's or the grading's strength."""
        if self.config.terminal.network != "none":
            yield f"terminal.network is {self.config.terminal.network}: the sandbox can reach the network"
        if self.config.terminal.allow_unsandboxed:
            yield "terminal.allow_unsandboxed is true: an agent may run without isolation"
        if self.config.env.allowed:
            yield f"env.allowed: the agent may change test infrastructure: {', '.join(self.config.env.allowed)}"


class Recorder:
    """Writes an episode's events, counts what its result needs, and tells those who look on."""

    def __init__(self, players: Players, job: Job, directory: Path, attempt: int, transcript: EpisodeLog) -> None:
        """Start a new trajectory; one that an earlier attempt left is put aside."""
        self.players, self.job, self.attempt = players, job, attempt
        self._transcript = transcript
        self.env: RepoEnv | None = None
        self._directory = directory
        _put_aside(directory / "trajectory.jsonl")
        self._journal = Journal(directory / "trajectory.jsonl")
        self._steps = 0
        self._calls: collections.Counter[str] = collections.Counter()
        self._usage = Usage()

    def __call__(self, event: Event) -> None:
        """Keep an event."""
        event = self._journal.append(event)
        if event.kind is EventKind.STEP and event.data["step"]:
            self._steps = event.data["step"]
            action = event.data["action"]
            name = action.get("name") if isinstance(action, Mapping) else None
            if isinstance(name, str) and self.env is not None and name in self.env.tools:
                self._calls[name] += 1
        if event.kind is EventKind.LLM_CALL:
            self._usage += Usage(**event.data["tokens"], cost=event.data["cost"])
        self._transcript.write(_as_text(event))
        self.players.watch.event(self.job, event)
        if self.env is not None:
            if event.kind is EventKind.STEP and event.data["step"] == 0:
                self.players.plugins.notify("debug_gym_episode_started", env=self.env)
            self.players.plugins.notify("debug_gym_episode_stepped", env=self.env, event=event)

    def keep_patch(self, patch: bytes) -> None:
        """Write the patch.diff."""
        (self._directory / "patch.diff").write_bytes(patch)

    def result(self, seconds: float, *, grade: Grade | None = None, error: Exception | None = None) -> Result:
        """The episode's line of results.jsonl."""
        usage = self._usage
        graded: dict[str, Any] = {"status": "error"}
        if grade is not None:
            graded = {
                "status": "resolved" if grade.resolved else "unresolved",
                "resolved": grade.resolved,
                "score": grade.score,
                "max_score": grade.max_score,
                "grading": grade.grading,
            }
        return Result(
            task=self.job.task,
            agent=self.players.config.agent.name,
            llm=self.players.config.llm.name if self.players.llm_class else None,
            steps=self._steps,
            tool_calls=dict(self._calls),
            tokens=Tokens(usage.prompt, usage.completion, usage.cached),
            cost=usage.cost,
            seconds=round(seconds, 3),
            error=describe(error) if error else None,
            repeat=self.job.repeat,
            **graded,
        )

    def close(self) -> None:
        """Close the trajectory."""
        self._journal.close()


class EpisodeEnv(RepoEnv):
    """The environment of an episode of a run: what happens in it is recorded, and it ends when the run is stopped."""

    episode: Recorder

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """Start the episode, and record what the agent sees first."""
        started = time.monotonic()
        observation, info = super().reset(seed=seed, options=options)
        self._record(None, observation, 0.0, False, False, started)
        for text in self.notes:
            self.episode.players.note(text.replace(str(self.task.repository), "the repository"))
        return observation, info

    def step(self, action: Any) -> tuple[dict[str, str], float, bool, bool, dict[str, Any]]:
        """Carry out and record one action."""
        self.episode.players.stop_if_asked()
        started = time.monotonic()
        observation, reward, terminated, truncated, info = super().step(action)
        self.episode.players.stop_if_asked()
        said = self.last_call or (action if isinstance(action, str | Mapping) or hasattr(action, "name") else None)
        self._record(said, observation, reward, terminated, truncated, started)
        return observation, reward, terminated, truncated, info

    def _record(
        self,
        action: Any,
        observation: Mapping[str, str],
        reward: float,
        terminated: bool,
        truncated: bool,
        started: float,
    ) -> None:
        self.episode(
            Event.step(
                step=self.steps,
                action=action,
                observation=observation,
                reward=reward,
                score=self.score,
                max_score=self.max_score,
                terminated=terminated,
                truncated=truncated,
                seconds=time.monotonic() - started,
            )
        )


class RecordedLLM(LLM):
    """A model whose calls are recorded and counted; everything else is the model's own."""

    name = "recorded"

    def __init__(self, inner: LLM, name: str, episode: Recorder) -> None:
        """Wrap a model.

        Args:
            inner: the model
            name: what the config calls it
            episode: keeps the events
        """
        self._inner, self._name, self._episode = inner, name, episode
        self.settings = inner.settings

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """Ask the model, and record what it cost."""
        players = self._episode.players
        players.stop_if_asked()
        if players.is_spent():
            raise OutOfMoney
        started = time.monotonic()
        completion = self._inner.complete(messages, tools)
        seconds = time.monotonic() - started
        players.pay(completion.usage.cost)
        kept: dict[str, Any] = {}
        if players.verbose:
            kept["prompt"] = [dataclasses.asdict(message) for message in messages]
            kept["answer"] = dataclasses.asdict(completion.message)
        calls = [call.name for call in completion.message.calls]
        self._episode(Event.llm_call(model=self._name, usage=completion.usage, seconds=seconds, calls=calls, **kept))
        return completion


class EpisodeLog(logging.FileHandler):
    """An episode's log.txt: what happened as text, and what is logged in the thread that plays it."""

    def __init__(self, path: Path) -> None:
        """Open the file, at its end."""
        super().__init__(path, encoding="utf-8", errors="backslashreplace")
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._thread = threading.get_ident()

    def __enter__(self) -> EpisodeLog:
        log.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        log.removeHandler(self)
        self.close()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record was logged in this episode's thread."""
        return record.thread == self._thread

    def write(self, text: str, error: BaseException | None = None) -> None:
        """Write a paragraph, with an error's traceback; whatever the level of the logger."""
        about = (type(error), error, error.__traceback__) if error else None
        self.handle(logging.LogRecord(log.name, logging.INFO, __file__, 0, "%s", (text,), about))


def _find_llm(name: str, plugins: Plugins) -> type[LLM]:
    from debug_gym_core.plugins import HOMES

    if name in plugins.llms or name in HOMES["llms"] or ":" in name:
        found: type[LLM] = plugins.get("llms", name)
        return found
    raise RequirementError(
        f"model {name!r} is not configured{nearest(name, plugins.llms)}\n"
        f"Choose a backend with --llm ({', '.join(plugins.llms) or 'none is installed'})"
    )


def _close_quietly(env: RepoEnv) -> None:
    try:
        env.close()
    except Exception:
        log.warning("closing an environment failed", exc_info=True)


def _without_none(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value is not None}


def _put_aside(path: Path) -> None:
    """Give a trajectory that was not finished another name; it may have been paid for."""
    if not path.exists():
        return
    number = 1
    while (aside := path.with_name(f"abandoned-{number}.jsonl")).exists():
        number += 1
    path.rename(aside)


def _as_text(event: Event) -> str:
    """An event for log.txt."""
    data = event.data
    if event.kind is EventKind.STEP:
        head = f"step {data['step']} {_action_text(data['action'])}".rstrip()
        body = data["observation"]["text"].replace("\n", "\n    ")
        tail = f"reward {data['reward']:g}, score {data['score']}/{data['max_score']}, {data['seconds']:.2f} s"
        return f"{head}\n    {body}\n    ({tail})"
    return f"{event.kind} " + " ".join(
        f"{key}={value!r}" for key, value in data.items() if key not in ("prompt", "answer")
    )


def _action_text(action: Any) -> str:
    if not isinstance(action, Mapping):
        return str(action or "")
    arguments = action.get("arguments") or {}
    if not isinstance(arguments, Mapping):
        return f"{action.get('name')} {arguments!r}"
    return " ".join([str(action.get("name")), *(f"{key}={value!r}" for key, value in arguments.items())])
