"""Finding lines in files."""

import os
import signal
import stat

from .declared import declaration, is_python, line_codec_of, shifts
from .frames import encode, to_text
from .matching import PathPatterns, any_of, decoded, ignored, kinds, required
from .tree import LONGEST_PATH, Outside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .frames import Exchange
    from .tree import Tree

PIECE = 1 << 20  # bytes of a file that are searched at once
LONGEST = 1 << 24  # bytes of a line that are searched
SEARCH_MEMORY = 1 << 30  # bytes of address space of a search: what backtracking remembers is not little
TOLD_FILES = 1000  # files with matches that are told one by one


class TimeUp(Exception):
    """The time of a search is over."""


class Search:
    """Finds lines in the files below a path.

    It runs in a process of its own, which can be killed: a regular expression may take for ever, or all memory.
    """

    def __init__(self, tree: "Tree", host: "Exchange", request: "dict[str, Any]") -> None:
        self.tree = tree
        self.host = host
        self.request = request
        self.context = request["context"]
        self.lines_left = request["lines"]
        self.characters_left = request["characters"]
        self.files = self.matching_files = self.matching_lines = self.unreadable = self.cut_lines = 0
        self.path = ""
        self.prefix = b""
        self.matching = self.late = False

    def run(self) -> "dict[str, Any]":
        """Send what each file has, return the sums."""
        stopped = None
        self._bound()
        try:
            invalid = self._compile()
            if invalid is not None:
                return invalid
            self._search()
        except TimeUp:
            stopped = "time"
        except MemoryError:
            stopped = "memory"
        return {
            "files": self.files,
            "matching_files": self.matching_files,
            "matching_lines": self.matching_lines,
            "unreadable": self.unreadable,
            "cut_lines": self.cut_lines,
            "stopped": stopped,
            "at": self.path,
        }

    def _bound(self) -> None:
        """Bound time and memory.

        Matching looks for signals from time to time, so this ends nearly all searches, and they can tell where they
        were; the supervisor kills the others.
        """
        import resource

        signal.signal(signal.SIGALRM, self._on_alarm)
        signal.setitimer(signal.ITIMER_REAL, self.request["timeout"])
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        if soft == resource.RLIM_INFINITY or soft > SEARCH_MEMORY:
            resource.setrlimit(resource.RLIMIT_AS, (SEARCH_MEMORY, hard))

    def _on_alarm(self, _number: int, _frame: object) -> None:
        self.late = True
        if self.matching:  # else half a frame may have been sent
            raise TimeUp()

    def _compile(self) -> "dict[str, Any] | None":
        """Understand the request; returns what is wrong with its pattern."""
        import re
        import warnings

        warnings.simplefilter("ignore")  # on a pattern's style
        pattern, is_regex = self.request["pattern"], self.request["regex"]
        flags = 0 if self.request["case_sensitive"] else re.IGNORECASE
        self.matching = True
        try:
            self.find = re.compile(pattern if is_regex else re.escape(pattern), flags).search
        except re.error as error:
            return {"invalid": error.msg, "position": error.pos}
        except (OverflowError, RecursionError, ValueError) as error:
            return {"invalid": str(error), "position": None}
        finally:
            self.matching = False
        needle = required(pattern) if is_regex else pattern
        self.folded = bool(flags)
        try:  # other characters may be other bytes in another encoding
            self.needle = (needle.lower() if self.folded else needle).encode("ascii")
        except UnicodeEncodeError:
            self.needle = b""
        self.globs = any_of(self.request["globs"])
        self.outside = PathPatterns(self.request["ignored"]["outside"])
        self.ignore_files = {name: PathPatterns(lines) for name, lines in self.request["ignored"]["files"].items()}
        return None

    # -- which files

    def _search(self) -> None:
        tree = self.tree
        top = tree.real(self.request)
        if not tree.holds(top):
            raise Outside()
        todo = [top]
        while todo:
            real = todo.pop()
            try:
                directory = tree.open_directory(real, create=False)
            except OSError as error:
                if real != top:  # gone since, or not readable
                    self.unreadable += 1
                    continue
                if not isinstance(error, NotADirectoryError):
                    raise
                directory = tree.open_directory(os.path.dirname(top), create=False)
                try:
                    self._file(directory, os.path.basename(top), to_text(os.path.relpath(top, tree.root)))
                finally:
                    os.close(directory)
                return
            try:
                prefix = b"" if real == tree.root else os.path.relpath(real, tree.root) + b"/"
                self.prefix = prefix if real == top else self.prefix
                below = self._directory(directory, prefix)
            finally:
                os.close(directory)
            todo.extend(os.path.join(real, name) for name in reversed(below))

    def _directory(self, directory: int, prefix: bytes) -> "list[bytes]":
        """Search the files of an open directory; returns the names of the directories in it."""
        rules = self._rules(to_text(prefix))
        below = []
        for name, is_dir, is_file in kinds(directory):
            if self.late:
                raise TimeUp()
            path = to_text(prefix + name)
            if (is_dir or is_file) and not ignored(path, is_dir, rules):
                if is_dir:
                    if len(path) < LONGEST_PATH:
                        below.append(name)
                elif self._wanted(path):
                    self._file(directory, name, path)
        return below

    def _rules(self, prefix: str) -> "list[tuple[int, PathPatterns]]":
        """What decides on the entries of a directory, and where in their paths it begins to look."""
        rules = [(0, self.outside)]
        while True:
            patterns = self.ignore_files.get(prefix[:-1])
            if patterns is not None:
                rules.append((len(prefix), patterns))
            if not prefix:
                return rules
            prefix = prefix[: prefix.rfind("/", 0, -1) + 1]

    def _wanted(self, path: str) -> bool:
        """Whether the globs let a file through, seen from the root or from where the search begins."""
        name = path.replace("\n", "\r")
        self.matching = True
        found = self.globs.search(name) or self.globs.search(name[len(to_text(self.prefix)) :])
        self.matching = False
        return (found is None) if self.request["exclude"] else (found is not None)

    # -- what is in them

    def _file(self, directory: int, name: bytes, path: str) -> None:
        self.path = path
        try:
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
            descriptor = os.open(name, flags, dir_fd=directory)
        except OSError:  # gone since, or not readable
            self.unreadable += 1
            return
        try:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode):
                self.files += 1
                self._lines(descriptor, status.st_size)
        except OSError:
            self.unreadable += 1
        finally:
            os.close(descriptor)

    def _lines(self, descriptor: int, size: int) -> None:
        """Search a file, send what it has."""
        told = []  # type: list[list[Any]]
        count, number, last, until = 0, 1, 0, 0
        above = []  # type: list[str]
        binary = None  # type: bool | None
        codec = "utf-8"
        try:
            for piece in self._pieces(descriptor, size):
                if binary is None:
                    binary = b"\0" in piece[:8192]
                    if is_python(self.path):
                        codec = line_codec_of(declaration(piece))
                passed_over = not shifts(piece, codec) and self._cannot_match(piece)
                if passed_over and not (self.context and size >= PIECE):
                    number += piece.count(b"\n")
                    continue
                lines, plain = decoded(piece, number == 1, codec)
                self.matching = True
                hits = [index for index, found in enumerate(map(self.find, plain)) if found]
                self.matching = False
                count += len(hits)
                if hits and binary:
                    return
                chosen = hits[: self.lines_left] if self.characters_left > 0 else []
                self.lines_left -= len(chosen)
                if chosen or until >= number:
                    numbers = set(range(number, min(until + 1, number + len(lines))))
                    for index in chosen:
                        low = max(number - len(above), number + index - self.context)
                        numbers.update(range(low, min(number + index + self.context + 1, number + len(lines))))
                        until = number + index + self.context
                    marked = set(hits)
                    for one in sorted(numbers):
                        if one > last and self.characters_left > 0:
                            last = one
                            index = one - number
                            if index < 0:
                                told.append(self._shown(one, above[index], None))
                            else:
                                told.append(self._shown(one, lines[index], plain[index] if index in marked else None))
                number += len(lines)
                above = (above + lines)[-self.context :] if self.context else []
        finally:
            self.matching = False
            if count:
                self.matching_files += 1
                self.matching_lines += 0 if binary else count
                if self.matching_files <= TOLD_FILES:
                    record = {"path": self.path, "binary": binary, "count": count, "lines": told}
                    self.host.send({"id": self.request["id"], "t": "data"}, encode(record).encode("ascii"))

    def _cannot_match(self, piece: bytes) -> bool:
        """Whether what every matching line holds is nowhere; much faster than to look at each line."""
        if self.folded and self.needle:
            try:
                piece.decode("ascii")
            except UnicodeDecodeError:  # some other characters become ASCII when case is ignored
                return False
            piece = piece.lower()
        return self.needle not in piece

    def _pieces(self, descriptor: int, size: int) -> "Iterator[bytes]":
        """The file in pieces that end where lines end; of a very long line the rest is left out."""
        if size < PIECE:
            data = os.read(descriptor, size + 1)
            if len(data) <= size:
                if data:
                    yield data
                return
        else:
            data = os.read(descriptor, PIECE)
        held = []  # type: list[bytes]
        length = 0
        while data:
            if self.late:
                raise TimeUp()
            end = data.rfind(b"\n") + 1
            if length > LONGEST:
                held.append(data[data.index(b"\n") : end] if end else b"")
            else:
                held.append(data[:end] if end else data)
                self.cut_lines += not end and length + len(data) > LONGEST
            length += len(data)
            if end:
                yield b"".join(held)
                held = [data[end:]]
                length = len(data) - end
            data = os.read(descriptor, PIECE)
        if held and held != [b""]:
            yield b"".join(held)

    def _shown(self, number: int, line: str, plain: "str | None") -> "list[Any]":
        """A line for the host: number, whether it matches, text, how many characters are left out before and behind."""
        width = self.request["width"]
        begin = 0
        if plain is not None and len(line) > width:
            self.matching = True
            found = self.find(plain)
            self.matching = False
            if found is not None:
                begin = max(0, min(found.start() - width // 3, len(line) - width))
        text = line[begin : begin + width]
        self.characters_left -= len(text) + 8
        return [number, plain is not None, text, begin, len(line) - begin - len(text)]
