"""What runs come to: figures of each, side by side only where they can be compared.

Results are comparable when they are of the same benchmark, the same version of its data and the same mode: who saw the
tests that count decides what a score means. So results are put into sections by these three before anything is counted.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core.errors import UsageError
from debug_gym_core.runs.ledger import read_spending
from debug_gym_core.runs.model_record import model_name
from debug_gym_core.runs.run import read_record
from debug_gym_core.runs.run_directory import no_run
from debug_gym_core.runs.trajectory import Result, read_results

if TYPE_CHECKING:
    from debug_gym_core.tasks.task import Mode

Z = 1.959964
"""Standard deviations of a normal distribution that hold 95 % of it."""

NOT_DATA = ("name", "mode", "tasks")
"""Keys of a config's benchmark that do not choose its data: tasks that differ are compared where they agree."""


@dataclass(frozen=True)
class Section:
    """What results have to have in common to be compared.

    Attributes:
        benchmark: its name
        mode: who saw the tests that count, as `Task.mode`
        data: what the config says of the benchmark's data (`split`, `source`, ...), by key; empty: as it is published
    """

    benchmark: str
    mode: Mode
    data: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Line:
    """The results of a run that belong to one section, and their figures.

    Attributes:
        run: the run's name
        directory: where it lies
        agent: who played
        llm: what the config calls the model; None for an agent that needs none
        model: what its service calls it; None where that is not known
        results: those of the section
        notes: what the run notes for readers of its results
        missing: episodes of the run without a result; None when the run does not say how many it has
        spent: dollars that all calls of the run took: also in episodes that have no result or were played again
    """

    run: str
    directory: Path
    agent: str
    llm: str | None
    model: str | None
    results: Sequence[Result]
    notes: Sequence[str] = ()
    missing: int | None = None
    spent: float = 0.0

    @cached_property
    def by_task(self) -> Mapping[str, Sequence[Result]]:
        """The results that count, those of each task together; infrastructure that failed tells nothing of a task."""
        found: dict[str, list[Result]] = {}
        for one in self.results:
            if one.status != "error":
                found.setdefault(one.task, []).append(one)
        return found

    @property
    def counted(self) -> int:
        """Episodes that count."""
        return sum(map(len, self.by_task.values()))

    @property
    def errors(self) -> int:
        """Episodes that infrastructure failed."""
        return len(self.results) - self.counted

    @property
    def resolved(self) -> int:
        """Episodes that resolved their task."""
        return sum(one.resolved for one in self.results)

    @property
    def repeated(self) -> bool:
        """Whether a task was played several times."""
        return any(len(each) > 1 for each in self.by_task.values())

    @property
    def rate(self) -> float | None:
        """The share of tasks that an episode resolves, 0 to 1; None when nothing counts.

        The mean over tasks of the share of their episodes, so that a task counts once however often it was played.
        """
        if not self.by_task:
            return None
        return math.fsum(self.share(task) for task in self.by_task) / len(self.by_task)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Between what the rate lies with 95 % confidence, were the tasks drawn at random; None when nothing counts.

        Wilson's score interval (1927) over the number of tasks: repeats of a task tell little of other tasks.
        """
        return None if self.rate is None else wilson(self.rate, len(self.by_task))

    @property
    def ever(self) -> int:
        """Tasks that at least one episode resolved."""
        return sum(self.share(task) > 0 for task in self.by_task)

    @property
    def always(self) -> int:
        """Tasks that every episode resolved."""
        return sum(self.share(task) == 1 for task in self.by_task)

    @property
    def pass_at(self) -> Sequence[float]:
        """How likely one of k episodes of a task resolves it, 0 to 1, for k from 1 to as many as each task has.

        pass@k, estimated without bias (Chen et al., 2021), the mean over tasks; of k = 1 it is the rate.
        """
        counts = [(len(each), sum(not one.resolved for one in each)) for each in self.by_task.values()]
        most = min((episodes for episodes, _ in counts), default=0)
        return [
            1 - math.fsum(math.comb(failed, k) / math.comb(episodes, k) for episodes, failed in counts) / len(counts)
            for k in range(1, most + 1)
        ]

    @property
    def score(self) -> float | None:
        """The mean share of the tests that count and passed, 0 to 1; None when no episode says how many count."""
        shares = [one.score / one.max_score for each in self.by_task.values() for one in each if one.max_score]
        return math.fsum(shares) / len(shares) if shares else None

    @property
    def gradings(self) -> Mapping[str, int]:
        """How the episodes that count were graded, and how many in each way."""
        return Counter(str(one.grading) for each in self.by_task.values() for one in each)

    @property
    def doubts(self) -> Mapping[str, Mapping[str, str]]:
        """Why tests that passed were not believed, by their ids, by the tasks that have such tests."""
        found: dict[str, dict[str, str]] = {}
        for one in self.results:
            if one.doubts:
                found.setdefault(one.task, {}).update(one.doubts)
        return found

    @property
    def steps(self) -> int:
        """Steps of the environment."""
        return sum(one.steps for one in self.results)

    @property
    def tool_calls(self) -> Mapping[str, int]:
        """How often each tool was used."""
        calls: Counter[str] = Counter()
        for one in self.results:
            calls.update(one.tool_calls)
        return calls

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers."""
        return sum(one.tokens.prompt + one.tokens.completion for one in self.results)

    @property
    def cost(self) -> float:
        """Dollars that the results took."""
        return math.fsum(one.cost for one in self.results)

    @property
    def seconds(self) -> float:
        """Wall-clock time of the episodes, those that were played at the same time one after the other."""
        return math.fsum(one.seconds for one in self.results)

    def share(self, task: str) -> float:
        """The share of a task's episodes that resolved it, 0 to 1."""
        each = self.by_task[task]
        return sum(one.resolved for one in each) / len(each)


