"""Commands that set breakpoints, and change them."""

import bdb
import linecache
import os
import re

from .conversation import documented
from .locations import IN_IGNORED, NotUnderstood, check_condition
from .looking import Looking
from .modules import loaded
from .places import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Tuple


@documented
class Breaking(Looking):
    """Breakpoints, by commands."""

    def do_break(self, arg: str, temporary: "Any" = 0) -> "Any":  # noqa: D102
        places: "List[Tuple[str, Optional[str]]]" = [(arg, None)]
        if arg:
            try:
                places = self.locations.read(arg)
            except NotUnderstood as error:
                self.error(str(error))
                return
        elif not any(bdb.Breakpoint.bpbynumber):
            self.message("There are no breakpoints.")
            return
        for place, function in places:
            self._break_at(place, function, temporary)

    do_b = do_break

    def _break_at(self, arg: str, function: "Optional[str]", temporary: "Any") -> None:
        known = {one.number for one in bdb.Breakpoint.bpbynumber if one}
        super().do_break(arg, temporary)
        self._say_whose_line(arg.partition(",")[0].strip())
        for one in [one for one in bdb.Breakpoint.bpbynumber if one and one.number not in known]:
            one.funcname = one.funcname or function
            others = [str(other.number) for other in self.get_breaks(one.file, one.line) if other is not one]
            if others:
                first = ", ".join(others[:-1])
                which = "are breakpoints {} and".format(first) if first else "is breakpoint"
                self.message("note: at this line there {} {} too".format(which, others[-1]))

    def do_tbreak(self, arg: str) -> "Any":  # noqa: D102
        self.do_break(arg, 1)

    def _say_whose_line(self, line: str) -> None:
        """Of a line that was given without a file, say when the file is none of the repository's, and name one that is.

        Args:
            line: its number; anything else has a file
        """
        here = self.defaultFile()
        if not line.isdigit() or here[:1] == "<" or self.files.is_own(here):
            return
        stack = [frame.f_code.co_filename for frame, _ in self.stack[: self.curindex + 1]]
        own = [self.files.path(one) for one in stack if self.files.is_own(one)]
        more = "; b {}:{} is of the repository".format(own[-1], line) if own else ""
        text = "hint: this is line {} of {}, where the program is stopped{}"
        self.message(text.format(line, self.files.path(here), more))

    def checkline(self, filename: str, lineno: int) -> int:
        """Check whether a line can have a breakpoint, and say why not.

        Returns:
            the line that it stands for: the first one of its statement, or the next with code; 0: there is none
        """
        if self.files.is_ignored(filename):  # by a line of where the program is stopped, or a function's name
            self.error(IN_IGNORED.format(self.files.path(filename)))
            return 0
        line = self._line_with_code(filename, lineno)
        statements = self.sources.statements(self.canonic(filename)) if line else None
        return statements.start(line) if statements is not None else line

    def _line_with_code(self, filename: str, lineno: int) -> int:
        """The line, or the next one of its function if it has no code; 0: said why there is none."""
        text = linecache.getline(filename, lineno).strip()
        name = self.files.path(filename)
        statements = self.sources.statements(self.canonic(filename))
        docstrings = statements.docstrings if statements is not None else set()
        documents = lineno in docstrings
        first = statements.start(lineno) if statements is not None and not documents else lineno
        # What is inside a statement, be it blank, a comment or the end of a string, stands for its first line.
        empty = documents or (first == lineno and (not text or text[:1] == "#"))
        if statements is None:
            return self._checked(filename, lineno)
        if not empty and first in statements.places and first not in statements.doubtful:
            return first
        linecache.checkcache(filename)
        lines = linecache.getlines(filename)
        try:
            source = Source(filename)
            if not empty and statements.lines(lineno).intersection(source.lines_with_code()):
                return self._checked(filename, first)
            near = source.near(lineno, docstrings)
            after = source.line_after(lineno) if lineno <= len(lines) else None
        except (OSError, SyntaxError, ValueError, RecursionError):
            return self._checked(filename, lineno)
        if after is not None:
            what = "is of a docstring" if documents else "is a comment" if text else "is blank"
            what = what if empty else "has no code of its own"
            self.message("Line {} {}: the next line with code is taken.".format(lineno, what))
            return self._checked(filename, after)
        if lineno > len(lines):
            self.error("End of file: {} has {} lines".format(name, len(lines)))
        else:
            self.error("Docstring" if documents else "Blank or comment" if empty else "There is no code at this line")
        shown = ["{} `{}`".format(one, source.lines[one - 1].strip()[:60]) for one in near]
        if shown:
            self.message("hint: near it there is code at " + " and ".join(shown))
        return 0

    def _checked(self, filename: str, lineno: int) -> int:
        """The line if pdb thinks that it has code; 0: said why not.

        Source that is in no file, as of a zipped module, has its loader; pdb would ask that of the frame at hand, by
        the name by which the breakpoint is then set.
        """
        name = self.canonic(filename)
        if not os.path.exists(name):
            for file, attributes in loaded():
                if self.canonic(file) == name:
                    linecache.lazycache(name, attributes)
        line = super().checkline(name, lineno)
        self._failed = self._failed or not line
        return line

    def do_clear(self, arg: str) -> "Any":  # noqa: D102
        if arg.strip() in ("all", "*"):
            arg = ""
        elif ":" not in arg:
            arg = self._numbers(arg)
        if not arg:
            found = [one for one in bdb.Breakpoint.bpbynumber if one]
            self.clear_all_breaks()
            for one in found:
                self.message("Deleted {}".format(one))
            return None
        name, colon, line = arg.rpartition(":")
        if colon:
            arg = "{}:{}".format(self.lookupmodule(name.strip()) or name, line)
        return super().do_clear(arg)

    do_cl = do_clear

    def do_enable(self, arg: str) -> "Any":  # noqa: D102
        return self._switch(arg, super().do_enable)

    def do_disable(self, arg: str) -> "Any":  # noqa: D102
        return self._switch(arg, super().do_disable)

    def _switch(self, arg: str, do: "Callable[[str], Any]") -> "Any":
        numbers = self._numbers(arg or "all")
        if not numbers:
            self.error("There are no breakpoints")
            return None
        return do(numbers)

    def _numbers(self, arg: str) -> str:
        """Breakpoints by number, with `all`, ranges and places replaced by the numbers that they stand for."""
        found: "List[str]" = []
        existing = [one for one in bdb.Breakpoint.bpbynumber if one]
        for word in arg.replace(",", " ").split():
            bounds = re.match(r"(\d+)-(\d+)\Z", word)
            file, _, line = word.rpartition(":")
            if word in ("all", "*"):
                inside = existing
            elif bounds:
                first, last = map(int, bounds.groups())
                inside = [one for one in existing if first <= one.number <= last]
            elif file and line.isdigit():
                path = self.canonic(self.lookupmodule(file) or file)
                inside = [one for one in existing if one.file == path and one.line == int(line)]
            else:
                inside = []
            found += [str(one.number) for one in inside] or ([word] if word not in ("all", "*") else [])
        return " ".join(found)

    def do_condition(self, arg: str) -> "Any":  # noqa: D102
        number, _, condition = arg.strip().partition(" ")
        number = number.rstrip(",")
        condition = re.sub(r"\A(?:if\b|,)\s*", "", condition.strip())
        if condition and number.isdigit():
            try:
                check_condition(condition)
            except NotUnderstood as error:
                self.error(str(error))
                return None
        return super().do_condition("{} {}".format(number, condition).strip())

    def do_ignore(self, arg: str) -> "Any":  # noqa: D102
        words = arg.replace(",", " ").split()
        if len(words) == 1:
            self.error("ignore takes a breakpoint's number and how often it is passed, as ignore 1 5")
            return None
        if len(words) > 1 and not words[1].isdigit():
            self.error("{} is no count; as in ignore 1 5".format(words[1]))
            return None
        result = super().do_ignore(" ".join(words))
        if words and words[0].isdigit() and not self._failed:
            one = bdb.Breakpoint.bpbynumber[int(words[0])]
            assert one is not None
            one.given = one.ignore  # type: ignore[attr-defined]
        return result

    def do_commands(self, arg: str) -> "Any":  # noqa: D102
        if not arg:
            existing = [one.number for one in bdb.Breakpoint.bpbynumber if one]
            if not existing:
                self.error("There are no breakpoints")
                return None
            arg = str(existing[-1])
        if not self._rest:
            self.error("write the commands below it, in the same call, and `end` after them")
            return None
        try:
            if arg.strip().isdigit():
                self.get_bpbynumber(int(arg))
        except ValueError as error:  # up to Python 3.10, pdb would keep them for a breakpoint to come
            self.error("cannot set commands: {}".format(error))
            return None
        self._feeding = "end\n"
        self._last_fed = ""
        try:
            return super().do_commands(arg)
        finally:
            self._feeding = None
            ended = self._last_fed.strip() in ("", "end")
            if not ended and self._rest and self._rest[0].strip() == "end":  # pdb ends at a command that resumes
                self._feed()
