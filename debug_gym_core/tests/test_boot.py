"""What is told of an interpreter that ended before it debugged anything."""

from __future__ import annotations

import pytest

from debug_gym_core.debugging.boot import why_ended

OURS = """\
Traceback (most recent call last):
  File "<string>", line 60, in <module>
  File "<debug-gym>", line 41, in main
    program = make_program()
              ^^^^^^^^^^^^^^
  File "<frozen importlib._bootstrap_external>", line 1257, in _get_parent_path
"""
THEIRS = """\
  File "/testbed/app.py", line 3, in run
    go()
"""


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (OURS + "KeyError: 'pkg'", "KeyError: 'pkg'"),
        (f"warned\n{OURS}{THEIRS}KeyError: 1\n", f"warned\nTraceback (most recent call last):\n{THEIRS}KeyError: 1"),
        (f"{'x' * 600}", "x" * 500),
        ("", "it printed nothing"),
    ],
)
def test_why_an_interpreter_ended_is_told_without_our_frames(printed: str, told: str) -> None:
    assert why_ended(printed) == f"the interpreter ended: {told}"
