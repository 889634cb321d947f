"""The standard library's pdb, with commands from a list; Python 3.6, standard library only."""

import dis
import io
import os
import pdb
import sys

RUNNERS = (pdb.__file__, pdb.bdb.__file__, os.path.join(os.path.dirname(os.path.abspath(__file__)), ""))


def is_runner(frame):
    """Whether a frame only runs the program: of the debugger, or of this test."""
    name = frame.f_code.co_filename
    return name == "<string>" or name.startswith(RUNNERS)


class Commands(object):
    """Where pdb reads its commands."""

    def __init__(self, oracle, commands):
        """Hand out these commands, each with the lines that belong to it."""
        self.oracle = oracle
        self.commands = list(commands)
        self.rest = []

    def readline(self):
        """The next line: of the definition under way, else the next command."""
        if self.oracle.commands_defining and self.rest:
            return self.rest.pop(0) + "\n"
        self.oracle.tell()
        if not self.commands:
            os._exit(98)
        command = self.commands.pop(0)
        self.rest = command[1:]
        return command[0] + "\n"


class Oracle(pdb.Pdb):
    """The standard library's pdb, which tells at each prompt what it printed since the last."""

    def __init__(self, commands, send):
        """Read commands from a list."""
        self.text = io.StringIO()
        self.send = send
        super().__init__(stdin=Commands(self, commands), stdout=self.text, nosigint=True, readrc=False)

    def tell(self):
        """Send what was printed."""
        self.send({"t": "prompt", "out": self.take()})

    def take(self):
        """What was printed since the last time, without prompts."""
        text = self.text.getvalue().replace("(Pdb) ", "").replace("(com) ", "")
        self.text.seek(0)
        self.text.truncate()
        return text


def begins(code, first, last, once):
    """Offsets at which a statement of several lines begins at another line than its first."""
    found, before = [], 0
    if code.co_firstlineno < first or code.co_name == "<module>":
        for offset, line in line_starts(code):
            if first <= line <= last and not first <= before <= last:
                found.append((offset, line))
            before = line
    return [offset for offset, line in found[: 1 if once else None] if line != first]


def line_starts(code):
    """Offsets at which a code object comes to another line, and the line."""
    if sys.version_info < (3, 10):
        yield from dis.findlinestarts(code)
        return
    before = None
    for offset, _, line in code.co_lines():
        if line is not None and line != before:
            yield offset, line
            before = line
