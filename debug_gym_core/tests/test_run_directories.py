"""The directory of a run: whose it is, what is kept there, and what is left of a run that never began."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import debug_gym_core.runs.run as runs
from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.loading import load
from debug_gym_core.config.model import Config
from debug_gym_core.errors import UsageError
from debug_gym_core.runs.run import Run, replaced
from debug_gym_core.runs.trajectory import Result, read_results


def test_two_runs_do_not_share_a_directory(toy_plugins: Plugins, tmp_path: Path) -> None:
    config = load("toy", plugins=toy_plugins)
    with Run.create(config, tmp_path / "run") as run:
        with pytest.raises(UsageError, match=rf"in use by another debug-gym \(process {os.getpid()}\)"):
            Run.create(config, tmp_path / "run")
        with pytest.raises(UsageError, match="in use"):
            Run.resume(run.directory, plugins=toy_plugins)
    Run.create(config, tmp_path / "run").close()


def test_runs_get_directories_of_their_own(toy_plugins: Plugins, tmp_path: Path) -> None:
    config = load("toy", [f"run.output={tmp_path}/exps"], plugins=toy_plugins)
    with Run.create(config) as one, Run.create(config) as two:
        assert one.directory.parent == two.directory.parent == tmp_path / "exps"
        assert one.directory != two.directory and one.directory.name == one.id
        one.discard()
        assert not one.directory.exists() and two.directory.exists()


def test_discarding_leaves_no_empty_directories_and_no_foreign_files(toy_plugins: Plugins, tmp_path: Path) -> None:
    config = load("toy", plugins=toy_plugins)
    Run.create(config, tmp_path / "x/y/run").discard()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    Run.create(config, tmp_path / "mine").discard()
    assert (tmp_path / "mine").is_dir()


def test_a_run_that_is_discarded_is_held_until_nothing_of_it_is_left(
    toy_plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes meanwhile is told that it is in use, and who waits at its lock makes one of its own."""
    config = load("toy", plugins=toy_plugins)
    first = Run.create(config, tmp_path / "run")
    remove, held = runs.remove, os.open(tmp_path / "run" / ".lock", os.O_RDWR)

    def removed(*given: Any) -> None:
        with pytest.raises(UsageError, match="in use by another"):
            Run.resume(tmp_path / "run", plugins=toy_plugins)
        remove(*given)

    monkeypatch.setattr(runs, "remove", removed)
    first.discard()
    assert list(tmp_path.iterdir()) == []
    opened = iter([held])
    (tmp_path / "run").mkdir()
    real = os.open
    monkeypatch.setattr(os, "open", lambda *given: next(opened, None) or real(*given))
    with Run.create(config, tmp_path / "run"):
        assert (tmp_path / "run" / ".lock").read_text() == f"{os.getpid()}\n"
    with pytest.raises(UsageError, match="gone was removed just now"):
        runs.hold(tmp_path / "gone")


def test_what_a_process_of_the_same_number_left_is_not_taken_over(toy_plugins: Plugins, tmp_path: Path) -> None:
    with Run.create(load("toy", plugins=toy_plugins), tmp_path / "run") as run:
        left = run.results_file.with_name(f".results.jsonl.{os.getpid()}")
        left.write_text('{"task": "toy/old", "agent": "x", "status": "unresolved"}\n')
        run.forget([], [])
    assert read_results(run.results_file) == []


def open_below(directory: Path) -> list[str]:
    """The files below a directory that this process has open; others come and go with threads."""
    paths = []
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            paths.append(str(one.readlink()))
    return sorted(path for path in paths if path.startswith(f"{directory}/"))


def test_results_are_kept_in_one_file_while_others_are_forgotten(toy_plugins: Plugins, tmp_path: Path) -> None:
    def result(task: str) -> Result:
        return Result(task, "x", None, "unresolved")

    with Run.create(load("toy", plugins=toy_plugins), tmp_path / "run") as run:
        run.record(result("toy/a"))
        run.record(result("toy/b"))
        run.forget([("toy/a", None)], [])
        assert not run.results_gone and not run.gone
        run.record(result("toy/c"))
        assert [one.task for one in read_results(run.results_file)] == ["toy/b", "toy/c"]
        used = open_below(tmp_path)
        run.results["toy/d", None] = Result("toy/d", "x", None, "unresolved", reason="x" * 10_000)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, hard))
        try:
            with pytest.raises(OSError, match="too large"):
                run.forget([], [])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, ignored)
        assert open_below(tmp_path) == used and len(used) == 2 and not run.results_gone
        assert [one.task for one in read_results(run.results_file)] == ["toy/b", "toy/c"]


def test_a_run_that_is_closed_is_not_taken_for_one_that_was_removed(toy_plugins: Plugins, tmp_path: Path) -> None:
    with Run.create(load("toy", plugins=toy_plugins), tmp_path / "run") as run:
        run.begin(1)
    assert not run.results_gone and not run.gone


def test_task_names_stay_in_the_directory(toy_plugins: Plugins, tmp_path: Path) -> None:
    with Run.create(load("toy", plugins=toy_plugins), tmp_path / "run") as run:
        for name in ("../x", "/etc", "a/../../x", "."):
            with pytest.raises(UsageError, match="leads out"):
                run.task_directory(name)
        with pytest.raises(UsageError, match="too long"):
            run.task_directory("toy/" + "é" * 128)


def test_two_processes_do_not_share_a_directory(toy_plugins: Plugins, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom debug_gym_core.config.model import Config\n"
        "from debug_gym_core.runs.run import Run\nrun = Run.create(Config(), Path(sys.argv[1]))\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "run")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match=f"process {holder.pid}"):
            Run.create(Config(), tmp_path / "run")
    finally:
        holder.kill()
        holder.communicate()
    Run.create(Config(), tmp_path / "run").close()


def test_a_directory_that_is_gone_is_told_by_the_file_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with pytest.raises(FileNotFoundError) as caught, replaced(path) as temporary:
        temporary.write_text("{}")
        shutil.rmtree(tmp_path)
    assert caught.value.filename == str(path)
