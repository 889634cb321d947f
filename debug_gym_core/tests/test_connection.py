"""The host's end of the guest's stream, with a guest that says what it should not, or nothing."""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.sandbox import connection as connections
from debug_gym_core.sandbox.connection import SILENCE, STALL_TIMEOUT, VERSION, Connection, guest_program
from debug_gym_core.sandbox.file_requests import FileRequests
from debug_gym_core.sandbox.frames import Header, PrintedOutput, pack
from debug_gym_core.sandbox.guest.frames import LENGTHS
from debug_gym_core.sandbox.process import Process
from debug_gym_core.sandbox.replies import ROOM, CommandEnded, CommandLost, Waiter
from debug_gym_core.sandbox.terminal import SandboxSpec, Terminal
from debug_gym_core.testing import wait_until

Answer = Callable[[Header], bytes]


class Guest:
    """A stream whose other end answers each request as the test wants it."""

    def __init__(self, answer: Answer, version: int = VERSION) -> None:
        self.answer = answer
        self.version = version
        self.said: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.has_program = False
        self.closed = threading.Event()
        self.taking = threading.Event()
        self.taking.set()
        self.said.put(pack({"id": 0, "t": "boot", "magic": "none"}))

    def read(self, size: int) -> bytes:
        return self.said.get()

    def write(self, data: bytes | memoryview) -> None:
        self.taking.wait(20)
        if self.closed.is_set():
            raise BrokenPipeError("closed")
        if not self.has_program:
            self.has_program = True
            return
        length, _ = LENGTHS.unpack_from(data)
        header = json.loads(bytes(data[LENGTHS.size : LENGTHS.size + length]))  # whoever asks sends a frame at once
        if header["op"] == "start":
            self.said.put(pack({"id": header["id"], "t": "hello", "version": self.version}))
        else:
            self.said.put(self.answer(header))

    def close(self) -> None:
        self.closed.set()
        self.taking.set()
        self.said.put(b"")


class Answering(Terminal):
    """A terminal with such a guest."""

    name = "answering"
    isolates = False
    python = "python"

    def __init__(self, guest: Guest) -> None:
        super().__init__()
        self.guest = guest

    @classmethod
    def unavailable(cls) -> str | None:
        return None

    def start(self, spec: SandboxSpec) -> None:
        pass

    def open(self, argv: Sequence[str]) -> Guest:
        return self.guest

    def alive(self) -> bool:
        return True

    def stop(self) -> None:
        pass

    def log(self) -> str:
        return "its last line\n"


Connect = Callable[..., Connection]


@pytest.fixture
def connect() -> Iterator[Connect]:
    made: list[Connection] = []

    def begin(answer: Answer) -> Connection:
        made.append(Connection(Answering(Guest(answer)), {"root": "/", "env": {}}))
        return made[-1]

    yield begin
    for connection in made:
        connection.close()


def test_what_cannot_be_had_of_a_log_keeps_no_error_back(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = connect(error(kind="lost"))
    monkeypatch.setattr(Answering, "log", lambda terminal: None)
    connection.close()
    with pytest.raises(SandboxLost, match=r"its log ends with: \(it cannot be had: AttributeError: 'NoneType'"):
        connection.request("anything", timeout=20)


def error(**fields: object) -> Answer:
    return lambda header: pack({"id": header["id"], "t": "error", "text": "told", **fields})


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (error(kind="os", errno="ENOENT", path="a.py"), FileNotFoundError, "told: 'a.py'"),
        (error(kind="os", errno="EACCES"), PermissionError, "told"),
        (error(kind="os", errno="ENOSUCHERROR"), OSError, "Errno 5"),
        (error(kind="lost"), CommandLost, "told"),
        (error(kind="ended"), CommandEnded, "told"),
        (error(kind="internal"), SandboxError, "the guest failed: told"),
        (error(kind="os", errno="ETIMEDOUT"), TimeoutError, "told"),
    ],
)
def test_errors_of_the_guest_are_typed(connect: Connect, answer: Answer, kind: type[Exception], said: str) -> None:
    connection = connect(answer)
    with pytest.raises(kind, match=said):
        connection.request("anything", timeout=20)
    assert connection.alive


