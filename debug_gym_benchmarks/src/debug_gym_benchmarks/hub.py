"""Data sets of the hub: a split is fetched as a file, and how much has come is told meanwhile."""

from __future__ import annotations

import contextlib
import importlib
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

from debug_gym_benchmarks.packages import first_line, lacking, package
from debug_gym_benchmarks.row_cache import replacing
from debug_gym_core import UsageError
from debug_gym_core.errors import RequirementError
from debug_gym_core.names import nearest
from debug_gym_core.progress import tell

LOOK = 1.0
"""Seconds between two looks at how much has come from the hub."""


INSTEAD = "or say benchmark.source: a local .json, .jsonl or .parquet file"


def unavailable(hub: str) -> str | None:
    """Say what is missing here to fetch a data set; None: nothing.

    Args:
        hub: its id
    """
    return lacking("datasets", **_needs(hub))


def fetch(hub: str, split: str, revision: str | None, path: Path) -> None:
    """Fetch a split from the hub.

    Args:
        hub: id of the data set
        split: its split
        revision: branch, tag or commit; None: the newest
        path: the parquet file that is made; its directory may be missing

    Raises:
        UsageError: there is no such data set, revision or split
        RequirementError: the package `datasets` is missing, or the hub cannot be reached
    """
    datasets = package("datasets", **_needs(hub))
    about = hub if revision is None else f"{hub} at {revision}"
    bars = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()  # they would tear the command line's own table
    try:
        with (
            _without_warnings("huggingface_hub"),
            _told(hub, f"fetching the data set {about}, split {split}, from the hub (once, it is kept for later runs)"),
        ):
            splits = datasets.get_dataset_split_names(hub, revision=revision)
            if split not in splits:
                raise UsageError(f"benchmark.split: {about} has no split {split!r}{nearest(split, splits)}")
            rows = datasets.load_dataset(hub, split=split, revision=revision)
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary:
                rows.to_parquet(str(temporary))
    except datasets.exceptions.DatasetNotFoundError as error:
        raise UsageError(f"benchmark.{'source' if revision is None else 'revision'}: {first_line(error)}") from error
    except OSError as error:  # ConnectionError, the hub's own errors of HTTP, and a full disk
        raise RequirementError(
            f"the data set {about} cannot be fetched: {first_line(error)}; connect to the hub, {INSTEAD}"
        ) from error
    finally:
        if bars:
            datasets.enable_progress_bars()


def _needs(hub: str) -> dict[str, str]:
    return {"extra": "hub", "why": f"the data set {hub} comes from the hub", "instead": f"; {INSTEAD}"}


@contextlib.contextmanager
def _without_warnings(name: str) -> Iterator[None]:
    """Let a library not tell of each request that it repeats: what it fails with is told."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def _told(hub: str, line: str) -> Iterator[None]:
    """Tell how much of a data set has come while the block runs."""
    cache = Path(importlib.import_module("huggingface_hub.constants").HF_HUB_CACHE)
    files = cache / f"datasets--{hub.replace('/', '--')}" / "blobs"
    done = threading.Event()

    def look() -> None:
        while not done.wait(LOOK):
            with contextlib.suppress(OSError):  # a part is renamed when it is whole
                size = sum(file.stat().st_size for file in files.glob("*"))
                tell(hub, f"{line}: {size / 1e6:.1f} MB")

    tell(hub, line)
    looking = threading.Thread(target=look, name="progress of a data set", daemon=True)
    looking.start()
    try:
        yield
    finally:
        done.set()
        looking.join()
        tell(hub, None)
