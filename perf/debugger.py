"""How fast the debugger is, beside bare Python, the standard library's pdb, and pdb driven by pexpect, in one run.

    uv run python perf/debugger.py [--full] [--repeat N] [--json FILE]

Prints a table: the measure, ours, the bare figure, their ratio, what stdlib pdb takes (of a program: as a ratio too; of
a command: driven by pexpect), the bar, and whether it holds; exits 1 when a bar is missed. Usually this interpreter and
the newest one of DEBUG_GYM_TEST_PYTHONS are measured; `--full` measures all of them. Docker is measured when
DEBUG_GYM_TEST_IMAGE names an image with pytest.

Programs time their own hot function, so that starts do not count, in ten equal parts; bare and debugged runs take
turns, so that what else the machine does meets both. The least time of a part, by ten, is shown of each, since all
that disturbs adds to it. The least time of the flood of output is shown, too; of all else, medians. Where a bar of a
program, the flood, a restart or a command is not held at first, there are three times as many turns more, and all
count. stdlib pdb gets a fraction of the work, in one part, and its time is scaled.
"""

from __future__ import annotations

import os
import sys

from debugger_commands import command_rows
from debugger_programs import program_rows
from debugger_restarts import restart_rows
from debugger_rewinding import rewinding_rows
from debugger_sessions import version
from debugger_tracing import tracing_rows
from figures import arguments, finish, image


def main() -> int:
    """Measure, print, and say by the exit status whether all bars hold."""
    parser = arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="measure every interpreter of DEBUG_GYM_TEST_PYTHONS")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="turns")
    options = parser.parse_args()
    named = os.environ.get("DEBUG_GYM_TEST_PYTHONS", sys.executable).split(":")
    pythons = {version(python): python for python in [*named, sys.executable]}
    if not options.full:
        pythons = {number: pythons[number] for number in {version(sys.executable), max(pythons)}}
    measured = [python for number, python in sorted(pythons.items()) if number >= (3, 8)]
    rows = [*command_rows("local", "local", sys.executable)]
    if image():
        rows += command_rows("docker", {"docker": {"image": image()}}, "")
    rows += restart_rows(options.repeat)
    rows += rewinding_rows(options.repeat)
    rows += program_rows(measured, options.repeat)
    rows += tracing_rows(measured, options.repeat)
    return finish(rows, options)


if __name__ == "__main__":
    sys.exit(main())
