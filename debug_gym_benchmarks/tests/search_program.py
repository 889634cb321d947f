"""What an agent may run to find a text in all that it can read."""

from __future__ import annotations

import json
from collections.abc import Sequence

from debug_gym_core import RepoEnv

PROGRAM = r"""
import bz2, gzip, io, json, lzma, os, subprocess, sys, tarfile, zipfile, zlib

texts, left_out = [[one.encode() for one in ones] for ones in json.load(sys.stdin)]
overlap = max(map(len, texts))
OF_PROCESSES = ("cmdline", "environ", "maps", "mountinfo", "stack", "status", "comm")

def has(data):
    return any(text in data for text in texts)

def read(path):
    before = b""
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            if has(before + block):
                return True
            before = block[-overlap:]

def inside(path):
    with open(path, "rb") as file:
        start = file.read(8)
    if start[:1] == b"x":  # as git's objects begin
        with open(path, "rb") as file:
            return has(zlib.decompressobj().decompress(file.read(), 1 << 26))
    for magic, module in ((b"\x1f\x8b", gzip), (b"BZh", bz2), (b"\xfd7zXZ", lzma)):
        if start.startswith(magic):
            with module.open(path) as file:
                return has(file.read(1 << 26))
    if start.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            return any(has(archive.read(name)) for name in archive.namelist())

def packed(path):
    command = ["git", "-C", path, "cat-file", "--batch-all-objects", "--batch", "--unordered"]
    try:
        return has(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    except OSError:
        return False

for top, directories, files in os.walk("/"):
    if top.encode() in left_out:
        directories.clear()
        continue
    if top.startswith("/proc"):
        if top != "/proc":
            directories.clear()
        files = [name for name in files if name in OF_PROCESSES]
    if "objects" in directories and "HEAD" in files and packed(top):
        print(top)
    for name in files:
        path = os.path.join(top, name)
        try:
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            if has(path.encode("utf-8", "surrogateescape")) or read(path) or inside(path):
                print(path)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError):
            pass  # who searches goes on
"""

ARCHIVES = {
    "compiled": "import os, py_compile, sys; open('/tmp/x.py', 'w').write(sys.argv[1]);"
    " py_compile.compile('/tmp/x.py', '/tmp/left.pyc'); os.remove('/tmp/x.py')",
    "a wheel": "import sys, zipfile; zipfile.ZipFile('/tmp/left.whl', 'w', 8).writestr('x.py', sys.argv[1])",
    "compressed": "import gzip, sys; gzip.open('/tmp/left.gz', 'w').write(sys.argv[1].encode())",
    "in git's objects": "import os, subprocess as s, sys; os.makedirs('/tmp/left'); os.chdir('/tmp/left');"
    " open('x', 'w').write(sys.argv[1]);"
    " run = lambda *a: s.check_call(['git', '-c', 'user.name=a', '-c', 'user.email=a@b', *a]);"
    " run('init', '-q'); run('add', '-A'); run('commit', '-qm', 'x'); run('gc', '-q'); os.remove('x')",
}
"""Programs that leave a text, their argument, where only a thorough search finds it."""

TIMEOUT = 600.0


def search(env: RepoEnv, texts: Sequence[str], left_out: Sequence[str]) -> list[str]:
    """The files in an environment's sandbox that have one of some texts, as the agent's own program finds them.

    Args:
        env: reset
        texts: what is looked for
        left_out: directories that are not looked into
    """
    # By the way of standard input the texts are in no command line, where they would be found.
    said = json.dumps([list(texts), list(left_out)])
    done = env.terminal.run([env.terminal.python, "-c", PROGRAM], timeout=TIMEOUT, stdin=said.encode())
    assert done.exit_status == 0, done.output
    return done.output.splitlines()
