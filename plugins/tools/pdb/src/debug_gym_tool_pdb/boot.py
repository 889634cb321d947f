"""How the debuggee gets into the sandbox: by two descriptors, without a file."""

from __future__ import annotations

import functools
import importlib.util
import marshal
from importlib.resources import files

NAME = "<debug-gym>"
"""Name of the debuggee's module and of the file that its code seems to come from."""

BOOT = f"""\
import sys
loaded = frozenset(sys.modules)
if sys.path[:1] == [""]:
    del sys.path[0]
from _frozen_importlib_external import MAGIC_NUMBER
channel, blob = map(int, sys.argv[1:])
with open(blob, "rb") as file:
    data = file.read()
size = int.from_bytes(data[4:8], "big")
if data[:4] == MAGIC_NUMBER:
    import marshal
    code = marshal.loads(data[8:8 + size])
else:
    code = compile(data[8 + size:], {NAME!r}, "exec")
module = type(sys)({NAME!r})
sys.modules[module.__name__] = module
module.LOADED_AT_START = loaded
exec(code, module.__dict__)
sys.exit(module.main(channel))
"""
"""Program for `python -c`, with the numbers of two descriptors: the channel's and that of the debuggee's code.

The working directory must not be on the path while the standard library is imported: a file of the repository may be
called `code.py`. `debuggee.Program` puts it where Python would.
"""

ARGUMENTS = ("-c", BOOT, "{channel}", "{blob:code}")
"""Arguments after the interpreter and its flags, for `Session.process`."""


@functools.cache
def blob() -> bytes:
    """The debuggee: compiled by this interpreter, for those that understand it, and its source for all others."""
    source = files("debug_gym_tool_pdb").joinpath("debuggee.py").read_bytes()
    compiled = marshal.dumps(compile(source, NAME, "exec", dont_inherit=True))
    return importlib.util.MAGIC_NUMBER + len(compiled).to_bytes(4, "big") + compiled + source
