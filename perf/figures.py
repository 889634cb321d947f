"""What the measurements share: rows, medians, the table."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from debug_gym_core import RepoEnv, ToolCall

NO_BAR = float("inf")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        measure: what was measured
        ours: our figure
        bare: the figure of what a user would run instead
        unit: of both
        bar: what ours, or the ratio, must not exceed
        kind: whether the bar is on `ours` (absolute) or on the `ratio`
    """

    measure: str
    ours: float
    bare: float
    unit: str
    bar: float
    kind: str = "absolute"

    @property
    def ratio(self) -> float:
        return self.ours / self.bare if self.bare else float("inf")

    @property
    def holds(self) -> bool:
        return (self.ours if self.kind == "absolute" else self.ratio) <= self.bar


@dataclass(frozen=True)
class Compared(Row):
    """A line of the table, with what stdlib pdb takes: `pdb` is a ratio to bare where the bar is one."""

    pdb: float | None = None


def milliseconds(action: Callable[[], object]) -> float:
    """Wall-clock time of an action."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


def median_ms(action: Callable[[], object], count: int, warm: int = 3) -> float:
    """Median wall-clock time of an action in milliseconds."""
    for _ in range(warm):
        action()
    return statistics.median(milliseconds(action) for _ in range(count))


def check(env: RepoEnv, call: ToolCall) -> str:
    """Step, and make sure that it was not an error that was quick."""
    observation, *_ = env.step(call)
    if env.last_observations[0].error:
        raise SystemExit(f"{call}: {observation['text']}")
    return observation["text"]


def arguments(description: str) -> argparse.ArgumentParser:
    """A command line with what `finish` needs."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    return parser


def image() -> str | None:
    """The image in which Docker is measured; None: it is not."""
    return os.environ.get("DEBUG_GYM_TEST_IMAGE")


def finish(rows: Sequence[Row], options: argparse.Namespace) -> int:
    """Show all rows, write them where they are asked for, and return 1 when a bar was missed."""
    width = max(len(row.measure) for row in rows)
    has_pdb = any(isinstance(row, Compared) for row in rows)
    heading = f"{'pdb':>9}  " if has_pdb else ""
    print(f"{'measure':<{width}}  {'ours':>10}  {'bare':>10}  {'ratio':>6}  {heading}bar")
    for row in rows:
        of = "x" if row.kind == "ratio" else f" {row.unit}"
        took = getattr(row, "pdb", None)
        pdb = f"{'' if took is None else f'{took:.4g}{of}':>9}  " if has_pdb else ""
        bar = "none" if row.bar == NO_BAR else f"{row.bar:g}{of} {'holds' if row.holds else 'MISSED'}"
        figures = f"{row.ours:>7.2f} {row.unit:<2}  {row.bare:>7.2f} {row.unit:<2}  {row.ratio:>6.2f}"
        print(f"{row.measure:<{width}}  {figures}  {pdb}{bar}")
    if image() is None:
        print("docker was not measured: set DEBUG_GYM_TEST_IMAGE (`.ci/images` makes an image)")
    if options.json:
        options.json.write_text(
            json.dumps([{**asdict(row), "ratio": row.ratio, "holds": row.holds} for row in rows], indent=1)
        )
    return 0 if all(row.holds for row in rows) else 1