@pytest.mark.parametrize(
    "nonsense",
    [b"\0\0\0\2\0\0\0\0[]", b"\0\0\0\2\0\0\0\0{}", b"\0\0\0\1\0\0\0\0{", b"\xff" * 8, b'\0\0\0\x0a\0\0\0\0{"id":null}'],
)
def test_a_guest_that_sends_nonsense_is_given_up(connect: Connect, nonsense: bytes) -> None:
    connection = connect(lambda header: nonsense)
    with pytest.raises(SandboxLost, match="during anything"):
        connection.request("anything", timeout=20)
    assert not connection.alive
    with pytest.raises(SandboxLost):
        connection.request("more", timeout=20)
    with pytest.raises(SandboxLost):
        connection.send({"of": 1})


def flood(header: Header) -> bytes:
    """More than anybody asked for: a frame that says that it is long, and some of it."""
    whole = pack({"id": header["id"], "t": "data"}, bytes(1 << 22))
    return whole[: 1 << 16]


def trickle(header: Header) -> bytes:
    """Small frames, of which there are too many."""
    return pack({"id": header["id"], "t": "data", "x": "x" * 1000}) * 2000


def long_header(header: Header) -> bytes:
    return pack({"id": header["id"], "t": "done", "x": "x" * (1 << 22)})


def to_nobody(header: Header) -> bytes:
    return pack({"id": 10**6, "t": "data"}, bytes(1 << 21))


@pytest.mark.parametrize("answer", [flood, trickle, long_header, to_nobody])
def test_no_more_is_taken_than_was_asked_for(connect: Connect, answer: Answer) -> None:
    connection = connect(answer)
    connection.submit(Waiter(), "anything")
    wait_until(lambda: not connection.alive)
    with pytest.raises(SandboxLost, match=r"more than it was asked for|stream is corrupt"):
        connection.request("more", timeout=20)


def test_who_asks_for_much_gets_it(connect: Connect) -> None:
    connection = connect(lambda header: pack({"id": header["id"], "t": "done"}, bytes(1 << 22)))
    assert len(connection.request("anything", timeout=20, room=(1 << 22) + 100)[1]) == 1 << 22


def test_a_file_is_no_longer_than_it_was_asked_for(connect: Connect) -> None:
    """Whatever speaks for the guest: a hundred bytes of a file are not four hundred megabytes."""
    connection = connect(flood)

    class Files(FileRequests):
        def _connect(self) -> Connection:
            return connection

    with pytest.raises(SandboxLost, match="more than it was asked for"):
        Files().read("small.txt", 0, 100)


def test_a_program_sends_no_more_than_is_taken(connect: Connect) -> None:
    message = bytes(1 << 20)

    def chatter(header: Header) -> bytes:
        started = pack({"id": header["id"], "t": "started", "pid": 1, "warm": False})
        return started + pack({"id": header["id"], "t": "message"}, message) * 200

    connection = connect(chatter)
    process = Process(connection, 1 << 16)
    process.start(lambda handler: connection.submit(handler, "process"))
    wait_until(lambda: not connection.alive)
    taken = 0
    with pytest.raises(SandboxLost, match="more than it was asked for"):
        while process.receive(5) == message:
            taken += 1
    assert 1 < taken < 150


def test_replies_to_nobody_are_passed_over(connect: Connect) -> None:
    answers = iter([pack({"id": 99, "t": "done"}) + pack({"id": 98, "t": "data"})])
    connection = connect(lambda header: next(answers, b"") + pack({"id": header["id"], "t": "done", "n": 1}))
    assert connection.request("anything", timeout=20)[0]["n"] == 1
    assert connection.request("anything", timeout=20)[0]["n"] == 1


def test_another_version_is_refused() -> None:
    with pytest.raises(SandboxError, match=r"the guest speaks version 0, not 1\b.*its log ends with: its last line"):
        Connection(Answering(Guest(lambda header: b"", version=0)), {"root": "/", "env": {}})


def test_a_guest_that_does_not_answer_is_hung(connect: Connect) -> None:
    connection = connect(lambda header: pack({"id": header["id"], "t": "data"}))
    waiter = Waiter()
    connection.submit(waiter, "anything")
    assert connection.wait(waiter, "anything", 20)[0]["t"] == "data"
    with pytest.raises(SandboxLost, match=r"did not answer within 0.05 s.*during anything"):
        connection.wait(waiter, "anything", 0.05)


