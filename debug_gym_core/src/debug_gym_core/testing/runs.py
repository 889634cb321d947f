"""What executors and exporters promise."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from debug_gym_core.errors import UsageError
from debug_gym_core.runs.jobs import Executor, Exporter, Job
from debug_gym_core.runs.trajectory import Event, Journal, Result
from debug_gym_core.testing.benchmark import state_of
from debug_gym_core.testing.component import ComponentContract
from debug_gym_core.tools.action import ToolCall


def result_of(job: Job) -> Result:
    """A result of an episode."""
    return Result(job.task, "noop_agent", None, "unresolved", max_score=1, repeat=job.repeat)


class ExecutorContract(ComponentContract):
    """The tests that every executor must pass.

    Attributes:
        executor: the executor's class
    """

    executor: ClassVar[type[Executor]]
    _kind: ClassVar[str] = "executors"

    @pytest.fixture
    def jobs(self) -> list[Job]:
        """Twenty jobs, two repeats each of ten tasks."""
        return [Job(f"toy/{number}", str(number), repeat, repeat) for number in range(10) for repeat in (1, 2)]

    @pytest.mark.parametrize("workers", [1, 3, 50])
    def test_every_job_is_played_once(self, jobs: list[Job], workers: int) -> None:
        """And its result is told once, whatever the number of workers."""
        played: list[Job] = []
        told: list[tuple[Job, Result | None]] = []

        def play(job: Job) -> Result | None:
            played.append(job)
            return result_of(job)

        self.executor(**self.settings).execute(
            jobs, play, lambda job, result: told.append((job, result)), workers=workers, stop=threading.Event()
        )
        assert sorted(map(str, played)) == sorted(map(str, jobs))
        assert {str(job): result for job, result in told} == {str(job): result_of(job) for job in jobs}
        assert len(told) == len(jobs)

    def test_one_worker_keeps_the_order(self, jobs: list[Job]) -> None:
        """So that a run can be read from the top."""
        played: list[Job] = []
        self.executor(**self.settings).execute(
            jobs, lambda job: played.append(job), lambda job, result: None, workers=1, stop=threading.Event()
        )
        assert played == jobs

    def test_no_more_than_asked_at_the_same_time(self, jobs: list[Job]) -> None:
        """Each worker plays one episode."""
        both = threading.Barrier(2, timeout=30)
        lock = threading.Lock()
        at_once = [0, 0]

        def play(job: Job) -> Result | None:
            with lock:
                at_once[0] += 1
                at_once[1] = max(at_once)
            both.wait()
            with lock:
                at_once[0] -= 1
            both.wait()
            return result_of(job)

        self.executor(**self.settings).execute(jobs, play, lambda job, result: None, workers=2, stop=threading.Event())
        assert at_once == [0, 2]

    def test_nothing_begins_after_the_stop(self, jobs: list[Job]) -> None:
        """What is under way ends; a job that was stopped has no result."""
        stop = threading.Event()
        played: list[Job] = []
        told: list[Result | None] = []

        def play(job: Job) -> None:
            played.append(job)
            stop.set()

        self.executor(**self.settings).execute(
            jobs, play, lambda job, result: told.append(result), workers=1, stop=stop
        )
        assert played == jobs[:1] and told == [None]
        self.executor(**self.settings).execute(jobs, play, lambda job, result: None, workers=3, stop=stop)
        assert played == jobs[:1]

    def test_nothing_begins_after_a_stop_that_comes_later(self, jobs: list[Job]) -> None:
        """Several workers have begun; those that wait begin nothing."""
        stop = threading.Event()
        both = threading.Barrier(2, timeout=30)
        played: list[Job] = []

        def play(job: Job) -> None:
            played.append(job)
            both.wait()
            stop.set()
            both.wait()  # none is through before the other has seen to the stop

        self.executor(**self.settings).execute(jobs, play, lambda *_: None, workers=2, stop=stop)
        assert sorted(played, key=jobs.index) == jobs[:2], "it begins others after the stop"

    def test_several_workers_raise_what_cannot_be_kept(self, jobs: list[Job]) -> None:
        """Also where each has a job of its own."""

        def finished(job: Job, result: Result | None) -> None:
            raise OSError("no space left on the disk")

        with pytest.raises(OSError, match="no space left"):
            self.executor(**self.settings).execute(jobs, result_of, finished, workers=3, stop=threading.Event())

    def test_a_result_that_cannot_be_kept_is_raised(self, jobs: list[Job]) -> None:
        """And nothing further is begun."""
        played: list[Job] = []

        def play(job: Job) -> Result:
            played.append(job)
            return result_of(job)

        def finished(job: Job, result: Result | None) -> None:
            raise OSError("no space left on the disk")

        with pytest.raises(OSError, match="no space left"):
            self.executor(**self.settings).execute(jobs, play, finished, workers=1, stop=threading.Event())
        assert played == jobs[:1]

    def test_no_jobs_are_no_problem(self) -> None:
        """A run that is finished already has none."""
        self.executor(**self.settings).execute([], result_of, lambda *_: None, workers=2, stop=threading.Event())


class ExporterContract(ComponentContract):
    """The tests that every exporter must pass.

    Attributes:
        exporter: the exporter's class
        target: name of the file or directory that it is asked to make
    """

    exporter: ClassVar[type[Exporter]]
    target: ClassVar[str] = "exported"
    _kind: ClassVar[str] = "exporters"

    @pytest.fixture
    def run(self, tmp_path: Path) -> Iterator[Path]:
        """The directory of a run with three results."""
        directory = tmp_path / "run"
        directory.mkdir()
        results = [
            Result("toy/a", "solution_agent", None, "resolved", True, 2, 2, "clean", 3, {"eval": 1}, seconds=1.5),
            Result("toy/b", "solution_agent", None, "unresolved", False, 1, 2, "clean", 5, {"eval": 2}, seconds=2.5),
            Result("toy/c", "solution_agent", None, "error", error={"kind": "SandboxLost", "message": 'gone, "all"\n'}),
        ]
        write_run(directory, results)
        yield directory

    def test_a_run_is_exported_and_stays_as_it_is(self, run: Path, tmp_path: Path) -> None:
        """The target is made; the run is only read."""
        before = state_of(run)
        target = tmp_path / self.target
        self.exporter(**self.settings).export(run, target)
        assert target.exists(), f"it made no {self.target}"
        assert state_of(run) == before

    def test_exporting_twice_gives_the_same(self, run: Path, tmp_path: Path) -> None:
        """No time of the export is in it."""
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            self.exporter(**self.settings).export(run, tmp_path / name / self.target)
        assert state_of(tmp_path / "one") == state_of(tmp_path / "two")

    def test_what_a_run_showed_is_in_it(self, run: Path, tmp_path: Path) -> None:
        """Other results are exported otherwise."""
        another = tmp_path / "another"
        another.mkdir()
        write_run(another, [Result("toy/z", "noop_agent", None, "unresolved", False, 0, 9, "clean", 7, seconds=3.5)])
        for name, directory in (("one", run), ("other", another)):
            (tmp_path / name).mkdir()
            self.exporter(**self.settings).export(directory, tmp_path / name / self.target)
        one, other = state_of(tmp_path / "one"), state_of(tmp_path / "other")
        assert one != other, "what it makes does not depend on what is in the run"

    def test_what_is_no_run_is_refused(self, tmp_path: Path) -> None:
        """By a line that a person can read."""
        (tmp_path / "empty").mkdir()
        for place in (tmp_path / "nowhere", tmp_path / "empty"):
            with pytest.raises(UsageError):
                self.exporter(**self.settings).export(place, tmp_path / self.target)

    def test_a_target_that_cannot_be_written_is_refused(self, run: Path, tmp_path: Path) -> None:
        """Below a file, say."""
        (tmp_path / "file").write_text("")
        with pytest.raises(UsageError):
            self.exporter(**self.settings).export(run, tmp_path / "file" / self.target)


def write_run(directory: Path, results: list[Result]) -> None:
    """Write the files of a finished run, in each of whose episodes something was seen and done."""
    facts = {"schema_version": 1, "id": "run-of-the-kit", "config": {}, "versions": {}, "seed": 0, "notes": []}
    (directory / "run.json").write_text(json.dumps(facts))
    (directory / "results.jsonl").write_text("".join(f"{json.dumps(result.as_json())}\n" for result in results))
    for result in results:
        (directory / result.task).mkdir(parents=True)
        journal = Journal(directory / result.task / "trajectory.jsonl")
        for number in range(2):
            about: dict[str, Any] = dict.fromkeys(("reward", "score", "seconds"), 0)
            seen = f"step {number} of {result.task}"
            observation = {"text": seen, "json": json.dumps([{"source": "env", "text": seen, "data": {}}])}
            about |= {"action": ToolCall("eval") if number else None, "observation": observation, "max_score": 2}
            journal.append(Event.step(step=number, terminated=False, truncated=False, **about))
        journal.close()
