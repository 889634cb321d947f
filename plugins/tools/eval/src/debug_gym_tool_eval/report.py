"""What pytest prints beside what a report of ours says better: its progress, and the failures in short once more."""

from __future__ import annotations

import re
from collections.abc import Iterator

from debug_gym_core.grading.masking import section

_PERCENT = re.compile(r"\[ *\d+%\]")
_MARKS = re.compile(r"[.FEsxXRu,]+")
_OUTCOMES = frozenset(("PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL", "XPASS"))
_START = "test session starts"
_SUMMARY = "short test summary info"


def without_repetitions(output: str) -> str:
    """Leave out of pytest's output its progress, and the lines of its summary that name what failed.

    What tests and programs printed is left as it is: progress stands before the first section, and each line of it ends
    with how many per cent are done.

    Args:
        output: what pytest printed
    """
    return "".join(_kept(output.splitlines(keepends=True)))


def _kept(lines: list[str]) -> Iterator[str]:
    where, title = _START, ""
    for line in lines:
        text = line.rstrip("\r\n")
        if found := section(text):
            where = found
            if where == _SUMMARY:
                title = line  # shown where something is left below it
                continue
        elif _is_repetition(text, where):
            continue
        elif where == _SUMMARY and text.startswith(("SKIPPED ", "XFAIL ", "XPASS ", "PASSED ")) and title:
            yield title
            title = ""
        yield line


def _is_repetition(text: str, where: str) -> bool:
    """Whether a line of a section says only what a report says too."""
    if where == _START:
        return _is_progress(text)
    return where == _SUMMARY and text.startswith(("FAILED ", "ERROR "))


def _is_progress(text: str) -> bool:
    """Whether a line says how far a run is: marks, or with `-v` a test and its outcome; then per cent."""
    said, bracket, percent = text.rpartition("[")
    words = said.split()
    if not words or not said.startswith(words[0]) or not _PERCENT.fullmatch(bracket + percent):
        return False
    verbose = "::" in words[0] and not _OUTCOMES.isdisjoint(words[1:])
    marks = _MARKS.fullmatch(words[-1]) and (len(words) == 1 or (len(words) == 2 and words[0].endswith(".py")))
    return verbose or bool(marks)