@dataclass(frozen=True)
class Pair:
    """Two lines of a section, on the tasks that count in both; each task was played once by both.

    Attributes:
        first: number of the one line, from 0
        second: number of the other
        both: tasks that both resolved
        only_first: tasks that only the first one resolved
        only_second: tasks that only the second one resolved
        neither: tasks that none resolved
    """

    first: int
    second: int
    both: int
    only_first: int
    only_second: int
    neither: int

    @property
    def p(self) -> float:
        """How likely a difference as large is by chance, were both as good: McNemar's test (1947), exact, two-sided."""
        n, least = self.only_first + self.only_second, min(self.only_first, self.only_second)
        return min(1.0, 2 * sum(math.comb(n, k) for k in range(least + 1)) / (1 << n))


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """The directories of runs that paths name.

    Args:
        paths: of runs, or of directories with runs at any depth below

    Returns:
        each run once, those below a directory by name

    Raises:
        UsageError: a path is no directory, or no run is there
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            raise UsageError(f"{path}: there is no such directory")
        runs = list(_runs_below(path))
        if not runs:
            raise no_run(path)
        found.update(dict.fromkeys(runs))
    return list(found)


def read_sections(runs: Iterable[Path]) -> dict[Section, list[Line]]:
    """Read runs, and put together what can be compared.

    The plugins that a run used need not be installed. A run that is being played is read as it stands.

    Args:
        runs: their directories

    Raises:
        UsageError: a run cannot be read
    """
    sections: dict[Section, list[Line]] = {}
    for directory in runs:
        for section, line in _read(directory):
            sections.setdefault(section, []).append(line)
    return sections


def pairs(lines: Sequence[Line]) -> list[Pair]:
    """Each two lines of a section, compared task by task, where both played each task once."""
    found = []
    for (first, one), (second, other) in combinations(enumerate(lines), 2):
        common = [task for task in one.by_task if task in other.by_task]
        if common and not one.repeated and not other.repeated:
            counts = Counter((one.share(task) > 0, other.share(task) > 0) for task in common)
            ways = ((True, True), (True, False), (False, True), (False, False))
            found.append(Pair(first, second, *(counts[way] for way in ways)))
    return found


def wilson(rate: float, count: int) -> tuple[float, float]:
    """Wilson's score interval of a share, 95 %.

    Args:
        rate: the share, 0 to 1
        count: of how many it is the share, at least 1
    """
    return _least(rate, count), 1 - _least(1 - rate, count)


def _least(rate: float, count: int) -> float:
    """The lower end of Wilson's interval; the upper one is that of the complement."""
    half = Z * math.sqrt(rate * (1 - rate) / count + Z * Z / (4 * count**2))
    return max(0.0, (rate + Z * Z / (2 * count) - half) / (1 + Z * Z / count))


def _runs_below(path: Path) -> Iterator[Path]:
    """The runs in a directory; what a run has made is not looked through."""
    for directory, names, files in os.walk(path):
        names.sort()
        if "run.json" in files:
            names.clear()
            yield Path(directory).absolute()


def _read(directory: Path) -> Iterator[tuple[Section, Line]]:
    """The lines that a run has: one, or one each mode where its tasks have their own."""
    record = read_record(directory)
    config: Mapping[str, Any] = record["config"]
    benchmark = _mapping(config.get("benchmark"))
    agent = str(_mapping(config.get("agent")).get("name"))
    results = {(one.task, one.repeat): one for one in read_results(directory / "results.jsonl")}
    by_mode: dict[Mode, list[Result]] = {}
    for one in results.values():
        by_mode.setdefault(one.mode, []).append(one)
    chosen = tuple((key, str(value)) for key, value in benchmark.items() if value is not None and key not in NOT_DATA)
    planned = record.get("episodes")
    missing = max(0, planned - len(results)) if isinstance(planned, int) else None
    spent = math.fsum(usage.cost for usage in read_spending(directory / "spending.jsonl").values())
    for mode, those in (by_mode or {record.get("mode", "visible"): []}).items():
        llm = next((one.llm for one in those if one.llm), None)
        notes = tuple(map(str, record.get("notes", ())))
        model = model_name(record) if llm else None
        name = str(record.get("id", directory.name))
        line = Line(name, directory, agent, llm, model, those, notes, missing, spent)
        yield Section(str(benchmark.get("name")), mode, chosen), line


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
