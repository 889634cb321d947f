"""Whether a run that there is may be gone on with by a config and a model: its results belong to one of each."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core.config.model import Config
from debug_gym_core.errors import UsageError
from debug_gym_core.runs.model_record import (
    ENDPOINT_VARIABLES,
    MOVED,
    SAME_ANSWERS,
    VARIABLES,
    ModelRecord,
    said_now,
    without_secrets,
)
from debug_gym_core.runs.provenance import absent_files, file_options
from debug_gym_core.tasks.selection import ALL, NOT

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins

FREE = frozenset((
    *(("run", key) for key in ("workers", "output", "executor", "max_retries", "max_cost")), ("llm", "max_run_tokens"),
    ("llm_config_file_path", ""),
))  # fmt: skip
"""Keys that may differ when a run is gone on with: they do not change what a task's result is.

Which model answers is compared for itself, wherever its entry stands.
"""

ANOTHER = "Take another directory, or remove this one"
"""What to do where a run cannot be gone on with."""

SHOWN = 80
"""Characters of a value that an error shows."""


def refuse_without_files(directory: Path, record: Mapping[str, Any], plugins: Plugins) -> None:
    """Make sure that the unpackaged plugins of a run are there: what they have may be found elsewhere, and be another.

    Args:
        directory: of the run
        record: its run.json
        plugins: what is there

    Raises:
        UsageError: one is not
    """
    absent = absent_files(record, plugins)
    if absent:
        command = f"debug-gym run --resume {shlex.quote(str(directory))}{file_options([*plugins.files, *absent])}"
        raise UsageError(f"{directory} was played with{file_options(absent)}, which is not given now.\nSay {command}")


def refuse_other_config(directory: Path, kept: Mapping[str, Any], config: Config) -> None:
    """Make sure that a config is a run's own, but for what does not matter; it may mean other tasks.

    Args:
        directory: of the run
        kept: its config, as its record has it
        config: the one that it is to be gone on with

    Raises:
        UsageError: it is not
    """
    new = config.model_dump(mode="json")
    free = FREE if joined_tasks(kept, new) is None else FREE | {("benchmark", "tasks")}
    differences = []
    for section in sorted({*kept, *new}):
        before, after = kept.get(section), new.get(section)
        if not (isinstance(before, dict) and isinstance(after, dict)):
            before, after = {"": before}, {"": after}
        differences += [words for key, words in _differences(section, before, after) if (section, key) not in free]
    if differences:
        raise _other(directory, "holds a run with another config", differences, ANOTHER)


def refuse_other_model(
    directory: Path, kept: Mapping[str, Any], model: ModelRecord, files: Sequence[Path] = ()
) -> list[str]:
    """Make sure that a model is the one that played a run, whatever llm.yaml calls it.

    A record without marks may be of a version that knew no references: then it has what the environment said.

    Args:
        directory: of the run
        kept: what its record has of its model
        model: the same of the one that it is to be gone on with
        files: the unpackaged plugins that are there

    Returns:
        what people should know of: where it is served now, what it costs now

    Raises:
        UsageError: it is another one, or is asked in another way
    """
    before = said_now(without_secrets(kept), model)
    found = list(_differences("model", before, model.kept))
    if not {VARIABLES, ENDPOINT_VARIABLES} & kept.keys():
        other = {key for key, _ in _differences("model", before, model.plain)}
        found = [(key, words) for key, words in found if key in other]
    differences = [words for key, words in found if key not in SAME_ANSWERS]
    if differences:
        command = f"debug-gym run --resume {shlex.quote(str(directory))} --force-all{file_options(files)}"
        mend = f"Take another directory, or play all of its tasks again: {command}"
        raise _other(directory, "was played by another model", differences, mend)
    return [words for key, words in found if key in MOVED]


def _differences(section: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The keys of a section with other values than before, and the words for each."""
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            name = f"{section}.{key}" if key else section
            yield key, f"{name} was {_short(before.get(key))}, is now {_short(after.get(key))}"


def _other(directory: Path, what: str, differences: Sequence[str], mend: str) -> UsageError:
    more = f"; {len(differences) - 3} more" if len(differences) > 3 else ""
    return UsageError(f"{directory} {what}: {'; '.join(differences[:3])}{more}.\n{mend}")


def joined_tasks(kept: Mapping[str, Any], new: Mapping[str, Any]) -> str | list[str] | None:
    """The patterns of all tasks of a run that is gone on with, and may be by a config that means others.

    Args:
        kept: the run's config, as data
        new: the other one

    Returns:
        None: they cannot be written together, since some of them say what is left out
    """
    before, after = (one.get("benchmark", {}).get("tasks", ALL) for one in (kept, new))
    if before == after:
        return before  # type: ignore[no-any-return]
    if ALL in (before, after):
        return ALL
    patterns = [*_patterns(before), *_patterns(after)]
    if any(pattern.startswith(NOT) for pattern in patterns):
        return None
    return ALL if ALL in patterns else list(dict.fromkeys(patterns))


def _patterns(tasks: str | Sequence[str]) -> Sequence[str]:
    return [tasks] if isinstance(tasks, str) else tasks


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
