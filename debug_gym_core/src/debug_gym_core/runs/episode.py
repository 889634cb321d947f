"""One episode: a task made live, an agent that plays it, its journal, its grade."""

from __future__ import annotations

import collections
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from debug_gym_core import progress
from debug_gym_core.config.llm_yaml import Models, read_models, unknown
from debug_gym_core.environment.backend import choose_terminal
from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.errors import ContextOverflow, LLMRefused, RequirementError, SandboxLost, UsageError
from debug_gym_core.models.llm import LLM, Usage
from debug_gym_core.models.service import Gate, ServiceLLM
from debug_gym_core.models.text_calls import with_text_calls
from debug_gym_core.redaction import redact
from debug_gym_core.runs.asking import KeptAnswers, RecordedLLM, remove_answers
from debug_gym_core.runs.ledger import Ledger, Limits, OutOfBudget
from debug_gym_core.runs.trajectory import FAILED, Event, EventKind, Journal, Result, Tokens, describe
from debug_gym_core.sandbox import interpreter as interpreters
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_core.tasks.results import FAILING, PASSING

if TYPE_CHECKING:
    from debug_gym_core.agents.agent import Agent
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.runs.experiment import Job, Watch
    from debug_gym_core.runs.run import Run
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.sandbox.terminal import Terminal
    from debug_gym_core.tasks.results import Grade
    from debug_gym_core.tasks.task import Benchmark, Mode, Task

log = logging.getLogger("debug_gym")

RESCUE_TIME = 5.0
"""Seconds that a sandbox has to tell what was changed in it when the run is being stopped."""


class EpisodeStopped(BaseException):
    """The run was stopped; not an Exception, so that no agent goes on after it."""


