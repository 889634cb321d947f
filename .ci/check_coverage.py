#!/usr/bin/env python3
"""Check how many branches the tests reached, from `coverage json`: check_coverage.py PERCENT FILE.

The figure is that of branches alone; coverage's own total counts lines too. Core and plugins are held to it apart.
"""

import json
import sys
from pathlib import Path
from typing import Any

PARTS = {
    "core": ("debug_gym_core/",),
    "plugins": ("plugins/", "debug_gym_agents/", "debug_gym_benchmarks/"),
}


def percent(files: list[dict[str, Any]]) -> tuple[int, int, float]:
    """Branches reached, branches there are, and what percentage the first is."""
    reached = sum(one["summary"]["covered_branches"] for one in files)
    known = sum(one["summary"]["num_branches"] for one in files)
    return reached, known, 100 * reached / known if known else 100.0


def main() -> int:
    """Print the parts, and the modules of which less was reached; returns 1 if a part is below."""
    bar = float(sys.argv[1])
    files = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))["files"]
    below = []
    for part, places in PARTS.items():
        chosen = {path: one for path, one in files.items() if path.startswith(places)}
        if not chosen:
            raise SystemExit(f"{part}: nothing was measured")
        for path, one in sorted(chosen.items()):
            reached, known, share = percent([one])
            if share < bar:
                print(f"  {share:5.1f} %  {path}: {known - reached} of {known} branches not taken")
        reached, known, share = percent(list(chosen.values()))
        print(f"{part}: {reached} of {known} branches, {share:.1f} %")
        if share < bar:
            below.append(part)
    if below:
        print(f"below {bar:g} %: {', '.join(below)}", file=sys.stderr)
    return int(bool(below))


if __name__ == "__main__":
    sys.exit(main())