def test_a_guest_that_takes_nothing_is_hung(connect: Connect) -> None:
    connection = connect(lambda header: b"")
    guest = connection._terminal.guest  # type: ignore[attr-defined]
    guest.taking.clear()
    errors: list[BaseException] = []

    def send() -> None:
        try:
            connection.send({"of": 1}, b"x" * 3_000_000)
        except SandboxLost as error:
            errors.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    wait_until(lambda: connection._writing_since is not None)
    began = connection._writing_since
    assert began is not None
    connection.check_stall(began + STALL_TIMEOUT - 1)
    assert connection.alive
    connection.check_stall(began + STALL_TIMEOUT + 1)
    thread.join(20)
    assert "took nothing from its stream" in str(errors[0])


def test_a_guest_that_refused_to_say_that_it_is_there_is_asked_again(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "ANSWER_TIMEOUT", 0.05)
    pings: list[Header] = []

    def answer(header: Header) -> bytes:
        pings.extend([header] if header["op"] == "ping" else [])
        return error(kind="os", errno="EIO")(header) if pings == [header] else pack({"id": 10**6, "t": "data"})

    connection = connect(answer)
    connection.submit(Waiter(), "anything")

    def asked(times: int) -> bool:
        connection.check_silence(time.monotonic() + SILENCE + 1)
        return len(pings) == times

    wait_until(lambda: asked(1))
    assert connection.alive
    wait_until(lambda: asked(2))
    wait_until(lambda: not connection.alive)


def test_an_interrupted_start_leaves_no_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Connection, "wait", interrupted)
    guest = Guest(lambda header: b"")
    with pytest.raises(KeyboardInterrupt):
        Connection(Answering(guest), {"root": "/", "env": {}})
    assert guest.closed.is_set()


def test_what_guests_say_of_their_bytecode_fills_no_memory() -> None:
    for number in range(100):
        guest_program(f"no magic {number}")
    assert guest_program.cache_info().currsize < 10


def test_a_forked_process_has_no_part_in_it(connect: Connect) -> None:
    connection = connect(lambda header: pack({"id": header["id"], "t": "done"}))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            connection.request("anything", timeout=20)
        except SandboxLost as lost:
            os.write(write, str(lost).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as told:
        assert "belongs to the process that this one was forked from" in told.read()
    assert connection.request("anything", timeout=20)[0]["t"] == "done"


def test_a_program_whose_end_is_no_answer_is_lost(connect: Connect) -> None:
    def end(header: Header) -> bytes:
        started = pack({"id": header["id"], "t": "started", "pid": 1, "warm": False})
        return started + pack({"id": header["id"], "t": "exit"})

    connection = connect(end)
    process = Process(connection, 1 << 16)
    process.start(lambda handler: connection.submit(handler, "process"))
    with pytest.raises(SandboxLost, match="lacks 'status'"):
        process.wait(20)


@pytest.mark.parametrize(
    ("kind", "warm"), [("", False), ("text of no kind", False), ("started", False), ("started", True)]
)
def test_a_program_says_nothing_that_nobody_counts(connect: Connect, kind: str, warm: bool) -> None:
    def flood(header: Header) -> bytes:
        started = pack({"id": header["id"], "t": "started", "pid": 1, "warm": warm})
        return started + pack({"id": header["id"], "t": kind, "pid": 1, "warm": warm})

    connection = connect(flood)
    process = Process(connection, 1 << 16)
    process.start(lambda handler: connection.submit(handler, "process"))
    with pytest.raises(SandboxLost, match="of a program"):
        process.wait(20)
    assert not connection.alive


def test_a_large_file_comes_in_pieces_of_which_none_costs_more_than_its_bytes() -> None:
    size, piece = 1 << 30, 1 << 18
    waiter = Waiter(ROOM + size)
    assert all(waiter.admit(piece + 30) for _ in range(size // piece))


def test_output_without_a_gap_is_bounded_whatever_its_head() -> None:
    printed = PrintedOutput(1000)
    for _ in range(100):
        printed.add({"head": 0}, b"x" * 10_000)
    assert len(printed.take()[0]) < 1100