class Players:
    """Plays the episodes of one run; `play` may be called from several threads at once.

    Attributes:
        benchmark: where the tasks are
        attended: whether a person plays, one episode at a time
        refused: whether the model's service refuses whatever it is asked, so that no further episode is begun
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
        self.agent_class = _find_agent(config.agent.name, plugins)
        self.models = Models()
        self.llm_class: type[LLM] | None = None
        if self.agent_class.needs_llm:
            self.llm_class = self._find_llm(config.llm.name)
        self.attended = self.llm_class is not None and self.llm_class.trusted
        self.refused = False
        self.trusted = self.llm_class is None or self.attended
        settings = config.tool_settings()
        names = list(settings) if self.agent_class.tools is None else self.agent_class.tools
        self.tools: list[Any] = [{name: settings[name]} if settings.get(name) else name for name in names]
        for name in names:
            plugins.get("tools", name)(**settings.get(name, {}))
        self.ledger = Ledger(run.directory / "spending.jsonl", Limits(config.run.max_cost))
        self._gate = Gate()
        self._mutex = threading.Lock()
        self._loading = threading.Lock()
        self._live: dict[EpisodeEnv, LLM | None] = {}
        for text in self._weakened():
            run.note(text)

    def check(self, job: Job) -> None:
        """Make sure that an episode could start: its task loads, there is a sandbox, the model is known and has a key.

        Raises:
            UsageError, PluginError, RequirementError: it could not
        """
        self._new_agent()
        llm = self._new_llm()
        self._check_prices(llm)
        if isinstance(llm, ServiceLLM):
            with contextlib.closing(llm):
                llm.prepare()
        task = self._load(job)
        backend = self._backend(task)
        env = self.config.env
        for entrypoint in filter(None, (env.entrypoint or task.entrypoint, env.debug_entrypoint)):
            Entrypoint.parse(entrypoint)
        if not backend.runs_images and task.repository is not None:
            interpreters.find(task.repository, env.python or task.python)

    def play(self, job: Job) -> Result | None:
        """Play one episode, again when its sandbox is lost.

        Returns:
            its result; None when the run was stopped, its money is spent, or the model's service refuses all
        """
        if self.ledger.is_spent or self.refused:
            return None
        self.watch.started(job)
        started = time.monotonic()
        directory = self.run.task_directory(job.task, job.repeat)
        directory.mkdir(parents=True, exist_ok=True)
        kept = KeptAnswers(self._answers(job))
        wanted = progress.wanted_while(lambda: not self.stopping.is_set())
        with EpisodeLog(directory / "log.txt") as transcript, contextlib.closing(kept), wanted:
            for attempt in range(1, self.config.run.max_retries + 2):
                recorder = Recorder(self, job, directory, attempt, transcript)
                try:
                    kept.begin()
                    result = self._attempt(job, recorder, kept)
                except EpisodeStopped:
                    transcript.write("stopped")
                    return None
                except Exception as error:
                    if self.stopping.is_set():
                        transcript.write("stopped", error)
                        return None
                    self.refused = self.refused or isinstance(error, LLMRefused)
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
            live = list(self._live.items())
        for env, llm in live:
            threading.Thread(target=self._end, args=(env, llm), daemon=True).start()

    def stop_if_asked(self) -> None:
        """Leave the episode when the run is being stopped."""
        if self.stopping.is_set():
            raise EpisodeStopped

    def end_run(self) -> NoReturn:
        """Whoever answers wants the whole run stopped."""
        self.stopping.set()
        raise EpisodeStopped

    def recorded(self, job: Job, result: Result) -> None:
        """An episode has its line in results.jsonl; the answers of one that failed are used when it is played again."""
        if result.status != "error":
            remove_answers(self._answers(job))

    def _answers(self, job: Job) -> Path:
        return self.run.task_directory(job.task, job.repeat) / "answers.jsonl"

    def _attempt(self, job: Job, recorder: Recorder, kept: KeptAnswers) -> Result:
        started = time.monotonic()
        self.stop_if_asked()
        task = self._load(job)
        recorder.mode = task.mode
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
        env.begin = lambda python: recorder(
            Event.episode_started(
                task=task.id,
                agent=config.agent.name,
                llm=config.llm.name if llm else None,
                terminal=backend.name,
                python=python,
                tools=list(env.tools),
                seed=job.seed,
                attempt=recorder.attempt,
            )
        )
        recorder.env = env
        with self._mutex:
            self._live[env] = llm
        try:
            agent.prepare(env)
            env.reset(seed=job.seed)
            if llm is not None:
                llm.begin(env)
            asked = RecordedLLM(llm, config.llm.name, recorder, kept) if llm else None
            try:
                ended = agent.play(env, with_text_calls(asked, env) if asked else None) or env.ended
            except OutOfBudget:
                ended = "max_cost"
            except ContextOverflow as error:  # the agent has nothing left to leave out: no fault of the infrastructure
                ended = "context"
                log.info("the model cannot take what the agent has to say: %s", error)
            self.stop_if_asked()
            if env.failure is not None:
                raise env.failure
            recorder.keep_patch(env.patch)
            grade = env.final_grade or env.grade()
            recorder(Event.grade(grade))
            result = recorder.result(time.monotonic() - started, grade=grade, ended=ended)
            recorder(Event.episode_finished(result))
            return result
        except (KeyboardInterrupt, EpisodeStopped, Exception) as error:
            if isinstance(error, KeyboardInterrupt) or self.stopping.is_set():
                self._rescue(env, recorder)
            raise
        finally:
            with self._mutex:
                del self._live[env]
            recorder.env = None
            _close_quietly(env)
            if llm is not None:
                llm.close()

    def _end(self, env: EpisodeEnv, llm: LLM | None) -> None:
        """Let an episode come to its end, whatever it waits for: an answer, or its sandbox."""
        try:
            if llm is not None:
                llm.interrupt()
        except Exception:
            log.warning("interrupting the model failed", exc_info=True)
        self._rescue(env, env.episode)
        _close_quietly(env)

    def _rescue(self, env: EpisodeEnv, recorder: Recorder) -> None:
        """Keep what a person changed in an episode that is being stopped; a sandbox that is busy has a few seconds."""
        if not self.attended:
            return
        with env.ending:
            if env.rescued:
                return
            env.rescued = True
            text = recorder.rescue_patch(env)
        if text:
            self.watch.note(text)

    def _load(self, job: Job) -> Task:
        with self._loading:
            task = self.benchmark.load(job.name)
        wanted = self.config.benchmark.mode
        if task.mode != wanted != "visible":
            raise UsageError(f"{task.id} cannot be played in mode {wanted}, only {task.mode}: see benchmark.mode")
        return task

    def _backend(self, task: Task) -> type[Terminal]:
        section = self.config.terminal
        settings = {"image": section.image, "allow_unsandboxed": section.allow_unsandboxed}
        backend, note = choose_terminal(section.name, task, self.trusted, self.plugins, settings)
        self.note(note)
        if note is None and not backend.isolates:
            self.run.note(f"terminal {backend.name} isolates nothing: what runs in it runs on this machine")
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
        section, given = self.config.llm, self.config.llm.settings_for(self.llm_class)
        if section.name in self.models.names:
            llm = self.models.make(section.name, self.plugins, given)
        else:
            llm = self.llm_class(**{key: value for key, value in given.items() if value is not None})
        if isinstance(llm, ServiceLLM):
            llm.gate = self._gate
            self.ledger.limits = Limits(self.config.run.max_cost, llm.settings.max_run_tokens)
        return llm

    def _find_llm(self, name: str) -> type[LLM]:
        """The backend of a model: of its entry in llm.yaml, else the one of that name."""
        known = self.plugins.llms.get(name)
        if known is not None and not issubclass(known, ServiceLLM):
            return known  # such as a person, who needs no entry
        self.models = read_models(self.config.llm_config_file_path)
        if name in self.models.names:
            return self.models.backend(name, self.plugins)
        from debug_gym_core.components.homes import HOMES

        if name in self.plugins.llms or name in HOMES["llms"] or ":" in name:
            found: type[LLM] = self.plugins.get("llms", name)
            return found
        raise unknown(name, self.models, self.plugins)

    def _check_prices(self, llm: LLM | None) -> None:
        """Refuse a bound in dollars that cannot be kept."""
        if not isinstance(llm, ServiceLLM) or llm.settings.prices is not None:
            return
        bounds = [
            *(["run.max_cost"] if self.config.run.max_cost is not None else []),
            *(f"llm.{key}" for key in ("max_task_cost", "max_call_cost") if getattr(llm.settings, key) is not None),
        ]
        if not bounds:
            return
        text = f"{self.config.llm.name} has no prices in {self.models.path or 'llm.yaml'}"
        if not llm.settings.allow_unknown_price:
            raise RequirementError(
                f"{text}, so {bounds[0]} cannot be kept.\nAdd prices: {{prompt: 1.0, completion: 2.0}} (dollars a "
                "million tokens), or say -p llm.allow_unknown_price=true"
            )
        self.note(f"{text}: {bounds[0]} bounds nothing")

    def _weakened(self) -> Iterator[str]:
        """What the config takes away from the sandbox's or the grading's strength."""
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
        _put_aside(directory)
        self._journal = Journal(directory / "trajectory.jsonl")
        self._steps = 0
        self._calls: collections.Counter[str] = collections.Counter()
        self._changed: bool | None = None
        self.mode: Mode = "visible"
        self.usage = Usage()

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
            self.usage += Usage(**event.data["tokens"], cost=event.data["cost"])
        self._transcript.write(_as_text(event))
        self.players.watch.event(self.job, event)
        if self.env is not None:
            if event.kind is EventKind.STEP and event.data["step"] == 0:
                self.players.plugins.notify("debug_gym_episode_started", env=self.env)
            self.players.plugins.notify("debug_gym_episode_stepped", env=self.env, event=event)

    def keep_patch(self, patch: bytes) -> None:
        """Write the patch.diff."""
        self._changed = bool(patch)
        (self._directory / "patch.diff").write_bytes(patch)

    def rescue_patch(self, env: RepoEnv) -> str:
        """Write the patch of a workspace as it stands, whatever still runs in it.

        Args:
            env: its sandbox may be busy, or gone

        Returns:
            what to tell the person; empty when nothing was changed
        """
        kept: list[bytes] = []

        def read() -> None:
            try:
                kept.append(env.patch)
            except Exception:
                log.debug("the patch of a stopped episode could not be read", exc_info=True)

        reader = threading.Thread(target=read, name="rescue", daemon=True)
        reader.start()
        reader.join(RESCUE_TIME)
        if kept:
            if kept[0]:
                self.keep_patch(kept[0])
            return f"what you changed is kept: {self._directory / 'patch.diff'}" if kept[0] else ""
        return "what you changed could not be kept: the workspace did not answer" if self._steps else ""

    def result(
        self,
        seconds: float,
        *,
        grade: Grade | None = None,
        error: Exception | None = None,
        ended: str | None = None,
    ) -> Result:
        """The episode's line of results.jsonl."""
        usage = self.usage
        graded: dict[str, Any] = {"status": "error"}
        if grade is not None:
            counted = self.env.counted_tests if isinstance(self.env, EpisodeEnv) else ()
            graded = {
                "status": "resolved" if grade.resolved else "unresolved",
                "resolved": grade.resolved,
                "score": grade.score,
                "max_score": grade.max_score,
                "grading": grade.grading,
                "failed": failed_tests(grade, counted)[:FAILED],
                "broken": grade.broken[:FAILED],
                "reason": redact(grade.reason),
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
            ended=ended,
            repeat=self.job.repeat,
            mode=self.mode,
            changed=self._changed,
            **graded,
        )

    def close(self) -> None:
        """Close the trajectory."""
        self._journal.close()


