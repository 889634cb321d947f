"""Which tasks of a benchmark are meant by names, globs and files of them."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from debug_gym_core.components.component import blamed
from debug_gym_core.errors import PluginError, UsageError
from debug_gym_core.names import nearest
from debug_gym_core.tasks.task import Task

if TYPE_CHECKING:
    from debug_gym_core.tasks.task import Benchmark

ALL = "all"
NOT = "!"
FILE = "@"
NAMED = 20
"""Tasks that an error names at most."""


def task_names(benchmark: Benchmark) -> list[str]:
    """The names of a benchmark's tasks.

    Raises:
        PluginError: what it says are no names, or it fails
    """
    with blamed(type(benchmark), "list its tasks"):
        names = benchmark.names()
        found = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else None
    if found is None:
        raise PluginError(f"benchmark {benchmark.name}: names() must return a list of names, not {names!r:.80}")
    if wrong := [one for one in found if not isinstance(one, str)]:
        raise PluginError(f"benchmark {benchmark.name}: names() must return texts, not {wrong[0]!r:.80}")
    return found


def excluded_tasks(benchmark: Benchmark) -> Mapping[str, str]:
    """The tasks that a benchmark leaves out, and why.

    Raises:
        PluginError: what it says are none, or it fails
    """
    with blamed(type(benchmark), "list the tasks that it leaves out"):
        excluded: object = benchmark.excluded()
    if not isinstance(excluded, Mapping):
        raise PluginError(f"benchmark {benchmark.name}: excluded() must return reasons by name, not {excluded!r:.80}")
    return excluded


def load_task(benchmark: Benchmark, name: str) -> Task:
    """Load a task.

    Raises:
        UsageError: there is no task of that name, or it cannot be played in the mode that was asked for
        PluginError: what the benchmark loads is none, or it fails
    """
    with blamed(type(benchmark), f"load {name!r}"):
        task = benchmark.load(name)
    if not isinstance(task, Task):
        raise PluginError(f"benchmark {benchmark.name}: load({name!r}) must return a Task, not {task!r:.80}")
    wanted = getattr(benchmark.settings, "mode", task.mode)
    if task.mode != wanted != "visible":  # which is what it is where nobody asked for any
        raise UsageError(f"{task.id} cannot be played in mode {wanted}, only {task.mode}: see benchmark.mode")
    return task


def select_tasks(benchmark: Benchmark, patterns: str | Sequence[str]) -> list[str]:
    """Choose tasks.

    A task that the benchmark leaves out because it cannot be solved as published is chosen by its full name only.

    Args:
        benchmark: where the tasks are
        patterns: `all`, a name or id (`benchmark/name`), a glob over either, `!` before one of these: not those (of all
            tasks, when nothing else is said), `@` before the path of a file: what its lines say, `#` starts a comment;
            or several of them. What is left out is left out wherever it stands

    Returns:
        names of tasks, each once, in the benchmark's order

    Raises:
        UsageError: a pattern means no task, and the text names the nearest; a file cannot be read; nothing is left
        PluginError: the benchmark cannot say which tasks it has
    """
    names = task_names(benchmark)
    excluded = excluded_tasks(benchmark)
    if not names and not excluded:
        raise UsageError(f"{benchmark.name} has no tasks: its source is empty")
    chosen: set[str] = set()
    refused: set[str] = set()
    positive = False
    for pattern, where in _written([patterns] if isinstance(patterns, str) else patterns):
        plain = pattern.removeprefix(NOT)
        meant = _meant(plain.removeprefix(f"{benchmark.name}/"), names, excluded)
        if not meant:
            raise UsageError(f"{where}{_unknown(benchmark.name, plain, [*names, *excluded])}")
        if plain == pattern:
            positive = True
            chosen.update(meant)
        else:
            refused.update(meant)
    chosen = (chosen if positive else set(names)) - refused
    if not chosen:
        raise UsageError(f"{benchmark.name}: no task is left of {_shown(patterns)}")
    return [name for name in [*names, *excluded] if name in chosen]


def _meant(pattern: str, names: Sequence[str], excluded: Mapping[str, str]) -> Sequence[str]:
    """The tasks that a name or glob means: a name first, as names may have brackets in them.

    A dash is taken for an underscore where no name has it so.
    """
    if pattern in names or pattern in excluded:
        return [pattern]
    if found := names if pattern == ALL else fnmatch.filter(names, pattern):
        return found
    plain = pattern.replace("-", "_")
    return [plain] if plain in names or plain in excluded else fnmatch.filter(names, plain)


def _unknown(benchmark: str, pattern: str, names: Sequence[str]) -> str:
    """Words for a pattern that means no task; they name a few tasks, not thousands."""
    plain = pattern.removeprefix(f"{benchmark}/")
    words = nearest(plain, names)
    if "did you mean" not in words and len(names) > NAMED:
        words = f"; `debug-gym tasks {benchmark}` lists its {len(names)}"
    return f"{benchmark} has no task {plain!r}{words}"


def _written(patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The patterns, those in files among them, and for these where they stand."""
    for pattern in patterns:
        if not pattern.startswith(FILE):
            yield pattern, ""
            continue
        path = Path(pattern.removeprefix(FILE)).expanduser()
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise UsageError(f"tasks: {path}: {reason}") from error
        found = [(text, number) for number, line in enumerate(lines, 1) if (text := _without_comment(line))]
        if not found:
            raise UsageError(f"tasks: {path} names no task")
        for text, number in found:
            yield text, f"{path}:{number}: "


def _without_comment(line: str) -> str:
    """A line up to a `#` that starts a comment: at its begin or after a blank, for names may hold one."""
    words = line.split()
    first = next((number for number, word in enumerate(words) if word.startswith("#")), len(words))
    return " ".join(words[:first])


def _shown(patterns: str | Sequence[str]) -> str:
    texts = [patterns] if isinstance(patterns, str) else [*patterns[:3], *(["..."] if len(patterns) > 3 else [])]
    return ", ".join(texts)
