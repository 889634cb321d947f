from __future__ import annotations

import pytest

from debug_gym_core.sandbox.stacks import readable_stack, split_stack

THREAD = """\
Thread 0x00007f7014a59b80 [pool] (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 5 in wait
  File "/testbed/.venv/lib/python3.11/site-packages/pool.py", line 5 in run

"""
CURRENT = """\
Current thread 0x00007f7014a59b80 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 5 in wait
  File "/testbed/app.py", line 9 in wait
  File "/usr/lib/python3.11/unittest/main.py", line 2 in run
  File "<debug-gym>", line 52 in main
  File "<string>", line 49 in <module>
"""


def test_stacks_are_taken_out_of_what_was_printed() -> None:
    output, stack = split_stack(f"..{THREAD}{CURRENT}1 failed\n")
    assert output == "..1 failed\n"
    assert stack.splitlines() == [
        "thread (most recent call first):",
        '  File "/usr/lib/python3.11/threading.py", line 5 in wait',
        '  File "/testbed/.venv/lib/python3.11/site-packages/pool.py", line 5 in run',
        "thread (most recent call first):",
        '  File "/usr/lib/python3.11/threading.py", line 5 in wait',
        '  File "/testbed/app.py", line 9 in wait',
        "  (1 frames that called these)",
    ]


def test_what_the_program_printed_the_same_way_stays() -> None:
    assert split_stack("no stack\n") == ("no stack\n", "")
    printed = f"{CURRENT}this was mine\n"
    output, stack = split_stack(printed + CURRENT)
    assert output == printed
    assert stack.count("thread") == 2  # the title, and threading.py


def test_a_stack_is_readable_without_the_frames_of_ours() -> None:
    assert "debug-gym" not in readable_stack(CURRENT) and "<string>" not in readable_stack(CURRENT)


def test_frames_of_a_recursion_are_counted() -> None:
    frame = '  File "/testbed/app.py", line 9 in dive'
    assert readable_stack(
        "\n".join([frame] * 100 + ['  File "/testbed/app.py", line 12 in main', "", ""])
    ).splitlines() == [
        'File "/testbed/app.py", line 9 in dive (100 times)',
        '  File "/testbed/app.py", line 12 in main',
    ]


def test_frames_of_a_recursion_through_several_functions_are_counted() -> None:
    frames = ['  File "/testbed/app.py", line 9 in even', '  File "/testbed/app.py", line 12 in odd']
    outer = '  File "/testbed/app.py", line 15 in main'
    title = "Current thread 0x00007f7014a59b80 (most recent call first):"
    _, stack = split_stack("\n".join([title, *frames * 50, outer, ""]))
    assert stack.splitlines()[1:] == [*frames, "  (these 2 frames 50 times)", outer]
    assert split_stack("\n".join([title, *frames * 2, outer, ""]))[1].splitlines()[1:] == [*frames * 2, outer]


@pytest.mark.parametrize(
    "piece", ["a", "Thread 0x", "Thread 0x1 ", "(most recent call first):", "Current thread 0x1 ("]
)
def test_a_line_of_any_length_is_read_at_once(piece: str) -> None:
    output = "Thread 0x" + piece * (1_000_000 // len(piece))
    assert split_stack(output) == (output, "")  # which took seconds
