#!/usr/bin/env python3
"""Check what a run of the README's command left: check_results.py all|none RUNS_DIRECTORY LIST_OF_OLD_RESULTS.

With `--noop-command`, read a command from standard input and print the one that runs the same with `noop_agent`.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

TASKS = 10


def noop_command(command: str) -> str:
    """Return the `debug-gym` part of a command, from the virtual environment, with `noop_agent`.

    Raises:
        LookupError: it runs no `debug-gym`, or not with `solution_agent`.
    """
    joined = re.sub(r"\\\n\s*", " ", command)
    match = re.search(r"(?:^|[\s/])debug-gym\s+(run\s[^\n;&|#]*)", joined)
    if match is None:
        raise LookupError("no 'debug-gym run' in the command")
    arguments, count = re.subn(r"\bsolution_agent\b", "noop_agent", match.group(1).strip())
    if count == 0:
        raise LookupError("no solution_agent in the command")
    return f".venv/bin/debug-gym {arguments}"


def faults(lines: list[dict[str, Any]], resolved: bool) -> list[str]:
    """Return what is wrong with a run's results when all its tasks should be resolved, or none."""
    found = [] if len(lines) == TASKS else [f"{len(lines)} results, expected {TASKS}"]
    if len({line["task"] for line in lines}) != len(lines):
        found.append("a task has two results")
    for line in lines:
        if line["resolved"] is not resolved or line["status"] != ("resolved" if resolved else "unresolved"):
            found.append(f"{line['task']}: status {line['status']}, resolved {line['resolved']}: {line.get('error')}")
        if line["grading"] != "clean":
            found.append(f"{line['task']}: grading {line['grading']}")
        if resolved and not line["tool_calls"].get("pdb", 0) > 0:
            found.append(f"{line['task']}: the debugger was not used")
    return found


def main() -> int:
    """Check, and say what was found."""
    if sys.argv[1:] == ["--noop-command"]:
        try:
            print(noop_command(sys.stdin.read()))
        except LookupError as error:
            print(f"README's command: {error}", file=sys.stderr)
            return 1
        return 0
    expected, runs, old = sys.argv[1] == "all", Path(sys.argv[2]), Path(sys.argv[3]).read_text().split("\n")
    new = [path for path in sorted(runs.glob("*/results.jsonl")) if str(path) not in old]
    if len(new) != 1:
        print(f"{len(new)} new runs in {runs.name}/, expected 1")
        return 1
    lines = [json.loads(line) for line in new[0].read_text(encoding="utf-8").splitlines()]
    problems = faults(lines, resolved=expected)
    for problem in problems:
        print(f"wrong: {problem}")
    pdb = sum(line["tool_calls"].get("pdb", 0) for line in lines)
    resolved = sum(line["resolved"] for line in lines)
    print(f"{resolved} of {len(lines)} resolved, {pdb} calls of pdb, in {new[0].parent.name}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
