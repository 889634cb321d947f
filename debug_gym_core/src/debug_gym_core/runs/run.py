"""A run's directory: what was asked for, the results as they come, one place a task."""

from __future__ import annotations

import datetime
import json
import os
import re
import secrets
import shutil
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core.components.catalogue import installed
from debug_gym_core.config.model import Config
from debug_gym_core.errors import UsageError
from debug_gym_core.runs.json_lines import JsonLines
from debug_gym_core.runs.provenance import commit, naming_absent, versions
from debug_gym_core.runs.replacing import replaced
from debug_gym_core.runs.run_directory import (
    hold,
    is_held,
    refuse_other_contents,
    refuse_unwritable,
    remove,
    require_run,
)
from debug_gym_core.runs.same_config import joined_tasks, refuse_other_config, refuse_other_model, refuse_without_files
from debug_gym_core.runs.trajectory import Result, read_results

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.layers import Overrides
    from debug_gym_core.runs.model_record import ModelRecord

SCHEMA_VERSION = 1
LONGEST_NAME = 255
"""Bytes of a directory's name."""
Key = tuple[str, int | None]


class Run:
    """A run on disk, held by this process alone.

    Attributes:
        directory: where everything of it lies
        config: its effective config, as it is gone on with
        tasks: patterns of all its tasks, also of those that are not meant when it is gone on with
        id: names it in labels of sandboxes and in reports
        results: by task and repeat, those that are finished
        notes: what a reader of the results should know: weakened sandboxes, what a backend could not do
    """

    def __init__(self, directory: Path, config: Config, identity: str, record: dict[str, Any], lock: int) -> None:
        """Take over a directory that is locked; see `create` and `resume`."""
        self.directory = directory
        self.config = config
        self.id = identity
        self.notes: list[str] = list(record.get("notes", []))
        tasks = joined_tasks(record["config"], config.model_dump(mode="json"))
        assert tasks is not None  # what cannot be joined is another config, which was refused
        self.tasks: str | Sequence[str] = tasks
        self._record = record
        self._made: list[Path] | None = None
        self._lock_descriptor = lock
        self._mutex = threading.Lock()
        self.results: dict[Key, Result] = {(item.task, item.repeat): item for item in read_results(self.results_file)}
        self._lines = JsonLines(self.results_file)

    @classmethod
    def create(cls, config: Config, directory: Path | None = None, *, plugins: Plugins | None = None) -> Run:
        """Start a run.

        Args:
            config: its config
            directory: its directory; None makes a new one in `run.output`. One that holds a run with the same config
                is gone on with
            plugins: whose versions are noted

        Raises:
            UsageError: the directory holds a run with another config or something else, is in use, or cannot be made
        """
        now = datetime.datetime.now().astimezone()
        names = re.sub(r"[^\w.-]+", "_", f"{config.agent.name}-{config.benchmark.name}")
        identity = f"{now:%Y%m%d-%H%M%S}-{names}-{secrets.token_hex(2)}"
        directory = (directory or config.run.output / identity).absolute()
        made = [one for one in (directory, *directory.parents) if not one.exists()]
        try:
            refuse_other_contents(directory)
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{directory}: {error.strerror}") from error
        try:
            lock = hold(directory)
        except OSError:
            if directory in made:
                remove(directory, made)
            raise
        try:
            if (directory / "run.json").exists():
                record = read_record(directory)
                config = _agreed(directory, record, plugins, config)
                return cls(directory, config, str(record.get("id", directory.name)), record, lock)
            record = {
                "schema_version": SCHEMA_VERSION,
                "id": identity,
                "created": now.isoformat(timespec="seconds"),
                "config": config.model_dump(mode="json"),
                "versions": versions(plugins),
                "commit": commit(Path(__file__).parent.parent),
                "seed": config.run.seed,
                "mode": config.benchmark.mode,
                "notes": [],
            }
            run = cls(directory, config, identity, record, lock)
            run._made = made
        except BaseException:
            os.close(lock)
            raise
        try:
            run._write_record()
        except BaseException:
            run.discard()
            raise
        return run

    @classmethod
    def resume(
        cls,
        directory: Path,
        *,
        plugins: Plugins | None = None,
        workers: int | None = None,
        config: Config | None = None,
        overrides: Overrides = (),
    ) -> Run:
        """Go on with a run; its record stays as it is until it is played (`begin`).

        Args:
            directory: its directory
            plugins: what is installed
            workers: episodes at the same time; None: as the run has it
            config: what the command line says, must agree with the run's own; None: the run's own is taken
            overrides: of the run's own config, `key.path=value` each, of what may differ

        Raises:
            UsageError: there is no run, it is in use, or its config does not fit
        """
        require_run(directory)
        lock = hold(directory)
        try:
            record = read_record(directory)  # which nobody else writes to from here on
            config = _agreed(directory, record, plugins, config, overrides)
            if workers is not None:
                config = config.model_copy(update={"run": config.run.model_copy(update={"workers": workers})})
            return cls(directory.absolute(), config, str(record.get("id", directory.name)), record, lock)
        except BaseException:
            os.close(lock)
            raise

    @property
    def stays(self) -> bool:
        """Whether it is there to go on with: it was there before, or is begun; else `discard` removes it."""
        return self._made is None

    @property
    def results_gone(self) -> bool:
        """Whether results have no place any more: the file, or the directory, was removed, moved or replaced."""
        return self._lines.gone

    @property
    def gone(self) -> bool:
        """Whether there is no run to go on with any more: its directory or run.json is gone; closed it is not."""
        return self._lock_descriptor >= 0 and not is_held(self.directory, self._lock_descriptor)

    @property
    def results_file(self) -> Path:
        """The results.jsonl."""
        return self.directory / "results.jsonl"

    def task_directory(self, task: str, repeat: int | None = None) -> Path:
        """Where the artefacts of a task's episode lie.

        Raises:
            UsageError: nothing can lie there: the name leads out of the run's directory, or is too long
        """
        directory = self.directory / task
        if any(len(os.fsencode(part)) > LONGEST_NAME for part in directory.parts):
            raise UsageError(f"{task[:80]!r}... is no name for a task: it is too long for a directory's")
        if not directory.resolve().is_relative_to(self.directory.resolve()) or directory == self.directory:
            raise UsageError(f"{task!r} is no name for a task: it leads out of the run's directory")
        return directory if repeat is None else directory / str(repeat)

    def record(self, result: Result) -> None:
        """Keep a result; it is in results.jsonl when this returns."""
        with self._mutex:
            self._lines.append(result.as_json())
            self.results[result.task, result.repeat] = result

    def forget(self, keys: Iterable[Key], afresh: Iterable[Key]) -> None:
        """Remove results, so that their episodes are played again.

        Args:
            keys: of the results
            afresh: of the episodes whose artefacts are removed too; of any other what the model answered is used again
        """
        with self._mutex:
            for key in keys:
                self.results.pop(key, None)
            lines = JsonLines.anew(self.results_file, (result.as_json() for result in self.results.values()))
            self._lines.close()
            self._lines = lines
            # Last, so that no result is left, whenever we are killed, of which patch and trajectory are gone.
            for task, repeat in afresh:
                shutil.rmtree(self.task_directory(task, repeat), ignore_errors=True)

    def note(self, text: str) -> bool:
        """Note in run.json what a reader of the results should know; False when it is noted already."""
        with self._mutex:
            if text in self.notes:
                return False
            self.notes.append(text)
            self._write_record()
            return True

    def check_model(self, model: ModelRecord, again: Collection[Key] = (), files: Sequence[Path] = ()) -> list[str]:
        """Make sure that the results that count, and stay, are those of the model that is to play.

        Args:
            model: what is recorded of it
            again: of the results that are forgotten before it plays
            files: the unpackaged plugins that are there

        Returns:
            what has changed of it all the same, in words for people

        Raises:
            UsageError: those results are another model's
        """
        kept = self._record.get("model")
        counts = any(result.status != "error" and key not in again for key, result in self.results.items())
        return refuse_other_model(self.directory, kept, model, files) if isinstance(kept, dict) and counts else []

    def keep_model(self, model: Mapping[str, Any]) -> None:
        """Keep in run.json which model plays; results of another one must be forgotten by now.

        Args:
            model: its backend and settings, nothing secret
        """
        with self._mutex:
            self._record["model"] = dict(model)
            self._write_record()

    def note_python(self, python: Mapping[str, str]) -> None:
        """Note in run.json an interpreter that runs tasks' code.

        Args:
            python: its `path` and `version`
        """
        with self._mutex:
            known = self._record.setdefault("interpreters", [])
            if dict(python) not in known:
                known.append(dict(python))
                self._write_record()

    def begin(self, episodes: int) -> None:
        """Keep in run.json what is played from here on: the config, which has been checked by now.

        Args:
            episodes: how many the run has, so that a reader sees what is missing
        """
        with self._mutex:
            self._made = None
            self._record["config"] = self.config.model_dump(mode="json")
            self._record["config"]["benchmark"]["tasks"] = self.tasks
            self._record["episodes"] = episodes
            self._write_record()

    def discard(self) -> None:
        """Remove what this process made of a new run that was not begun: files, directory and those made above it."""
        if self._made is None or self.results:
            return
        remove(self.directory, self._made)  # before anybody else can hold it
        self.close()

    def close(self) -> None:
        """Give the directory free; may be called twice."""
        if self._lock_descriptor >= 0:
            self._lines.close()
            os.close(self._lock_descriptor)
            self._lock_descriptor = -1

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write_record(self) -> None:
        self._record["notes"] = self.notes
        with replaced(self.directory / "run.json") as path:
            text = json.dumps(self._record, indent=2, ensure_ascii=False) + "\n"
            # What cannot be UTF-8 are lone surrogates, of file names that are not: escaped, they are JSON still.
            path.write_text(text, encoding="utf-8", errors="backslashreplace")


