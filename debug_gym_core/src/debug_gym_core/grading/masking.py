"""What pytest and unittest print about themselves, made equal from run to run.

Dropped: pytest's header, and in tracebacks the frames of what runs it here. Masked: durations, and in pytest's failure
reports (not in what the program printed) the addresses of objects, the numbers of pytest's temporary directories and
the names that `tempfile` draws: `tmp` and eight of `a-z0-9_`, which stand in an absolute path outside of the
repository. Once met so they are masked without their place as well, but for lines of source. What only looks like one,
as it was written, can be told by the repository's files alone (`written_names`).

The tested code prints what it likes, on lines of any length: the steps taken here grow with the text, not faster.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from debug_gym_core.grading.runner.describe import without_addresses
from debug_gym_core.sandbox.terminal import ROOT

WIDTH = 80

_PLATFORM = re.compile(r"platform \S+ -- Python \d[^ ]*, pytest-\d")
_HEADER = re.compile(
    r"(cachedir|rootdir|configfile|testpaths|plugins|inifile|metadata|asyncio)\b.*[:=]|hypothesis profile\b"
)
_OUTCOME = r"\d+ (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun|subtests \w+)"
_COUNTS = re.compile(rf"{_OUTCOME}(?:, {_OUTCOME})*|no tests ran|no tests collected.*")
_COLLECTED = re.compile(r" tests? collected")
_TIME = re.compile(r"\d+\.\d+(?:s(?: \(\d+:\d\d:\d\d\))?| seconds)")
_UNITTEST = re.compile(r"(Ran \d+ tests? in )\d+\.\d+s")
_PARTED = re.compile(r"_ _ _[ _]*")
_OURS = re.compile(r' +File "<debug-gym>", line \d+')
_NAMES = re.compile(r"[\w.+-]")
_TEMPORARY = re.compile(r"/pytest-of-[^/\s]+/pytest-\d+")
_PATH = re.compile(r"(?<![\w.+/-])/[\w.+/-]+")
_INSIDE = re.compile(rf"{ROOT}(?![\w.+-])")
DRAWN = re.compile(r"\btmp[a-z0-9_]{8}\b")
"""What has the form of a name that `tempfile` draws."""


class DrawnNames:
    """Names that `tempfile` drew in one run of tests, numbered as they are met, so that two of them stay two."""

    def __init__(self, written: Collection[str] = ()) -> None:
        """Know none.

        Args:
            written: names that are left as they are: they were not drawn
        """
        self._written = written
        self._shown: dict[str, str] = {}

    @property
    def met(self) -> tuple[str, ...]:
        """Those that were met, in this order."""
        return tuple(self._shown)

    def mask(self, text: str, *, source: bool = False) -> str:
        """Show the names of temporary files as numbers, alone too once their place was seen.

        Args:
            text: of the run, after what came before it in it
            source: whether it may be a line of source, in which a name that stands alone is no file's
        """
        text = _PATH.sub(self._in_path, text)
        if source or not self._shown:
            return text
        return DRAWN.sub(lambda found: self._shown.get(found[0], found[0]), text)

    def _in_path(self, found: re.Match[str]) -> str:
        path = found[0]
        return path if _INSIDE.match(path) else DRAWN.sub(lambda name: self._numbered(name, path), path)

    def _numbered(self, found: re.Match[str], path: str) -> str:
        name = found[0]
        if path[found.start() - 1] != "/" or name in self._written:
            return name
        return self._shown.setdefault(name, f"tmp{len(self._shown) + 1:08}")


def mask(output: str, names: DrawnNames | None = None) -> str:
    """Make the output of a test run equal from run to run.

    Args:
        output: what it printed
        names: those met in what else is known of the run

    Returns:
        the output; what the tests and the program printed is as it was
    """
    lines = [line for line in output.splitlines(keepends=True) if not _OURS.match(line)]
    return "".join(_lines(lines, names or DrawnNames()))


def mask_temporary(text: str) -> str:
    """Give pytest's temporary directories the same name on every machine and in every run.

    Args:
        text: any text
    """
    parts, done = [], 0
    for found in _TEMPORARY.finditer(text):
        parts += [text[done : _first_directory(text, done, found.start())], "/tmp/pytest-of-user/pytest-0"]
        done = found.end()
    return "".join((*parts, text[done:]))


def _first_directory(text: str, start: int, end: int) -> int:
    """Where the path begins whose next name begins at `end`, not before `start`."""
    while True:
        at = end
        while at > start and _NAMES.match(text[at - 1]):
            at -= 1
        if at in (start, end) or text[at - 1] != "/":
            return end
        end = at - 1


def section(line: str) -> str | None:
    """The title of a section of pytest's output, of the line that begins it; None: it begins none.

    Args:
        line: without its end
    """
    inner = line.strip("=")
    ruled = line[:1] == line[-1:] == "=" and inner[:1] == inner[-1:] == " "
    return inner[1:-1] if ruled and len(inner) > 2 else None


def _without_time(line: str) -> str | None:
    """What a line says that sums up a run, its time masked; None: it sums up none."""
    inner = line.strip("=")
    if line.startswith("=") != inner.startswith(" ") or line.endswith("=") != inner.endswith(" "):
        return None
    said, _, time = inner.strip(" ").rpartition(" in ")
    counted = _COUNTS.fullmatch(said) or (said[:1].isdigit() and _COLLECTED.search(said))
    return f"{said} in <time>" if counted and _TIME.fullmatch(time) else None


def _begins_output(line: str) -> bool:
    """Whether what a test printed comes next."""
    inner = line.strip("-")
    ruled = line[:1] == line[-1:] == "-"
    return ruled and inner.startswith(" Captured ") and inner.endswith(" ") and len(inner) > len(" Captured ")


def _begins_test(line: str) -> bool:
    """Whether a failure's report comes next, or another part of it."""
    inner = line.strip("_")
    ruled = line.startswith("___") and line.endswith("___") and inner[:1] == inner[-1:] == " "
    return (ruled and len(inner) > 1) or bool(_PARTED.fullmatch(line))


def _lines(lines: list[str], names: DrawnNames) -> Iterator[str]:
    header = False
    where = ""
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
        if summary := _without_time(text):
            yield (_ruled(summary) if text.startswith("=") else summary) + end
            continue
        if ran := _UNITTEST.fullmatch(text):
            yield f"{ran[1]}<time>{end}"
            continue
        if title := section(text):
            where, captured = title, False
        elif _begins_output(text):
            captured = True
        elif _begins_test(text):
            where, captured = where or "FAILURES", False  # what says so may be cut off
        if where.startswith("slowest") and not title:
            continue  # Which tests are slow, and how slow, differs from run to run.
        if where in ("FAILURES", "ERRORS", "short test summary info", "warnings summary") and not captured:
            text = names.mask(mask_temporary(without_addresses(text)), source=text.startswith((" ", ">")))
        yield text + end


def _ruled(text: str) -> str:
    """A line of pytest's: a text between rulers, as wide as the terminal that the sandbox's commands see."""
    fill = max(1, (WIDTH - len(text) - 2) // 2)
    line = f"{'=' * fill} {text} {'=' * fill}"
    return line + "=" * (len(line) + 1 <= WIDTH)
