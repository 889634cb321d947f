"""The grep tool: lines that match a pattern."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from debug_gym_core import ActionError, Observation, Settings, Tool, hookimpl
from debug_gym_core.names import some
from debug_gym_core.sandbox.grep import LONGEST_PATTERN, Glob, InvalidPattern, Query
from debug_gym_core.workspace.lines import escaped, show, shown

if TYPE_CHECKING:
    from debug_gym_core import Environment
    from debug_gym_core.sandbox.answers import FoundFile, FoundLine
    from debug_gym_core.sandbox.grep import Found

CHARACTERS = 16_000
"""Characters of matches shown at most."""

WIDTH = 300
"""Characters shown of one line at most."""

CONTEXT = 20
"""Lines shown before and behind a match at most."""

NAMED = 10
"""Files named at most in what is said about the rest."""


class GrepSettings(Settings):
    """Settings of the grep tool.

    Attributes:
        timeout: seconds that one search may take before it is stopped
    """

    timeout: float = Field(20.0, strict=True, gt=0, le=600)


class Grep(Tool):
    r"""Find the lines that match a pattern, in all files, those of a directory or one.

    Patterns are Python's regular expressions, looked for in each line by itself; with `regex=false` plain text. Matches
    come as `12:text` below the name of their file, lines around them as `11-text`. Line numbers are those of `view`.
    """

    name = "grep"
    examples = ({"pattern": r"def \w+_total\(", "path": "src", "glob": "*.py"},)
    Settings: ClassVar[type[Settings]] = GrepSettings
    settings: GrepSettings

    def use(
        self,
        env: Environment,
        pattern: str,
        path: str = ".",
        glob: str | None = None,
        regex: bool = True,
        case_sensitive: bool = True,
        context: int = 0,
        max_results: int = 100,
    ) -> Observation:
        """Find lines that match a pattern.

        Args:
            env: where the tool is used
            pattern: a Python regular expression, or plain text with regex=false
            path: the directory or file to search, relative to the repository's root; all below it is searched
            glob: search only files like this, as in .gitignore: `*.py` in any directory, `src/**/*.py`, `*.{py,toml}`;
                `!test_*` leaves files out
            regex: whether pattern is a regular expression
            case_sensitive: whether upper and lower case differ
            context: lines to show before and behind each match, at most 20
            max_results: matching lines to show at most
        """
        if not 0 <= context <= CONTEXT:
            raise ActionError(f"grep: context is {context}; it must be 0 to {CONTEXT} lines")
        if max_results < 1:
            raise ActionError(f"grep: max_results is {max_results}; it must be 1 or more")
        query = Query(
            _checked(pattern, regex),
            Glob.parse(glob) if glob else None,
            regex=regex,
            case_sensitive=case_sensitive,
            context=context,
            lines=min(max_results, CHARACTERS),
            characters=CHARACTERS,
            width=WIDTH,
            timeout=self.settings.timeout,
        )
        real = env.workspace.resolve(path)
        try:
            found = env.workspace.grep(query, real)
        except InvalidPattern as error:
            raise ActionError(_invalid(query.pattern, error)) from None
        return self._observation(env, _head(query, glob, real, found), found, max_results)

    def _observation(self, env: Environment, head: str, found: Found, max_results: int) -> Observation:
        """Put what was found into words, as much of it as there is room for."""
        text, matches = _laid_out(found.files, env.workspace.is_readonly)
        left = {file.path: file.count - len(matches.get(file.path, ())) for file in found.files if not file.binary}
        seen = sum(map(len, matches.values()))
        notes = [*_more(left, found.matching_lines - seen, max_results if seen >= max_results else None)]
        notes += self._notes(found)
        data = {
            "lines": found.matching_lines,
            "files": found.matching_files,
            "searched": found.searched,
            "matches": matches,
            "complete": seen == found.matching_lines and found.stopped is None,
        }
        parts = [head, *text, *([""] if text and notes else [])]
        parts += [f"[{note}]" for note in notes]
        return Observation(self.name, "\n".join(parts), data, error=found.stopped is not None)

    def _notes(self, found: Found) -> Iterator[str]:
        """What else there is to know about a search."""
        binary = [file.path for file in found.files if file.binary]
        if binary:
            yield f"binary files match, not shown: {_names(binary)}"
        if found.unreadable:
            yield f"{_count(found.unreadable, 'entry', 'entries')} could not be read"
        if found.cut_lines:
            lines = _count(found.cut_lines, "very long line was", "very long lines were")
            yield f"{lines} searched at the beginning only"
        if found.stopped:
            bound = f"{self.settings.timeout:g} s" if found.stopped == "time" else "taking too much memory"
            at = f" in {shown(found.at)}" if found.at else ""
            yield (
                f"the search was stopped after {bound}{at}; what is behind was not searched: make the pattern simpler "
                "(a repetition in a repetition, such as (a+)+, can take for ever), or narrow path or glob"
            )


def _checked(pattern: str, regex: bool) -> str:
    """The pattern, if it can be searched."""
    pattern = pattern.removesuffix("\n").removesuffix("\r")  # of a block in the text form
    if not pattern:
        raise ActionError("grep: the pattern is empty; listdir shows which files there are, view what is in one")
    if len(pattern) > LONGEST_PATTERN:
        raise ActionError(f"grep: the pattern has {len(pattern)} characters; more than {LONGEST_PATTERN} is too long")
    if "\n" in pattern and not (regex and re.match(r"\(\?[a-zA-Z]*x", pattern)):
        raise ActionError(
            "grep: the pattern has several lines, but lines are searched one by one; search for one of them"
        )
    return pattern


def _invalid(pattern: str, error: InvalidPattern) -> str:
    """What is wrong with a regular expression, where, and what to do."""
    position = error.position
    where = ""
    if position is not None:
        where = f" at character {position + 1}" + (f", after {_quoted(pattern[:position][-40:])}" if position else "")
    example = json.dumps({"name": "grep", "arguments": {"pattern": pattern, "regex": False}})
    return (
        f"grep: the pattern is not a valid regular expression: {error}{where}\n"
        "to search for these characters as they are: "
        + (example if len(pattern) <= 200 else "regex=false")
        + r"; or escape special ones, as in total\("
    )


def _head(query: Query, glob: str | None, real: str, found: Found) -> str:
    """How much was found, and where, in a line."""
    below = "" if real == "." else f" below {shown(real)}"
    is_file = found.searched == 1 and found.at == real
    if found.matching_files:
        lines = _count(found.matching_lines, "line matches", "lines match")
        return f"{lines} in {shown(real) if is_file else _count(found.matching_files, 'file', 'files') + below}"
    if found.stopped:
        return f"no line that matches {_quoted(query.pattern)} was found so far"
    if not found.searched:
        return f"no file{below} matches the glob {_quoted(glob)}" if glob else f"there are no files{below}"
    where = shown(real) if is_file else _count(found.searched, "file", "files") + below
    special = query.regex and re.search(r"[\\.^$*+?{}\[\]|()]", query.pattern)
    hint = "; regex=false would take the pattern as plain text" if special else ""
    return f"no line matches {_quoted(query.pattern)} in {where}{hint}"


def _laid_out(files: Sequence[FoundFile], is_readonly: Callable[[str], bool]) -> tuple[list[str], dict[str, list[int]]]:
    """The matches below the names of their files, and their numbers; as many as there is room for."""
    text: list[str] = []
    matches: dict[str, list[int]] = {}
    room = CHARACTERS
    for file in files:
        above = ["", shown(file.path) + (" (read-only)" if is_readonly(file.path) else "")]
        in_context = not all(line.matches for line in file.lines)
        last = None
        for line in file.lines:
            if in_context and last is not None and line.number != last + 1:
                above.append("--")
            row = f"{line.number}{':' if line.matches else '-'}{_cut(line)}"
            room -= sum(len(one) + 1 for one in (*above, row))
            if room < 0:
                return text, matches
            text += [*above, row]
            above, last = [], line.number
            if line.matches:
                matches.setdefault(file.path, []).append(line.number)
    return text, matches


def _cut(line: FoundLine) -> str:
    text = escaped(line.text)
    if line.before:
        text = f"[{line.before} characters ...] {text}"
    return f"{text} [... {line.behind} characters]" if line.behind else text


def _more(left: dict[str, int], missing: int, bound: int | None) -> Iterator[str]:
    """How many matching lines are not shown, where they are, and how to see them.

    Args:
        left: how many in each file, as far as that is known
        missing: how many in all
        bound: max_results, if that is why
    """
    if missing > 0:
        counts = [f"{shown(path)} {count}" for path, count in left.items() if count]
        files = ", ".join(counts[:NAMED]) + (", ..." if len(counts) > NAMED else "")
        more = f", or max_results={min(bound + missing, 10 * bound)}" if bound is not None else ""
        yield f"{_count(missing, 'more line matches', 'more lines match')}: {files}; narrow pattern, path or glob{more}"


def _names(paths: Sequence[str]) -> str:
    return some(list(map(shown, paths)), NAMED)


def _quoted(text: str) -> str:
    """What the agent wrote, on one line and not too long."""
    plain = show(text.encode("utf-8", "backslashreplace"))[0]
    return f"'{plain}'" if len(plain) <= 100 else f"'{plain[:97]}...'"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


@hookimpl
def debug_gym_register_tools() -> Sequence[type[Tool]]:
    """Register the tool."""
    return [Grep]
