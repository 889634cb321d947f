"""One episode: a task made live, an agent that plays it, its journal, its grade."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from debug_gym_core import progress
from debug_gym_core.agents.prompts import Prompt
from debug_gym_core.config.shipped import left_out
from debug_gym_core.environment.backend import choose_terminal, unused
from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.errors import ContextOverflow, LLMRefused, PluginError, SandboxLost, TaskError, UsageError, cause_of
from debug_gym_core.models.llm import LLM
from debug_gym_core.models.text_calls import with_text_calls
from debug_gym_core.redaction import redact
from debug_gym_core.runs.asking import KeptAnswers, RecordedLLM, remove_answers
from debug_gym_core.runs.chosen_model import ChosenModel
from debug_gym_core.runs.config_notes import weakened, without_effect
from debug_gym_core.runs.episode_env import EpisodeEnv
from debug_gym_core.runs.jobs import EpisodeStopped
from debug_gym_core.runs.ledger import CallTooDear, Ledger, Limits, OutOfBudget, RunIsSpent
from debug_gym_core.runs.overtime import ended_in_time, waited_for
from debug_gym_core.runs.parts import EpisodeParts
from debug_gym_core.runs.recorder import Recorder
from debug_gym_core.runs.trajectory import Event, Result, describe
from debug_gym_core.runs.transcript import Transcript
from debug_gym_core.sandbox import pythons
from debug_gym_core.tasks.entrypoint import Entrypoint

if TYPE_CHECKING:
    from debug_gym_core.agents.agent import Agent
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.model import Config
    from debug_gym_core.runs.jobs import Job, Watch
    from debug_gym_core.runs.model_record import ModelRecord
    from debug_gym_core.runs.run import Key, Run
    from debug_gym_core.sandbox.terminal import Terminal
    from debug_gym_core.tasks.task import Task

log = logging.getLogger("debug_gym")


class Players:
    """Plays the episodes of one run; `play` may be called from several threads at once.

    Attributes:
        benchmark: where the tasks are
        attended: whether a person plays, one episode at a time
        refused: whether the model's service refuses whatever it is asked, so that no further episode is begun
    """

    def __init__(self, run: Run, parts: EpisodeParts, watch: Watch, stop: threading.Event, *, verbose: bool) -> None:
        """Look up the model that the config names.

        Args:
            run: the run
            parts: what its config names, as `find_parts` finds it
            watch: is told what happens
            stop: when it is set, episodes under way end without a result
            verbose: keep prompts and answers in the trajectories

        Raises:
            UsageError: a name is unknown
            PluginError: a plugin that is needed failed
        """
        self.config = config = run.config
        self.run, self.watch, self.stopping, self.verbose = run, watch, stop, verbose
        self._parts, self.plugins, self.benchmark = parts, parts.plugins, parts.benchmark
        agent_class = parts.agent_class
        self.model = ChosenModel(config, parts.plugins) if agent_class.needs_llm else None
        self.attended = self.model is not None and self.model.backend.trusted
        self.refused = False
        self.trusted = self.attended or (self.model is None and agent_class.trusted)
        self.ledger = Ledger(run.directory / "spending.jsonl", Limits(config.run.max_cost))
        self._model_record: ModelRecord | None = None
        self._mutex = threading.Lock()
        self._loading = threading.Lock()
        self._live: dict[EpisodeEnv, LLM | None] = {}
        self._fails: dict[str, bool] = {}
        self._faulty: set[str] = set()
        self._found_out: dict[str, threading.Lock] = {}
        for text in weakened(config):
            run.note(text)
        shipped = left_out(type(parts.benchmark), parts.plugins)
        for text in (*without_effect(config, agent_class, self.model), *shipped):
            self.note(text)

    @property
    def llm_name(self) -> str | None:
        """What the config calls the model that plays; None: none does."""
        return self.model.name if self.model is not None else None

    def check(self, job: Job, again: Collection[Key] = (), *, alone: bool = False) -> None:
        """Make sure that an episode could start: its task loads, there is a sandbox, the model is known and has a key.

        Results that stay must be of that model.

        Args:
            job: the episode
            again: of the results that are forgotten before it starts
            alone: whether the run has no other task, so that it is refused where the agent cannot play this one

        Raises:
            UsageError, PluginError, RequirementError: it could not
        """
        agent = self._parts.new_agent()
        if self.model is not None:
            if agent.settings.system_prompt is not None:
                Prompt(agent.settings.system_prompt, "agent.system_prompt").check()
            self._model_record = self.model.check(self.ledger, self.note)
            for text in self.run.check_model(self._model_record, again, self.plugins.files):
                self.note(text)
        task = self._load(job)
        if alone:
            try:
                agent.check(task)
            except TaskError as error:
                raise UsageError(str(error)) from error
        backend = self._backend(task)
        env = self.config.env
        for entrypoint in filter(None, (env.entrypoint or task.entrypoint, env.debug_entrypoint)):
            Entrypoint.parse(entrypoint)
        if not backend.runs_images and task.repository is not None:
            pythons.find(task.repository, env.python or task.python)

    def keep_model(self) -> None:
        """Keep which model plays, as `check` has found it: from here on all results are its own."""
        if self._model_record is not None:
            self.run.keep_model(self._model_record.kept)

    def play(self, job: Job) -> Result | None:
        """Play one episode, again when its sandbox is lost.

        Returns:
            its result; None when the run was stopped or removed, its money is spent, or the model's service refuses all
        """
        if self.refused or self.run.results_gone:
            return None
        answers = self._answers(job)
        if self.ledger.is_spent and not answers.is_file():  # what was answered before may be all that it needs
            return None
        self.watch.started(job)
        started = time.monotonic()
        directory = self.run.task_directory(job.task, job.repeat)
        directory.mkdir(parents=True, exist_ok=True)
        kept = KeptAnswers(answers)
        wanted = progress.wanted_while(lambda: not self.stopping.is_set())
        with Transcript(directory / "log.txt") as transcript, contextlib.closing(kept), wanted:
            for attempt in range(1, self.config.run.max_retries + 2):
                recorder = Recorder(self, job, directory, attempt, transcript)
                try:
                    kept.begin()
                    result = self._attempt(job, recorder, kept)
                except EpisodeStopped:
                    transcript.write("stopped")
                    return None
                except RunIsSpent as spent:  # what others took from it says nothing of this task
                    transcript.write(f"stopped: {spent}")
                    return None
                # A component that wants to leave, or raises whatever else, ends its episode, not the run: this is no
                # thread that an interrupt of the user's comes to.
                except BaseException as error:
                    if self.stopping.is_set() or self.run.results_gone:
                        transcript.write("stopped", error)
                        return None
                    self.refused = self.refused or isinstance(error, LLMRefused)
                    again = isinstance(error, SandboxLost) and attempt <= self.config.run.max_retries
                    transcript.write(f"{job} failed", error)
                    recorder(Event.error(error, retried=again))
                    if again:
                        continue
                    recorder.keep_nothing()
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

    def tell_waiting(self) -> None:
        """Tell what the episodes that are still under way wait for."""
        with self._mutex:
            live = list(self._live)
        for env in live:
            env.episode.tell(f"waiting for {waited_for(env)}")

    def interrupt(self, step: int | None) -> int | None:
        """Have what a tool runs stop, as Ctrl-C does; see `Experiment.interrupt`."""
        with self._mutex:
            live = list(self._live)
        return next((env.steps for env in live if step in (None, env.steps) and env.interrupt()), None)

    def stop_if_asked(self) -> None:
        """Leave the episode when the run is being stopped, or nothing of it would be kept."""
        if self.stopping.is_set() or self.run.results_gone:
            raise EpisodeStopped

    def end_run(self) -> NoReturn:
        """Whoever answers wants the whole run stopped."""
        self.stopping.set()
        raise EpisodeStopped

    def fails_unchanged(self, task: str, look: Callable[[], bool]) -> bool:
        """Whether the tests of a task fail before anything is changed; found out once a run.

        Args:
            task: its id
            look: finds out
        """
        with self._mutex:
            found_out = self._found_out.setdefault(task, threading.Lock())
        with found_out:
            if task not in self._fails:
                self._fails[task] = look()
            return self._fails[task]

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
        agent = self._parts.new_agent()
        agent.check(task)
        llm = self.model.make(self.ledger, self.note) if self.model is not None else None
        arguments = self._parts.env_arguments(backend)
        env = EpisodeEnv(task, trusted=self.trusted, run=self.run.id, episode=recorder, **arguments)
        recorder.env = env
        try:
            with self._mutex:
                self.stop_if_asked()  # after that nobody would end what is begun here
                self._live[env] = llm
            agent.prepare(env)
            env.reset(seed=job.seed)
            if llm is not None:
                llm.begin(env)
            asked = RecordedLLM(llm, self.config.llm.name, recorder, kept) if llm else None
            try:
                with ended_in_time(env):
                    said = agent.play(env, with_text_calls(asked, env, self.note) if asked else None)
                ended = _word(agent, said) or env.ended
            except RunIsSpent:
                recorder.keep_patch(env.patch)  # which was paid for, should the run never get more
                raise
            except OutOfBudget:
                ended = "max_cost"
            except ContextOverflow as error:  # the agent has nothing left to leave out: no fault of the infrastructure
                ended = "max_cost" if isinstance(error, CallTooDear) else "context"
                log.info("the model cannot take what the agent has to say: %s", error)
            self.stop_if_asked()
            if env.failure is not None:
                raise env.failure
            recorder.keep_patch(env.patch)
            grade = env.final_grade or env.grade()
            recorder(Event.grade(grade))
            seconds = time.monotonic() - started
            result = recorder.result(seconds, grade=grade, counted=env.counted_tests, ended=ended)
            recorder(Event.episode_finished(result))
            return result
        except (KeyboardInterrupt, EpisodeStopped, Exception) as error:
            if isinstance(error, KeyboardInterrupt | EpisodeStopped) or self.stopping.is_set():
                self._rescue(env, recorder)
            raise
        finally:
            with self._mutex:
                self._live.pop(env, None)
            recorder.env = None
            _close_quietly(env)
            if llm is not None:
                _close_quietly(llm)

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
            return self._parts.load(job.name)

    def _backend(self, task: Task) -> type[Terminal]:
        section = self.config.terminal
        settings = {"image": section.image, "allow_unsandboxed": section.allow_unsandboxed}
        backend, note = choose_terminal(section.name, task, self.trusted, self.plugins, settings)
        for text in (note, *unused(section.model_extra or {}, backend, self.plugins)):
            self.note(text)
        if note is None and not backend.isolates:
            self.run.note(f"terminal {backend.name} isolates nothing: what runs in it runs on this machine")
        return backend

    def note(self, text: str | None) -> None:
        """Note for the run's record what weakens it, and tell it once."""
        if text and self.run.note(redact(text)):
            self.watch.note(text)

    def note_fault(self, what: str, error: BaseException, task: str) -> None:
        """Note that a tool raised what no tool may, once for each method: the agent alone is told each time.

        Not while the run is stopped, which fails whatever is under way.

        Args:
            what: the tool's name, or which method of it failed
            error: what it raised
            task: id of the episode's task, whose log has the traceback
        """
        if self.stopping.is_set():
            return
        with self._mutex:
            known = what in self._faulty
            self._faulty.add(what)
        if not known:
            said = ": ".join(describe(error).values())
            self.note(f"tool {what} failed by an error of its own: {said:.300}; see the log.txt of {task}")

    def note_python(self, python: Mapping[str, str]) -> None:
        """Keep which interpreter runs the task's code: its `path` and `version`."""
        self.run.note_python(python)


