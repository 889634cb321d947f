"""From a stop that was gone back to, a program does again what it did: programs of all sorts, at random stops."""

from __future__ import annotations

import re
from typing import Any

import pytest
from differential_programs import Program, programs
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from support import examples, version_of

pytestmark = pytest.mark.debugger

CASES = 80
ENDLESS = 3.0
"""Seconds after which a step has come to a loop that never ends, as some programs have."""

STEPS = ("s", "s", "n", "r", "c", "unt")


def brought(message: dict[str, Any]) -> Any:
    """What a command brought about, without what is another's each time."""
    kept = {key: value for key, value in message.items() if key not in ("breakpoints", "hello")}
    out = kept.get("out", "")
    place = re.search(r"^(?:--|> )", out, re.MULTILINE)  # behind what is said of going back
    kept["out"] = out[place.start() :] if place else out
    return re.sub(r"\b(?:0?x[0-9a-f]{6,}|\d{12,})", "an address", repr(kept))


def told(debuggee: Any, breakpoint: str, steps: list[str]) -> list[Any]:
    """What a program shows at its first stops, the one before its first line left out."""
    debuggee.do(breakpoint)
    found = []
    for step in steps:
        try:
            message = debuggee.do(step, timeout=ENDLESS)
        except TimeoutError:
            break
        if message["t"] != "prompt":
            break
        found.append(brought(message))
    return found


def test_a_program_does_again_what_it_did(python: str, debug: Any, back: Any, capsys: Any) -> None:
    compared = 0

    @settings(examples(CASES), phases=[Phase.generate], deadline=None)
    @given(
        programs(version_of(python)),
        st.lists(st.sampled_from(STEPS), min_size=4, max_size=14),
        st.lists(st.integers(0, 13), min_size=1, max_size=3),
        st.integers(0, 10),
    )
    def check(program: Program, steps: list[str], places: list[int], chosen: int) -> None:
        nonlocal compared
        breakpoint = f"b {program.functions[chosen % len(program.functions)]}"
        with debug("python main.py", program.files) as plain:
            steps = steps[: len(told(plain, breakpoint, steps))]  # from its end there is no way back
        with back("python main.py", program.files) as debuggee:
            stops = told(debuggee, breakpoint, steps)
            for at in [place % len(stops) for place in places if stops]:
                note(f"{breakpoint} {steps} back to {at}")
                message = debuggee.do(f"rewind {at + 2}")
                if message["failed"]:  # none waits where there were threads or children
                    continue
                assert brought(message) == stops[at]
                for after in range(at + 1, len(stops)):
                    assert brought(debuggee.do(steps[after])) == stops[after]
                    compared += 1

    check()
    with capsys.disabled():
        print(f" [{compared} stops again]", end="")
    assert compared
