"""How the debuggee gets into the sandbox: by two descriptors, without a file."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable
from importlib.resources import files

from debug_gym_core.sandbox.python_code import code_blob, imports_of, parse
from debug_gym_core.sandbox.warm import PREPARED, READY, Warm

NAME = "<debug-gym>"
"""Name of the debuggee's module and of the file that its code seems to come from."""

BOOT = f"""\
code = globals().pop({PREPARED!r}, None)
ready = globals().pop({READY!r}, None)
import builtins
import sys
loaded = frozenset(sys.modules)
if sys.path[:1] == [""]:
    del sys.path[0]
from _frozen_importlib_external import MAGIC_NUMBER
if code is None:
    with open(int(sys.argv[2]), "rb", closefd=False) as file:
        data = file.read()
    if data[:4] == MAGIC_NUMBER:
        import marshal
        code = marshal.loads(data[8:8 + int.from_bytes(data[4:8], "big")])
    else:
        code = compile(data[8 + int.from_bytes(data[4:8], "big"):], {NAME!r}, "exec")
module = type(sys)({NAME!r})
sys.modules[module.__name__] = module
module.LOADED_AT_START = loaded
module.__builtins__ = dict(vars(builtins))
exec(code, module.__dict__)
if ready is not None:
    ready()
open(int(sys.argv[2]), "rb").close()
sys.exit(module.main(int(sys.argv[1])))
"""
"""Program for `python -c`, with the numbers of two descriptors: the channel's and that of the debuggee's code.

The working directory must not be on the path while the standard library is imported: a file of the repository may be
called `code.py`. `debuggee.Program` puts it where Python would. The debuggee has built-in functions of its own: a
program that replaces some (as tests do with mocks) does not replace the debuggee's.
"""

ARGUMENTS = ("-c", BOOT, "{channel}", "{blob:code}")
"""Arguments after the interpreter and its flags, for `Session.process`."""


PARTS = (
    "channel",
    "family",
    "statements",
    "jumps",
    "report",
    "guide",
    "places",
    "backends",
    "instrument",
    "monitoring",
    "finder",
    "commands",
    "forgiving",
    "debugger",
    "programs",
    "main",
)
"""Modules of `debuggee` in the order in which they are joined: each uses only those before it."""


def join(parts: Iterable[str]) -> str:
    """One program of several modules that import from each other.

    Args:
        parts: their sources; imports from the package `debuggee` stand at their tops, on lines of their own
    """
    package = f"{__package__}.debuggee"
    joined = []
    for source in parts:
        lines = source.splitlines(keepends=True)
        for node in parse(source).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package):
                for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    lines[number - 1] = "\n"
        joined.append("".join(lines))
    return "\n".join(joined)


def program() -> str:
    """The debuggee's source, as one file."""
    return join(files(__package__).joinpath("debuggee", f"{part}.py").read_text("utf-8") for part in PARTS)


@functools.cache
def warm_start() -> Warm:
    """How a session is started warm."""
    return Warm(imports_of(program()), after="message")


@functools.cache
def blob() -> bytes:
    """The debuggee's code, see `python_code.code_blob`."""
    return code_blob(program().encode(), NAME)