def find_parts(config: Config, plugins: Plugins) -> EpisodeParts:
    """Look up what a run's config names; of an agent that nobody chose, and that is not here, say how one is chosen.

    Args:
        config: of the run
        plugins: what is installed

    Raises:
        UsageError: a name is unknown, or a setting is wrong
        PluginError: a plugin that is needed failed
    """
    name = config.agent.name
    try:
        return EpisodeParts.of(config, plugins)
    except UsageError as error:
        if not str(error).startswith(f"unknown agent {name!r}; known: "):
            raise
        raise UsageError(f"unknown agent {name!r}; say --agent NAME; here are: {', '.join(plugins.agents)}") from None


def _word(agent: Agent, said: object) -> str | None:
    """What an agent says of why its episode ended.

    Raises:
        PluginError: that is neither a word nor None
    """
    if isinstance(said, str | None):
        return said
    raise PluginError(f"agent {agent.name}: play() must return a word or None, not {said!r:.80}")


def _close_quietly(used: RepoEnv | LLM) -> None:
    """Close what an episode used; what goes wrong there is no fault of the episode's, which may be graded by now."""
    try:
        used.close()
    except (Exception, SystemExit) as error:
        what = f"model {used.name}" if isinstance(used, LLM) else f"the environment of {used.task.id}"
        log.warning("closing %s failed: %.500s", what, cause_of(error), exc_info=True)
