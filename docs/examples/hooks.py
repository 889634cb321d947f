"""Every hook once: `debug-gym run one_bug --plugin-file hooks.py --agent look_once -p run.executor=pool`."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from debug_gym_core import LLM, Agent, Benchmark, Completion, Message, Task, Tool, ToolCall, UsageError, hookimpl
from debug_gym_core.runs.jobs import Executor, Exporter
from debug_gym_core.runs.trajectory import read_results

HERE = Path(__file__).parent


class WordCount(Tool):
    """Count the words of a file."""

    name = "word_count"

    def use(self, env, path: str):
        """Count.

        Args:
            env: the environment
            path: the file, relative to the repository's root
        """
        return f"{len(env.workspace.read_text(path).split())} words"


class OneBug(Benchmark):
    """One repository that lies beside this file."""

    name = "one_bug"

    def names(self):
        """Its one task."""
        return ["basket"]

    def load(self, name):
        """Where it lies, and how its tests run."""
        if name not in self.names():
            raise UsageError(f"{self.name} has no task {name!r}, only {self.names()[0]}")
        return Task(self.name, name, repository=HERE / name, entrypoint="python -m pytest -q")


class LookOnce(Agent):
    """Run the tests once and stop."""

    name = "look_once"
    needs_llm = False

    def play(self, env, llm):
        """One step."""
        env.step(ToolCall("eval"))


class AlwaysEval(LLM):
    """A model that asks for the tests to be run, whatever it is told, and stops after that."""

    name = "always_eval"

    def complete(self, messages, tools):
        """One call, then none."""
        calls = () if messages[-1].role == "tool" else (ToolCall("eval", {}, "1"),)
        return Completion(Message("assistant", "", calls))


class Pool(Executor):
    """Threads of Python's own pool."""

    name = "pool"

    def execute(self, jobs, play, finished, *, workers, stop):
        """Play them; when a result cannot be kept, nothing further is begun."""
        failed = threading.Event()

        def one(job):
            if not (stop.is_set() or failed.is_set()):
                try:
                    finished(job, play(job))
                except BaseException:
                    failed.set()
                    raise

        with ThreadPoolExecutor(workers) as threads:
            list(threads.map(one, jobs))


class Scores(Exporter):
    """A line a task: its name and its score."""

    name = "scores"

    def export(self, run, target):
        """Write the file."""
        if not (run / "results.jsonl").is_file():
            raise UsageError(f"{run} is no run")
        try:
            target.write_text("".join(f"{one.task} {one.score}\n" for one in read_results(run / "results.jsonl")))
        except OSError as error:
            raise UsageError(f"{target}: {error.strerror}") from error


@hookimpl
def debug_gym_register_tools():
    """Register the tool."""
    return [WordCount]


@hookimpl
def debug_gym_register_terminals():
    """Register a terminal; imported here, so that listing the plugins stays quick."""
    from debug_gym_terminal_bubblewrap import BubblewrapTerminal

    class Roomy(BubblewrapTerminal):
        """Bubblewrap under a name of its own."""

        name = "roomy"

    return [Roomy]


@hookimpl
def debug_gym_register_benchmarks():
    """Register the benchmark."""
    return [OneBug]


@hookimpl
def debug_gym_register_agents():
    """Register the agent."""
    return [LookOnce]


@hookimpl
def debug_gym_register_llms():
    """Register the model."""
    return [AlwaysEval]


@hookimpl
def debug_gym_register_executors():
    """Register the executor."""
    return [Pool]


@hookimpl
def debug_gym_register_exporters():
    """Register the exporter."""
    return [Scores]


@hookimpl
def debug_gym_episode_started(env):
    """Say what is played, and in which sandbox."""
    print(f"started {env.task.id} in {env.terminal_name}")


@hookimpl
def debug_gym_episode_stepped(env, event):
    """Say what each step did."""
    if event.kind == "step" and event.data["step"]:
        print(f"step {event.data['step']} took {event.data['seconds']:.1f} s")


@hookimpl
def debug_gym_episode_finished(result):
    """Say how it ended."""
    print(f"finished {result.task}: {result.status}")


@hookimpl
def debug_gym_run_started(run):
    """Say where the results will be."""
    print(f"results go to {run.directory.name}")


@hookimpl
def debug_gym_run_finished(run):
    """Say how many there are."""
    print(f"{len(run.results)} results")