def look(
    directory: Path, plugins: Plugins | None = None, config: Config | None = None, overrides: Overrides = ()
) -> tuple[Config, dict[Key, Result]]:
    """Read a run without taking it: the config that it would be gone on with, and the results that there are.

    Args:
        directory: its directory
        plugins: what is installed
        config: as for `Run.resume`
        overrides: as for `Run.resume`

    Raises:
        UsageError: there is no run, or its config does not fit
    """
    require_run(directory)
    config = _agreed(directory, read_record(directory), plugins, config, overrides)
    return config, {(item.task, item.repeat): item for item in read_results(directory / "results.jsonl")}


def refuse_unfit(directory: Path, config: Config, plugins: Plugins) -> None:
    """Make sure that a run could be kept in a directory, as `Run.create` does, and leave all as it is.

    Args:
        directory: that is asked for
        config: of the run
        plugins: what is installed

    Raises:
        UsageError: it holds a run with another config or something else, or cannot be made or written to
    """
    refuse_other_contents(directory)
    if (directory / "run.json").exists():
        look(directory, plugins, config)
    refuse_unwritable(directory)


def _agreed(
    directory: Path,
    record: Mapping[str, Any],
    plugins: Plugins | None,
    config: Config | None,
    overrides: Overrides = (),
) -> Config:
    """The config that a run is gone on with, as `Run.resume` is given it.

    Raises:
        UsageError: it is another one than the run's own, or needs what is not there
    """
    from debug_gym_core.config.loading import from_data

    refuse_without_files(directory, record, plugins or installed())
    kept = record["config"]
    if config is None:
        where = str(directory / "run.json")
        with naming_absent(record, plugins):
            config = from_data(kept, where, plugins, overrides)
        if not overrides:
            return config  # an older version may have written it, which knew fewer keys
        kept = from_data(kept, where, plugins).model_dump(mode="json")
    refuse_other_config(directory, kept, config)
    return config


def read_record(directory: Path) -> dict[str, Any]:
    """Read the run.json of a run.

    Raises:
        UsageError: it cannot be read, is no record of a run, or was written by a newer version
    """
    path = directory / "run.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        line = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise UsageError(f"{path}: not JSON{line}; a run cannot go on without it, name a new directory") from error
    if not isinstance(record, dict) or not isinstance(record.get("schema_version"), int):
        raise UsageError(f"{path}: not the record of a run")
    if record["schema_version"] > SCHEMA_VERSION:
        raise UsageError(f"{path}: written by a newer debug-gym")
    if not isinstance(record.get("config"), dict) or not isinstance(record.get("notes", []), list):
        raise UsageError(f"{path}: not the record of a run: it has no config, or its notes are no list")
    return record
