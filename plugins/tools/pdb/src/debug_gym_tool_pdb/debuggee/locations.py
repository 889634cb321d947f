"""Where a breakpoint is wanted: places as people, tracebacks and other debuggers write them."""

import contextlib
import inspect
import os
import re
import types

from .channel import Pattern
from .frames import local_names
from .guide import nearest
from .hints import MOST_NAMED
from .meaning import compiles
from .modules import Installed, NoPythonCode, loaded
from .places import Definition, Search, Source, definitions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pdb import Pdb
    from typing import Any, Callable, Dict, List, Optional, Tuple

    from .files import Files

    Place = Tuple[str, Optional[str]]

NO_LINE = "the program is a runner of tests, which has no {} of its own to show: b FILE:LINE, then c"
IN_IGNORED = "{} is ignored in this task: no breakpoint is set in it"
DEFINED = "note: {} is defined {} times, at lines {}; {}"
IN_USE = "what is in use now gets a breakpoint, at {}"
NOT_ALL = "not all files of the repository were looked at: b FILE:{}"
_CONDITION = Pattern(r"\s*(?:,\s*if\b|,)\s*|(?:\A|\s+)(?:if|when)(?=[\s(])\s*")
_TRACEBACK_PLACE = Pattern(r'File "([^"]+)", line (\d+)(?:, in \S+)?\Z')
_IN_QUOTED_FILE = Pattern(r"(['\"`])([^'\"`]+)\1\s*(?=:)")
_PDB_PLACE = Pattern(r"(?:> )?(\S+)\((\d+)\)(?:\S+\(\))?\Z")
_TEST = Pattern(r"\A(\S+?\.py)::(\w+(?:::\w+)*)(?:\[[^]]*\])?")
"""A test's id: the file, classes and function, and with which parameters, for which a condition is needed."""
_IN_C = (types.BuiltinFunctionType, type(str.join), type(object.__init__), type(vars(dict)["fromkeys"]))
NAME = Pattern(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*\Z")
"""A name, of something in a class or a module too."""


class NotUnderstood(Exception):
    """What was written is no place, or no condition; says why."""


class Locations:
    """Reads places."""

    def __init__(self, debugger: "Pdb", files: "Files", before_runner: "Callable[[], bool]") -> None:
        """Know what a debugger knows.

        Args:
            debugger: has the current frame
            files: the repository's
            before_runner: whether the program is at its entry and runs tests: nobody wants to see anything of it
        """
        self._debugger = debugger
        self._files = files
        self._before_runner = before_runner

    def read(self, text: str) -> "List[Place]":
        """A place as pdb writes it, `file:line[, condition]`, for one as people do.

        Returns:
            the place, and the name of the function that alone stops there, which pdb cannot be told; None: whatever
            comes to the place. Several, where a function is defined more than once

        Raises:
            NotUnderstood: it is none
        """
        where, condition = self._split(text.strip())
        if condition is not None:
            check_condition(condition)
        where = where.strip("'\"` ")
        found: "List[Place]" = [(where, None)]
        if re.match(r"\d+\Z", where):
            if self._before_runner():
                raise NotUnderstood(NO_LINE.format("line"))
        elif ":" in where:
            found = self._in_file(where)
        elif NAME.match(where):
            found = self._in_scope(where) or self._function(where, None)
        else:
            more = "; commands are written one a line, or with ;; between them" if ";" in where else ""
            form = "{!r} is no place: b FILE:LINE, as b app.py:12, or b FUNCTION{}"
            raise NotUnderstood(form.format(where[:80], more))
        return [(one if condition is None else "{}, {}".format(one, condition), function) for one, function in found]

    def _split(self, text: str) -> "Tuple[str, Optional[str]]":
        """The place, in pdb's form, and the condition."""
        quoted = _IN_QUOTED_FILE.match(text)
        if quoted:
            inside, condition = self._split(text[quoted.end() :].lstrip(": "))
            return "{}:{}".format(quoted.group(2), inside), condition
        match = _TRACEBACK_PLACE.match(text) or _PDB_PLACE.match(text)
        if match:
            return "{}:{}".format(*match.groups()), None
        text = re.sub(r"\A([^\s,]+)(?:\s*,\s*|\s+)(?:line\s+)?(\d+)(?=\s*(?:,|\Z|if\b))", self._with_colon, text)
        text = re.sub(r"\A(?:line\s+|:)(\d+)", r"\1", text)
        match = _TEST.match(text)
        if match:
            name = match.group(2).replace("::", ".")
            text = "{}:{}{}".format(match.group(1), name, text[match.end() :])
        match = _CONDITION.search(text)
        if match:
            return text[: match.start()], text[match.end() :]
        match = re.match(r"((?:\S+:)?\d+)\s+(\S.*)\Z", text)
        if match and compiles(match.group(2), "eval"):
            return match.group(1), match.group(2)
        return text, None

    def _with_colon(self, match: "Any") -> str:
        """`app.py 12` and `app.py, 12` as `app.py:12`."""
        name, line = match.groups()
        if name.isdigit() or ":" in name or not (name.endswith(".py") or self._debugger.lookupmodule(name)):
            return str(match.group())
        return "{}:{}".format(name, line)

    def _in_file(self, where: str) -> "List[Place]":
        """A line, or a function, of a file; see `read`."""
        file, _, inside = where.rpartition(":")
        file = file.rstrip(": ")
        path = self._debugger.lookupmodule(file)
        if path is None:
            if NAME.match(file) and NAME.match(inside.strip()):
                self._installed(
                    "{}.{}".format(file, inside.strip())
                )  # a module without a file is refused with its reason
            raise NotUnderstood(self._files.missing(file))
        if self._files.is_ignored(path):
            raise NotUnderstood(IN_IGNORED.format(self._files.path(path)))
        if inside.strip().isdigit():
            return [("{}:{}".format(path, int(inside)), None)]
        if not NAME.match(inside.strip()):
            more = "; commands are written one a line, or with ;; between them" if ";" in inside else ""
            raise NotUnderstood("Bad lineno: {}; b FILE:LINE, as b app.py:12{}".format(inside, more))
        is_module = NAME.match(file) and not file.endswith(".py")
        return self._function(inside.strip(), path, file if is_module else "")

    def _in_scope(self, name: str) -> "List[Place]":
        """Where the function is that a name stands for in the current frame; empty: it stands for none.

        Of what a decorator has put in a function's place, it is the function; of a property, all that it has; see
        `read`.
        """
        if self._before_runner():
            return []
        try:
            value = self._value(name)
        except (NameError, AttributeError):
            return []
        found = [self._of_value(name, value, one) for one in _functions_of(value)]
        return [one for places in found for one in places]

    def _of_value(self, name: str, value: "Any", inner: "Any") -> "List[Place]":
        """The same of one function; `value`: what the name stands for, `inner`: the function in it."""
        function = inspect.unwrap(inner) if isinstance(inner, types.FunctionType) else inner
        if not isinstance(function, types.FunctionType):
            return []
        code = function.__code__
        if self._debugger.canonic(code.co_filename)[:1] == "<":
            return []
        if code.co_name != name.rpartition(".")[2]:
            with contextlib.suppress(NotUnderstood):
                written = self._as_written(name)
                if written is not None:
                    return [written]
        if code.co_name not in (name.rpartition(".")[2], "<lambda>"):
            self._debugger.message("note: {} is the function {} here".format(name, code.co_name))
        found = self._of_code(code)
        if found is None and function not in (
            value,
            getattr(value, "__func__", None),
        ):  # pdb would take the decorator's
            return self._function(
                function.__qualname__.replace(".<locals>", ""), self._debugger.canonic(code.co_filename)
            )
        return [found or (name, None)]

    def _as_written(self, name: str) -> "Optional[Place]":
        """Where the function is that the text of the current file defines under a name, or imports.

        Raises:
            NotUnderstood: it is not Python
        """
        frame = self._debugger.curframe
        if frame is None or self._before_runner():
            return None
        file = self._debugger.canonic(frame.f_code.co_filename)
        try:
            found = Installed().find_from(str(frame.f_globals.get("__name__")), file, name)
        except NoPythonCode as error:
            raise NotUnderstood(str(error)) from None
        if found is None or found.line is None or found.name.rpartition(".")[2] != name.rpartition(".")[2]:
            return None
        return None if self._files.is_ignored(found.file) else _as_pdb_has_it(self._files.path(found.file), found)

    def _of_code(self, code: "types.CodeType") -> "Optional[Place]":
        """Where the function of a code object begins; None: its file does not say."""
        if self._files.is_ignored(code.co_filename):
            return None
        try:
            source = Source(self._debugger.canonic(code.co_filename))
        except (OSError, SyntaxError, ValueError, RecursionError):
            return None
        for name, node in source.functions():
            if source.starts(node, code):
                return _as_pdb_has_it(self._files.path(code.co_filename), definitions(source, name, node, "")[0])
        return None

    def _in_use(self, path: str, name: str) -> "List[Place]":
        """Where the functions are that a name stands for in the module of a file, as it is now; see `read`."""
        found = []
        for file, attributes in loaded():
            if self._debugger.canonic(file) == self._debugger.canonic(path):
                with contextlib.suppress(KeyError, AttributeError):
                    value = _within(attributes[name.partition(".")[0]], name)
                    functions = [one for one in map(inspect.unwrap, _functions_of(value))]
                    found += [self._of_code(one.__code__) for one in functions if isinstance(one, types.FunctionType)]
        return [one for one in found if one is not None]

    def _value(self, name: str) -> "Any":
        """What a name stands for in the current frame.

        Raises:
            NameError: for nothing
            AttributeError: the attribute is not there, or is computed
        """
        frame = self._debugger.curframe
        assert frame is not None
        return _within(eval(name.partition(".")[0], frame.f_globals, local_names(self._debugger)), name)

    def _function(self, name: str, path: "Optional[str]", module: str = "") -> "List[Place]":
        """Where a function is that nobody has imported yet; see `read`.

        Args:
            name: its own, after that of its class or module
            path: of its file; None: any file
            module: the name of its module, by which the file was found; empty: it was not
        """
        search = Search(self._files.root, self._files.ignored)
        frame = self._debugger.curframe
        own = None if path or frame is None else self._files.path(frame.f_code.co_filename)
        if path is not None:
            of_module = "{}.{}".format(module, name) if module and not self._files.is_own(path) else ""
            found = (self._installed(of_module)[0] if of_module else []) or search.find(name, self._files.path(path))
            found = [one for one in found if one.name == name] or found
        else:
            inside = own is not None and own[:1] not in "/<" and self._file_of(name) is None
            found = (search.find(name, own) if inside else []) or search.find(name)
            if not found:
                self._refuse_c(name)
                written = self._as_written(name)
                if written is not None:
                    return [written]
                found, name, path = self._installed(name)
        by_place: "Dict[Tuple[str, int], Definition]" = {}
        for one in found:
            if one.line is not None:
                file = self._files.path(os.path.join(self._files.root, one.file))  # which a link may name too
                by_place.setdefault((file, one.line), Definition(file, one.name, one.line, one.function))
        places = list(by_place.values())
        if len({(one.file, one.name) for one in places}) == 1 and len(places) <= MOST_NAMED:
            if not search.finished:
                self._debugger.message("note: " + NOT_ALL.format(name))
            return self._all_or_used(places)
        if places:
            named = ", ".join("{}:{} {}".format(one.file, one.line, one.name) for one in places[:MOST_NAMED])
            raise NotUnderstood("several functions are called {}: {}".format(name, named))
        if found:
            raise NotUnderstood("{} is a class without __init__: b {}.METHOD".format(name, name))
        if not search.finished:
            raise NotUnderstood("no function {} was found, but ".format(name) + NOT_ALL.format(name))
        where = " in {}".format(self._files.path(path)) if path else ""
        near = nearest(name.rpartition(".")[2], search.names(self._files.path(path) if path else None))
        hint = "; did you mean {}?".format(" or ".join(near)) if near else "; b FILE:LINE, as b app.py:12"
        raise NotUnderstood("there is no function {}{}{}".format(name, where, hint))

    def _all_or_used(self, places: "List[Definition]") -> "List[Place]":
        """All places where one function is defined; where it is loaded, those that are in use. Says which."""
        places = sorted(places, key=lambda one: one.line or 0)
        found = [_as_pdb_has_it(one.file, one) for one in places]
        if len(found) == 1:
            return found
        used = self._in_use(os.path.join(self._files.root, places[0].file), places[0].name)
        used = [one for one in found if one in used]
        lines = ", ".join(str(one.line) for one in places)
        taken = ", ".join(place.rpartition(":")[2] for place, _ in used)
        said = IN_USE.format(taken) if 0 < len(used) < len(found) else "each gets a breakpoint"
        self._debugger.message(DEFINED.format(places[0].name, len(places), lines, said))
        return used or found

    def _installed(self, name: str) -> "Tuple[List[Definition], str, Optional[str]]":
        """A function of a module that need not be the repository's.

        Returns:
            where it is, and its name, in which file it was looked for; None: there is no such module

        Raises:
            NotUnderstood: it is not Python
        """
        modules = Installed()
        try:
            found = modules.find(name)
        except NoPythonCode as error:
            raise NotUnderstood(str(error)) from None
        if found is not None and not self._files.is_ignored(found.file):
            return [found], name, None
        file, inside = modules.missing or (None, name)
        return [], inside, file

    def _refuse_c(self, name: str) -> None:
        """Say of a function that there is that it is not Python.

        Raises:
            NotUnderstood: it is not
        """
        with contextlib.suppress(NameError, AttributeError):
            if not self._before_runner() and type(self._value(name)) in _IN_C:
                raise NotUnderstood("{} is written in C: no breakpoint stops in it".format(name))

    def _file_of(self, name: str) -> "Optional[str]":
        """The file of the module that a dotted name begins with."""
        head = name.partition(".")[0]
        return self._debugger.lookupmodule(head) if "." in name else None


def _functions_of(value: "Any") -> "List[Any]":
    """The functions that a name stands for: of a property those that get, set and delete it."""
    if isinstance(value, property):
        return [one for one in (value.fget, value.fset, value.fdel) if one is not None]
    return [getattr(value, "__func__", value)]


def _within(value: "Any", name: str) -> "Any":
    """What a dotted name stands for, from what its first part does on.

    Raises:
        AttributeError: an attribute is not there, or is computed
    """
    for part in name.split(".")[1:]:
        value = inspect.getattr_static(value, part)
    return value


def _as_pdb_has_it(file: str, found: "Definition") -> "Place":
    """The place of a function, and its name where that alone tells a call; see `read`."""
    return "{}:{}".format(file, found.line), found.function


def check_condition(condition: str) -> None:
    """Compile a condition.

    Raises:
        NotUnderstood: it is no Python expression
    """
    try:
        compile(condition.strip(), "<condition>", "eval", dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        why = getattr(error, "msg", None) or str(error)
        text = "The condition {!r} is no Python expression: {}".format(condition.strip()[:200], why)
        raise NotUnderstood(text) from None
