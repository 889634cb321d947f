"""Programs and modules that go before a command, or run another program: what they are called, how they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Wrapper:
    """A program that goes before a command.

    Attributes:
        valued: its options that take the next word
        words: how many words of its own come before the command, options apart
        note: what the program lacks without it
    """

    valued: frozenset[str] = frozenset()
    words: int = 0
    note: str = ""


_PLAIN = Wrapper()
_TRACES = "needs the trace function that the debugger uses"
WRAPPERS: Mapping[tuple[str, ...], Wrapper] = {
    ("timeout",): Wrapper(frozenset({"-k", "-s", "--kill-after", "--signal"}), words=1),
    ("nice",): Wrapper(frozenset({"-n", "--adjustment"})),
    ("ionice",): Wrapper(frozenset({"-c", "-n", "--class", "--classdata"})),
    ("time",): Wrapper(frozenset({"-f", "-o", "--format", "--output"})),
    ("stdbuf",): Wrapper(frozenset({"-i", "-o", "-e", "--input", "--output", "--error"})),
    ("xvfb-run",): Wrapper(
        frozenset({"-n", "-e", "-f", "-p", "-s", "-w", "--server-num", "--error-file", "--server-args", "--wait"}),
        note="starts a display, which the program has not got here",
    ),
    ("nohup",): _PLAIN,
    ("exec",): _PLAIN,
    ("command",): _PLAIN,
    ("setsid",): _PLAIN,
    ("unbuffer",): _PLAIN,
    ("poetry", "run"): _PLAIN,
    ("pdm", "run"): Wrapper(frozenset({"-p", "--project"})),
    ("pipenv", "run"): _PLAIN,
    ("hatch", "run"): _PLAIN,
    ("rye", "run"): _PLAIN,
    ("pixi", "run"): Wrapper(frozenset({"-e", "--environment"})),
    ("coverage", "run"): Wrapper(
        frozenset(
            {"--concurrency", "--context", "--data-file", "--debug", "--include", "--omit", "--rcfile", "--source"}
        ),
        note=_TRACES,
    ),
}
"""Programs by their first words."""

TRACERS = {
    "coverage": WRAPPERS["coverage", "run"],
    "cProfile": Wrapper(frozenset({"-o", "-s"}), note=_TRACES),
    "ipdb": Wrapper(frozenset({"-c"})),
    "pdb": Wrapper(frozenset({"-c"})),
    "profile": Wrapper(frozenset({"-o", "-s"}), note=_TRACES),
}
"""Modules that run another program: `python -m NAME [run] [options] (-m module | file.py) [arguments]`."""
