"""How packages of ours travel into a sandbox: as one blob of bytes, without a file there.

A package that travels is flat and imports nothing of ours but its own modules, by relative imports, while it is being
imported; and by their full names modules that it shares with others, which go with it. On the host it is a package like
any other. In the sandbox its modules find each other by an `__import__` of their own, until `main` is imported: nothing
of it is ever in `sys.modules` or `sys.meta_path`, where code of a task could import or replace it, and the import
system, which takes its time, is only asked for the standard library.

A blob is the four bytes by which an interpreter knows its own byte code, the length in four bytes (big endian) of the
marshalled code objects that follow, and the marshalled sources for all other interpreters: each a dict by module name.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import marshal
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from types import CodeType

NAME = "<debug-gym>"
"""What a package is called in a sandbox, which no `import` can write, and the file that its code seems to come from."""

BOOT = f"""\
import sys
if "linecache" in sys.modules:
    sys.modules["linecache"].cache.pop("<string>", None)
def unpack(data):
    import marshal
    from _frozen_importlib_external import MAGIC_NUMBER
    end = 8 + int.from_bytes(data[4:8], "big")
    if data[:4] == MAGIC_NUMBER:
        return marshal.loads(data[8:end])
    sources = marshal.loads(data[end:])
    return {{name: compile(sources[name], {NAME!r}, "exec", dont_inherit=True) for name in sources}}
def enter(codes, **given):
    import builtins
    functions = dict(vars(builtins))
    own = functions["__import__"]
    package = type(sys)({NAME!r})
    given.update(__package__={NAME!r}, __builtins__=functions)
    def load(name):
        if not hasattr(package, name):
            module = type(sys)({NAME!r} + "." + name)
            setattr(package, name, module)
            vars(module).update(given)
            exec(codes[name], vars(module))
        return getattr(package, name)
    def find(name, globals=None, locals=None, fromlist=(), level=0):
        if "." in name and name in codes:
            return load(name)
        if not level:
            return builtins.__import__(name, globals, locals, fromlist, 0)
        if name:
            return load(name)
        for one in fromlist:
            load(one)
        return package
    functions["__import__"] = find
    try:
        return load("main")
    finally:
        functions["__import__"] = own
"""
"""Begins a program for `python -c`: `unpack(blob)` makes code objects, and `enter(those)` the module `main` of them.

What else `enter` is given are variables that each of the modules has from its beginning. They have built-in functions
of their own too: a program that replaces some (as tests do with mocks) does not replace theirs.

Python 3.13 keeps the text of `python -c` as that of all code from strings: a program would see it in its tracebacks.
"""

_IMPORT = re.compile(rb"^[ \t]*(?:from ([\w.]+) import |import ([\w., ]+))", re.MULTILINE)
"""An import in code of ours, which has a line of its own; a syntax tree tells the same in fifty times the time."""

_SHARED = "debug_gym_core."
"""How the names of modules begin that several packages share."""

_VERSION = 2
"""Of marshal's format: one that Python 3.6 reads."""


@dataclass(frozen=True)
class Parcel:
    """A package, ready to be sent.

    Attributes:
        codes: its code objects by module, compiled by this interpreter and marshalled
        sources: the same as source
    """

    codes: bytes
    sources: bytes

    def blob(self) -> bytes:
        """For an interpreter of which nothing is known."""
        return _head(self.codes) + self.codes + self.sources

    def blob_for(self, magic: str) -> bytes:
        """For an interpreter that knows its own byte code by `magic`, in hexadecimal digits: half as long."""
        if magic == importlib.util.MAGIC_NUMBER.hex():
            return _head(self.codes) + self.codes
        return _head(b"") + self.sources


def _head(codes: bytes) -> bytes:
    return (importlib.util.MAGIC_NUMBER if codes else bytes(4)) + len(codes).to_bytes(4, "big")


def pack(sources: Mapping[str, bytes], codes: Mapping[str, CodeType] | None = None) -> Parcel:
    """Make a parcel.

    Args:
        sources: by the names of modules, of which one is `main`
        codes: the same, compiled; None: they are compiled here
    """
    if codes is None:
        codes = {name: compile(source, NAME, "exec", dont_inherit=True) for name, source in sources.items()}
    return Parcel(
        marshal.dumps(dict(codes)),
        marshal.dumps(dict(sources), _VERSION),
    )


_PARCELS: dict[str, Parcel] = {}
_ONE_AT_A_TIME = threading.Lock()


def parcel(package: str) -> Parcel:
    """A package of this interpreter as a parcel; its byte code comes from where importing it keeps that.

    Args:
        package: its name
    """
    with _ONE_AT_A_TIME:  # each of several threads would make it, while the others wait for their turn to run
        if package not in _PARCELS:
            _PARCELS[package] = pack(sources_of(package), codes_of(package))
        return _PARCELS[package]


def sources_of(package: str) -> dict[str, bytes]:
    """The sources of a package's modules, in the order of their names; its own `__init__` only says what it is.

    Behind them come the modules that it shares with others, under their full names.
    """
    files = sorted(resources.files(package).iterdir(), key=lambda file: file.name)
    modules = {file.name[: -len(".py")]: file for file in files if file.name.endswith(".py")}
    found = {name: file.read_bytes() for name, file in modules.items() if name != "__init__"}
    ahead = list(found.values())
    for source in ahead:
        for name in _imports_of(source):
            if name.startswith(_SHARED) and name not in found:
                home, _, module = name.rpartition(".")
                found[name] = resources.files(home).joinpath(f"{module}.py").read_bytes()
                ahead.append(found[name])
    return found


def codes_of(package: str) -> dict[str, CodeType]:
    """The same, compiled."""
    return {name: _code_of(name if "." in name else f"{package}.{name}") for name in sources_of(package)}


def _code_of(module: str) -> CodeType:
    spec = importlib.util.find_spec(module)
    assert spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader), module
    code = spec.loader.get_code(module)
    assert code is not None, module
    return _renamed(code)


def _renamed(code: CodeType) -> CodeType:
    """Code as if it came from the file `NAME`."""
    constants = tuple(_renamed(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_filename=NAME, co_consts=constants)


@functools.cache
def imports(package: str) -> tuple[str, ...]:
    """The modules that a package imports besides its own."""
    found: dict[str, None] = {}
    for source in sources_of(package).values():
        found |= dict.fromkeys(name for name in _imports_of(source) if not name.startswith(_SHARED))
    return tuple(found)


def _imports_of(source: bytes) -> Iterator[str]:
    """The modules that code of ours imports, anywhere in it."""
    for line in _IMPORT.finditer(source):
        names = [line[1]] if line[1] else line[2].split(b",")
        yield from (name.split()[0].decode() for name in names if name != b"__future__" and name[:1] != b".")