class EpisodeEnv(RepoEnv):
    """The environment of an episode of a run: what happens in it is recorded, and it ends when the run is stopped."""

    episode: Recorder
    begin: Callable[[Mapping[str, str] | None], None]
    begun = False
    rescued = False

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        """As `RepoEnv`."""
        super().__init__(*arguments, **settings)
        self.ending = threading.Lock()

    @property
    def counted_tests(self) -> tuple[str, ...]:
        """Ids of the tests that count; empty when they are not known."""
        return self._tests.ids

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """Start the episode, and record what the agent sees first."""
        started = time.monotonic()
        try:
            observation, info = super().reset(seed=seed, options=options)
        finally:
            self._begin(None)
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

    def _takes_long(self, text: str) -> None:
        self.episode.players.watch.note(text)

    def _opened(self, session: Session) -> None:
        self._begin(session.interpreter)

    def _begin(self, python: Mapping[str, str] | None) -> None:
        """Record the episode's start, once."""
        if not self.begun:
            self.begun = True
            self.begin(python)

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
        with contextlib.suppress(OSError):
            self.close()

    def format(self, record: logging.LogRecord) -> str:
        """A record as text, without keys."""
        return redact(super().format(record))

    def handleError(self, record: logging.LogRecord) -> None:
        """Say nothing: when the disk is full, the trajectory, which must be whole, is what complains."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record was logged in this episode's thread."""
        return record.thread == self._thread

    def write(self, text: str, error: BaseException | None = None) -> None:
        """Write a paragraph, with an error's traceback; whatever the level of the logger."""
        about = (type(error), error, error.__traceback__) if error else None
        self.handle(logging.LogRecord(log.name, logging.INFO, __file__, 0, "%s", (text,), about))


