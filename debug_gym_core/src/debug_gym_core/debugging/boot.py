"""How a package that travels gets into the process that it debugs: by two descriptors, without a file.

Its `main.main` is called with the number of the channel's descriptor and returns the exit status.
"""

from __future__ import annotations

import functools
import re

from debug_gym_core.sandbox import shipping
from debug_gym_core.sandbox.warm import PREPARED, READY, Warm

BOOT = f"""\
# debug-gym: debugger
codes = globals().pop({PREPARED!r}, None)
ready = globals().pop({READY!r}, None)
import sys
loaded = frozenset(sys.modules)
if sys.path[:1] == [""]:
    del sys.path[0]
{shipping.BOOT}
if codes is None:
    with open(int(sys.argv[2]), "rb", closefd=False) as file:
        codes = unpack(file.read())
main = enter(codes, LOADED_AT_START=loaded).main
if ready is not None:
    ready()
open(int(sys.argv[2]), "rb").close()
sys.exit(main(int(sys.argv[1])))
"""
"""Program for `python -c`, with the numbers of two descriptors: the channel's and that of the code.

The working directory must not be on the path while the standard library is imported: a file of the repository may be
called `code.py`. What is brought puts it where Python would.
"""

ARGUMENTS = ("-c", BOOT, "{channel}", "{blob:code}")
"""Arguments after the interpreter and its flags, for `Session.process`."""


@functools.cache
def warm_start(package: str) -> Warm:
    """How a program is started warm.

    Args:
        package: name of what travels
    """
    return Warm(shipping.imports(package), after="message")


def blob(package: str) -> bytes:
    """The code of a package that travels.

    Args:
        package: its name
    """
    return shipping.parcel(package).blob()


TAIL = 500
"""Characters at the end of what an interpreter printed that tell why it ended."""

_OURS = re.compile(
    rf'^ *File "(?:{re.escape(shipping.NAME)}|<string>|<frozen [^"]*)", line \d+.*\n(?: {{4,}}.*\n)*', re.MULTILINE
)
_EMPTY = re.compile(r"^Traceback \(most recent call last\):\n(?=\S)", re.MULTILINE)


def why_ended(printed: str) -> str:
    """Why an interpreter ended before it debugged anything; frames of ours would tell nobody anything.

    Args:
        printed: what it printed
    """
    if f'File "{shipping.NAME}"' in printed:
        printed = _EMPTY.sub("", _OURS.sub("", printed)).strip()
    return f"the interpreter ended: {printed[-TAIL:] or 'it printed nothing'}"
