"""Runs programs under the debuggee and under the standard library's pdb, with the interpreter to test.

Python 3.6, standard library only. It is started with `python -c "..."` (`differential_runs.Driver`), since pdb empties
`__main__`, and is given the file of the debuggee's program. A line of JSON on standard input is a request:

    {"files": {"main.py": "..."}, "runs": [{"kind": "ours", "backends": ["settrace"], "commands": [["b 3"], ["c"]]},
                                           {"kind": "pdb", "like_ours": ["..."], "commands": [["b 3"], ["c"]]}]}

`main.py` is run once for each run, in a fork; a command is followed by the lines that belong to it. The answer is a
line with a list: for each run what the debugger said at each prompt, how the program ended, and what it printed.
"""

import atexit
import json
import os
import pdb
import resource
import selectors
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback

import differential_answers
import differential_pdb

LIMIT = 120.0
"""Seconds after which a run counts as stuck."""

PROCESSOR_LIMIT = 4
"""Seconds of processor time that a run has: it ends by itself, of SIGXCPU, whatever became of the driver."""


def load(path):
    """The debuggee's main module, from a file that says how it begins and has its blob."""
    loaded = frozenset(sys.modules)
    space = {}
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec", dont_inherit=True), space)
    codes = space["unpack"](space["blob"])
    # What the interpreter does not survive is the same question for both.
    asked = "from .jumps import why_not_to_jump\nfrom .statements import Statements\n"
    differential_answers.ours = space["enter"](dict(codes, main=compile(asked, path, "exec")))
    return space["enter"](codes, LOADED_AT_START=loaded)


def framed(message):
    """A message as the debuggee reads it."""
    data = json.dumps(message).encode()
    return struct.pack(">I", len(data)) + data


def unframed(data):
    """Messages of a stream that may break off in the middle of one."""
    found = []
    while len(data) >= 4:
        end = 4 + struct.unpack(">I", data[:4])[0]
        if len(data) < end:
            break
        found.append(json.loads(data[4:end].decode()))
        data = data[end:]
    return found


class Run:
    """One fork, and what it says."""

    def __init__(self, debuggee, root, request):
        """Start it: all commands are written before it starts, so that nobody waits for anybody."""
        self.root = root
        self.request = request
        self.data = b""
        self.status = None
        self.printed = tempfile.TemporaryFile()
        self.errors = tempfile.TemporaryFile()
        self.channel, theirs = socket.socketpair()
        if request["kind"] == "ours":
            config = {
                "kind": "script",
                "target": "main.py",
                "args": [],
                "root": root,
                "backends": request["backends"],
                "breakpoints": {"list": [], "next": 1},
            }
            messages = [config] + [{"cmd": lines[0], "rest": lines[1:]} for lines in request["commands"]]
            self.channel.sendall(b"".join(map(framed, messages)))
            self.channel.shutdown(socket.SHUT_WR)  # after the last command it ends, as when its host is gone
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            try:
                self.become_program(debuggee, theirs)
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            os._exit(97)
        theirs.close()
        self.deadline = time.monotonic() + LIMIT

    def become_program(self, debuggee, channel):
        """The forked child: never returns."""
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_LIMIT, PROCESSOR_LIMIT + 1))
        self.channel.close()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(self.printed.fileno(), 1)
        os.dup2(self.errors.fileno(), 2)
        os.chdir(self.root)
        if self.request["kind"] == "ours":
            status = debuggee.main(channel.detach())
            atexit._run_exitfuncs()  # here it says goodbye
        else:
            status = differential_pdb.run(self.root, self.request, lambda message: channel.sendall(framed(message)))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)

    def read(self):
        """Take what there is; returns whether there may be more."""
        try:
            chunk = self.channel.recv(1 << 20)
        except ConnectionResetError:  # it ended before it read all its commands
            chunk = b""
        self.data += chunk
        return bool(chunk)

    def finish(self):
        """End it, and say what happened."""
        stuck = time.monotonic() >= self.deadline
        if stuck:
            os.killpg(self.pid, signal.SIGKILL)
        status = os.waitpid(self.pid, 0)[1]
        self.channel.close()
        texts = []
        for file in (self.printed, self.errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
            file.close()
        answer = {"messages": unframed(self.data), "printed": texts[0], "errors": texts[1][-4000:]}
        answer["died"] = "stuck" if stuck else os.WIFSIGNALED(status) and -os.WTERMSIG(status)
        return answer


def perform(debuggee, request):
    """All runs of a request, side by side."""
    root = tempfile.mkdtemp(prefix="differential-")
    try:
        for name, text in request["files"].items():
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
        runs = [Run(debuggee, os.path.realpath(root), one) for one in request["runs"]]
        with selectors.DefaultSelector() as selector:
            for run in runs:
                selector.register(run.channel, selectors.EVENT_READ, run)
            while selector.get_map():
                for key, _ in selector.select(1.0):
                    if not key.data.read():
                        selector.unregister(key.fileobj)
                for key in list(selector.get_map().values()):
                    if time.monotonic() >= key.data.deadline:
                        selector.unregister(key.fileobj)
        return [run.finish() for run in runs]
    finally:
        shutil.rmtree(root)


def main(program):
    """Answer requests until there are no more."""
    sys.path.remove(os.path.dirname(os.path.abspath(__file__)))
    debuggee = load(program)
    # What a run would import anyway is imported once.
    for name in ("asyncio", "contextlib", "dataclasses", "functools", "runpy", "shlex", "code", "ctypes"):
        if name != "dataclasses" or sys.version_info >= (3, 7):
            __import__(name)
    pdb.Pdb(nosigint=True, readrc=False)
    for line in sys.stdin:
        answer = perform(debuggee, json.loads(line))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