def failed_tests(grade: Grade, counted: Sequence[str]) -> tuple[str, ...]:
    """The ids of the tests that count and did not pass.

    Args:
        grade: of the workspace
        counted: the tests that count; none: they are not known, those that failed are named
    """
    if counted:
        return tuple(test for test in dict.fromkeys(counted) if grade.tests.get(test) not in PASSING)
    return tuple(test for test, outcome in grade.tests.items() if outcome in FAILING)


def _find_agent(name: str, plugins: Plugins) -> type[Agent]:
    try:
        found: type[Agent] = plugins.get("agents", name)
    except UsageError as error:
        if not str(error).startswith(f"unknown agent {name!r}; known: "):
            raise
        raise UsageError(f"unknown agent {name!r}; say --agent NAME; here are: {', '.join(plugins.agents)}") from None
    return found


def _close_quietly(env: RepoEnv) -> None:
    try:
        env.close()
    except Exception:
        log.warning("closing an environment failed", exc_info=True)


def _without_none(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value is not None}


def _put_aside(directory: Path) -> None:
    """Give the trajectory and patch of an earlier attempt other names: they may have been paid for."""
    left = [path for name in ("trajectory.jsonl", "patch.diff") if (path := directory / name).exists()]
    number = 1
    while any((directory / f"abandoned-{number}{suffix}").exists() for suffix in (".jsonl", ".diff")):
        number += 1
    for path in left:
        path.rename(directory / f"abandoned-{number}{path.suffix}")


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
