"""What pytest and unittest print about themselves, made equal from run to run.

Dropped: pytest's header. Masked: durations, and in pytest's failure reports (not in what the program printed) the
addresses of objects and the numbers of pytest's temporary directories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

WIDTH = 80

_PLATFORM = re.compile(r"platform \S+ -- Python \d[^ ]*, pytest-\d")
_HEADER = re.compile(
    r"(cachedir|rootdir|configfile|testpaths|plugins|inifile|hypothesis profile|metadata|asyncio)\b.*[:=]"
)
_OUTCOME = r"\d+ (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun|subtests \w+)"
_SUMMARY = re.compile(
    rf"(=+ )?((?:{_OUTCOME}(?:, {_OUTCOME})*|no tests ran|no tests collected.*|\d+.* tests? collected.*) in )"
    r"\d+\.\d+s(?: \(\d+:\d\d:\d\d\))?( =+)?"
)
_UNITTEST = re.compile(r"(Ran \d+ tests? in )\d+\.\d+s")
_SECTION = re.compile(r"=+ (.+?) =+")
_CAPTURED = re.compile(r"-+ Captured .* -+")
_TITLE = re.compile(r"_{3,} .* _{3,}|_ _ _[ _]*")
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]{4,16}\b")
_TEMPORARY = re.compile(r"(?:/[\w.+-]+)*/pytest-of-[^/\s]+/pytest-\d+")


def mask(output: str) -> str:
    """Make the output of a test run equal from run to run.

    Args:
        output: what it printed

    Returns:
        the output; what the tests and the program printed is as it was
    """
    return "".join(_lines(output.splitlines(keepends=True)))


def mask_temporary(text: str) -> str:
    """Give pytest's temporary directories the same name on every machine and in every run.

    Args:
        text: any text
    """
    return _TEMPORARY.sub("/tmp/pytest-of-user/pytest-0", text)


def _lines(lines: list[str]) -> Iterator[str]:
    header = False
    section = ""
    captured = False
    for line in lines:
        text = line.rstrip("\r\n")
        end = line[len(text) :]
        if _PLATFORM.match(text):
            header = True
            continue
        header = header and bool(_HEADER.match(text))
        if header:
            continue
        if summary := _SUMMARY.fullmatch(text):
            yield (_ruled(f"{summary[2]}<time>") if summary[1] else f"{summary[2]}<time>") + end
            continue
        if ran := _UNITTEST.fullmatch(text):
            yield f"{ran[1]}<time>{end}"
            continue
        if found := _SECTION.fullmatch(text):
            section, captured = found[1], False
        elif _CAPTURED.fullmatch(text):
            captured = True
        elif _TITLE.fullmatch(text):
            captured = False
        if section.startswith("slowest") and not found:
            continue  # Which tests are slow, and how slow, differs from run to run.
        if section in ("FAILURES", "ERRORS", "short test summary info", "warnings summary") and not captured:
            text = mask_temporary(_ADDRESS.sub("", text))
        yield text + end


def _ruled(text: str) -> str:
    """A line of pytest's: a text between rulers, as wide as the terminal that the sandbox's commands see."""
    fill = max(1, (WIDTH - len(text) - 2) // 2)
    line = f"{'=' * fill} {text} {'=' * fill}"
    return line + "=" * (len(line) + 1 <= WIDTH)
