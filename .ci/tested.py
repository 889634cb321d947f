#!/usr/bin/env python3
"""Say what a test run covered and what not: tested.py REPORT PYTHONS.

REPORT is what the pytest plugin of CI wrote (it may be missing), PYTHONS what pythons.py printed. A test counts for a
sandbox or a Python version that its identifier names.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

MINORS = range(6, 15)
# "local" is a word of other things too.
BACKENDS = {
    "local": r"[\[-]local[\]-]|/local/tests/",
    "bubblewrap": "bubblewrap|bwrap",
    "docker": "docker",
}
RANK = ("failed", "skipped", "passed")


def read_outcomes(report: Path) -> tuple[str | None, dict[str, str]]:
    """Return the Python that ran the tests, and each test's outcome."""
    python: str | None = None
    outcomes: dict[str, str] = {}
    lines = report.read_text(encoding="utf-8").splitlines() if report.is_file() else []
    for line in map(json.loads, lines):
        if "python" in line:
            python = line["python"]
        elif RANK.index(line["outcome"]) <= RANK.index(outcomes.get(line["test"], "passed")):
            outcomes[line["test"]] = line["outcome"]
    return python, outcomes


def counted(outcomes: dict[str, str], pattern: str) -> str:
    """Return how the tests went whose identifier `pattern` matches, beginning with whether any was passed."""
    counts = Counter(outcome for test, outcome in outcomes.items() if re.search(pattern, test, re.IGNORECASE))
    if not counts:
        return "NOT TESTED: no test that names it ran"
    detail = ", ".join(f"{counts[outcome]} {outcome}" for outcome in reversed(RANK) if counts[outcome])
    return f"{'tested' if counts['passed'] else 'NOT TESTED'}: {detail}"


def main() -> int:
    """Print it."""
    suite, outcomes = read_outcomes(Path(sys.argv[1]))
    pythons = dict(line.split("\t") for line in Path(sys.argv[2]).read_text(encoding="utf-8").splitlines())
    print(f"{len(outcomes)} tests ran, on Python {suite}" if suite else "the tests did not run")
    print("Sandboxes:")
    for backend, pattern in BACKENDS.items():
        print(f"  {backend:<10} {counted(outcomes, pattern)}")
    print("Pythons in the sandbox:")
    for minor in MINORS:
        here = [f"{version} ({path})" for version, path in pythons.items() if version.startswith(f"3.{minor}.")]
        pattern = rf"(?<![\d.])3\.{minor}(?!\d)|py(thon)?_?3_?{minor}(?!\d)"
        state = counted(outcomes, pattern) if here else "NOT TESTED: no such interpreter on this machine"
        print(f"  3.{minor:<8} {state}{''.join(f'; {place}' for place in here)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
