"""Programs that trace themselves: they see what they see without a debugger."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
from debugged_programs import dedent
from support import has, repeated

TARGET = """\
    import os, sys, trace

    def inner(n):
        m = n
        return m

    def target(n):
        a = inner(n)
        b = a + 1
        for one in range(2):
            b += one
        return b
"""

BY_HAND = """
    seen = []

    def tracer(frame, event, arg):
        if frame.f_code.co_filename.endswith("app.py"):
            seen.append((event, frame.f_lineno))
        return tracer

    def by_settrace():
        sys.settrace(tracer)
        x = target(1)
        sys.settrace(None)
        return seen

    def by_trace():
        found = trace.Trace(count=1, trace=0)
        found.runfunc(target, 2)
        return sorted(at[1:] + (count,) for at, count in found.results().counts.items() if at[0].endswith("app.py"))

    def by_monitoring():
        if sys.version_info < (3, 12):
            return None
        tools, lines = sys.monitoring, []
        tools.use_tool_id(1, "mine")
        tools.register_callback(1, tools.events.LINE, lambda code, line: lines.append(line))
        tools.set_local_events(1, target.__code__, tools.events.LINE)
        target(3)
        tools.free_tool_id(1)
        return lines

    for look in (by_settrace, by_trace, by_monitoring):
        print(look())
"""

BY_COVERAGE = """
    import coverage
    for core in ["ctrace", "pytrace"] + ["sysmon"] * (sys.version_info >= (3, 12)):
        os.environ["COVERAGE_CORE"] = core
        measured = coverage.Coverage(data_file=None, branch=True)
        measured.start()
        target(4)
        measured.stop()
        data = measured.get_data()
        print(core, data.lines(__file__), sorted(data.arcs(__file__)))
        target(5)
"""

COMMANDS = [
    ["b 9, n == 99", "c"],
    ["b 9, n", "c", "n", "n", "n", "n", "c"],
    ["b 8, n", "c", "s", "s", "s", "s", "s", "s", "c"],
    *repeated(
        "debugger",
        ["b 9", "c", "n", "n"],
        ["b 8", "c", "s", "s", "s", "s", "s"],
        ["b 11, n", "c", "c", "until 12", "n", "n"],
        ["b 4, n", "b 9", "c", "r", "n", "c", "u", "c"],
        ["b 9, n", "c", "c", "r", "c", "s"],
    ),
]


def printed(debug: Any, source: str, commands: list[str]) -> tuple[list[int], str]:
    """The lines at which commands stop, and what the program prints; none where it went on to the end."""
    program = debug("python app.py", dedent(TARGET + source))
    lines, answer = [], program.first
    for command in [*commands, *["c"] * 20]:
        if answer["t"] == "prompt":
            answer = program.do(command)
            lines += [answer["stop"]["line"]] if "stop" in answer else []
    assert answer["t"] == "exit"
    program.process.wait(20)
    program._drain()
    said = program.printed.decode().replace("\r\n", "\n")
    if program.hello["python"] < [3, 10]:  # what is compiled in has a line there, which none of the program's has
        said = re.sub(r"\('line', -1\), |\(-1, \d+\), ", "", said)
    return lines, said


def bare(python: str, debugged: Any) -> str:
    done = subprocess.run([python, "app.py"], cwd=debugged, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("commands", COMMANDS)
def test_what_a_program_traces_itself_with_sees_the_program_and_no_breakpoint(
    debug: Any, python: str, tmp_path: Any, commands: list[str]
) -> None:
    said = printed(debug, BY_HAND, commands)[1]
    assert said == bare(python, tmp_path)
    assert "('line', 9), ('line', 10)" in said


@pytest.mark.parametrize("commands", COMMANDS)
def test_coverage_measures_a_program_that_is_debugged(
    debug: Any, python: str, tmp_path: Any, commands: list[str]
) -> None:
    if not has(python, "coverage"):
        pytest.skip(f"needs coverage in {python}: pip install coverage")
    said = printed(debug, BY_COVERAGE, commands)[1]
    assert said == bare(python, tmp_path)
    assert said.startswith("ctrace [4, 5, 8, 9, 10, 11, 12] [")


def test_steps_go_on_where_a_program_traces_itself(debug: Any) -> None:
    assert printed(debug, BY_HAND, ["b 9, n", "c", "n", "n", "s", "until 12"])[0][:5] == [9, 10, 11, 10, 12]
