"""Programs that have the guest's stream, as if they had got it, and answer requests as no guest would, as data."""

from __future__ import annotations

from collections.abc import Mapping

from impersonations import PRELUDE

_IN_PLACE = r"""
def take(size):
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            sys.exit(0)
        data += piece
    return data

def say(header, body=b"", head=None):
    data = memoryview(frame(header, body, head))
    while data:
        data = data[os.write(1, data[:1 << 20]):]

from importlib.util import MAGIC_NUMBER
say({"id": 0, "t": "boot", "magic": "".join("%02x" % one for one in MAGIC_NUMBER)})
take(int(take(9)))

def requests():
    while True:
        head, body = struct.unpack(">II", take(8))
        header = json.loads(take(head).decode())
        take(body)
        if header.get("op") == "start":
            say({"id": header["id"], "t": "hello", "version": 1, "pid": os.getpid(), "python": [3, 9, 0], "notes": []})
        elif "id" in header:
            yield header["id"], header["op"]
"""

NEVER_STARTS = "reads nothing"
"""The one of `IMPOSTORS` that is given up before anything is asked."""

IMPOSTORS: Mapping[str, str] = {
    "a body without end": """
for number, op in requests():
    os.write(1, struct.pack(">II", 30, 1 << 30) + json.dumps({"id": number, "t": "done"}).ljust(30).encode())
    while True:
        os.write(1, bytes(1 << 16))
""",
    "a body of four hundred megabytes": """
for number, op in requests():
    say({"id": number, "t": "done", "status": 0}, bytes(400 << 20))
""",
    "a header of four gigabytes": """
for number, op in requests():
    os.write(1, struct.pack(">II", 0xffffffff, 0xffffffff))
    while True:
        os.write(1, bytes(1 << 16))
""",
    "small frames without end": """
for number, op in requests():
    while True:
        say({"id": number, "t": "data"}, b"impostor")
""",
    "empty frames without end": """
for number, op in requests():
    while True:
        say({"id": number, "t": "entries"}, b"")
""",
    "frames for nobody": """
for number, op in requests():
    end = time.time() + 8
    while time.time() < end:
        say({"id": number + 1000, "t": "done", "status": 0}, b"impostor" * 1000)
    sys.exit()
""",
    "an infinite id": """
for number, op in requests():
    say(None, head=b'{"id": 1e999, "t": "done"}')
    time.sleep(60)
""",
    "ids that are none": """
for number, op in requests():
    for head in (b'{"id": "x", "t": "done"}', b'{"id": null}', b'[]', b'7', b'{}', b'{"id": NaN}'):
        say(None, head=head)
    time.sleep(60)
""",
    "a number of a million digits": """
for number, op in requests():
    say(None, head=b'{"id": ' + b"9" * 1000000 + b', "t": "done"}')
    time.sleep(60)
""",
    "nested lists": """
for number, op in requests():
    say(None, head=b'{"id": %d, "t": ' % number + b"[" * 1000000 + b"]" * 1000000 + b"}")
    time.sleep(60)
""",
    "headers that are no UTF-8": """
for number, op in requests():
    say(None, head=b'{"id": %d, "t": "\\xff\\xfe\\xc0\\x80"}' % number)
    time.sleep(60)
""",
    "answers without their fields": """
for number, op in requests():
    say({"id": number, "t": "done"}, b"")
""",
    "more than was asked for": """
for number, op in requests():
    fields = {"real": "impostor", "declared": "", "total": 1, "length": 1, "entry": [], "count": -1}
    say(dict(fields, id=number, t="done"), b"impostor" * 100)
""",
    "answers whose fields are of other types": """
fields = dict(status="x", timed_out=[], seconds={}, cut="much", head=[], known=1, entry=7, real=None)
for number, op in requests():
    say(dict(fields, id=number, t="done"), b"{}")
""",
    "answers whose fields are infinite": """
for number, op in requests():
    say(None, b"impostor", b'{"id": %d, "t": "done", "status": 0, "timed_out": false, "seconds": 0,'
        b' "head": 1e999, "cut": 1e999}' % number)
""",
    "a directory without end": """
for number, op in requests():
    if op != "walk":
        sys.exit()
    for part in range(1 << 30):
        entries = [["%d-%d" % (part, one), "file", 0, 0o644, 0, None, "0-0"] for one in range(1000)]
        say({"id": number, "t": "data"}, json.dumps(entries).encode())
""",
    "answers of no kind": """
for number, op in requests():
    say({"id": number}, b"")
    time.sleep(60)
""",
    "errors that are none": """
for number, op in requests():
    say({"id": number, "t": "error", "kind": ["os"], "errno": {}, "text": None, "path": 7}, b"")
""",
    "says nothing": "for number, op in requests(): time.sleep(60)",
    "reads nothing": "time.sleep(60)",
    "ends at each request": "for number, op in requests(): sys.exit()",
}
"""What is no guest, and answers requests as none would: wrongly, so that whoever asked can tell."""


def impostor(name: str) -> str:
    """The program of one of `IMPOSTORS`."""
    return PRELUDE + _IN_PLACE + IMPOSTORS[name]
