"""What pytest prints beside what a report of ours says better: its progress, and the failures in short once more."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PERCENT = r" *\[ *\d+%\]"
_PROGRESS = re.compile(rf"(\S+\.py )?[.FEsxXRu,]+{_PERCENT}")
_VERBOSE = re.compile(rf"\S+::.* (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b.*{_PERCENT}")
_SECTION = re.compile(r"=+ (.+?) =+")
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
    section, title = _START, ""
    for line in lines:
        text = line.rstrip("\r\n")
        if found := _SECTION.fullmatch(text):
            section = found[1]
            if section == _SUMMARY:
                title = line  # shown where something is left below it
                continue
        elif _is_repetition(text, section):
            continue
        elif section == _SUMMARY and text.startswith(("SKIPPED ", "XFAIL ", "XPASS ", "PASSED ")) and title:
            yield title
            title = ""
        yield line


def _is_repetition(text: str, section: str) -> bool:
    """Whether a line of a section says only what a report says too."""
    if section == _START:
        return bool(_PROGRESS.fullmatch(text) or _VERBOSE.fullmatch(text))
    return section == _SUMMARY and text.startswith(("FAILED ", "ERROR "))
