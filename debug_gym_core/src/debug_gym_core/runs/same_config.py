"""Whether a run that there is may be gone on with by a config: its results belong to one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from debug_gym_core.config.model import Config
from debug_gym_core.errors import UsageError
from debug_gym_core.tasks.selection import ALL, NOT

FREE = frozenset((
    *(("run", key) for key in ("workers", "output", "executor", "max_retries", "max_cost")), ("llm", "max_run_tokens"),
))  # fmt: skip
"""Keys that may differ when a run is gone on with: they do not change what a task's result is."""

SHOWN = 80
"""Characters of a value that an error shows."""


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
    differences = []
    for section in sorted({*kept, *new}):
        old_values, new_values = kept.get(section), new.get(section)
        if not (isinstance(old_values, dict) and isinstance(new_values, dict)):
            old_values, new_values = {"": old_values}, {"": new_values}
        for key in sorted({*old_values, *new_values}):
            before, after = old_values.get(key), new_values.get(key)
            if before == after or (section, key) in FREE:
                continue
            if (section, key) == ("benchmark", "tasks") and joined_tasks(kept, new) is not None:
                continue
            name = f"{section}.{key}" if key else section
            differences.append(f"{name} was {_short(before)}, is now {_short(after)}")
    if differences:
        more = f"; {len(differences) - 3} more" if len(differences) > 3 else ""
        raise UsageError(
            f"{directory} holds a run with another config: {'; '.join(differences[:3])}{more}.\n"
            "Take another directory, or remove this one"
        )


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
