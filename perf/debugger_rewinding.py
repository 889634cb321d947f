"""What it takes to keep a stop, and to go back to it, beside getting there again by a restart."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from debugger_sessions import at_once, environment
from figures import NO_BAR, Row, check, median_ms, milliseconds

from debug_gym_core import ToolCall

PROGRAM = """\
held = [[n] for n in range({count})]
def f(turns):
    for turn in range(turns):
        held[turn] = [turn]
        last = turn
f(100000)
"""
SIZES = {"small": 1, "200 MB": 1_500_000}
"""How many lists a program holds, by what it comes to."""


def rewinding_rows(repeat: int) -> Iterator[Row]:
    """Stops that are kept and gone back to, through the whole of a step."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        for size, count in SIZES.items():
            (directory / "app.py").write_text(PROGRAM.format(count=count))
            took = {}
            for rewind in (False, True):
                with environment("local", directory, at_once(directory), rewind=rewind) as env:
                    entrypoint = "python app.py"

                    def ask(command: str) -> str:
                        return check(env, ToolCall("pdb", {"command": command, "entrypoint": entrypoint}))  # noqa: B023

                    ask("b app.py:5")
                    ask("c")
                    took[rewind] = median_ms(lambda: ask("c"), 4 * repeat)
                    if not rewind:
                        again = median_ms(lambda: ask("restart\nc"), repeat, warm=1)
                        continue
                    back = []
                    for _ in range(2 * repeat):
                        back.append(milliseconds(lambda: ask("back")))
                        ask("c")
                    yield Row(f"back to the stop before, {size}", sorted(back)[repeat], again, "ms", 100.0, "absolute")
            yield Row(f"continue to a stop that is kept, {size}", took[True], took[False], "ms", NO_BAR, "absolute")
