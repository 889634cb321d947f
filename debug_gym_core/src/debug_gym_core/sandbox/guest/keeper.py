"""Keepers: each runs one command at a time, is its parent and its subreaper, and ends all that it started."""

import errno
import os
import signal
import time

from .family import KILL_PATIENCE, Family
from .frames import Link, os_error, pack, to_bytes
from .loop import READ, WRITE, Loop
from .spawn import spawn
from .streams import Streams
from .system import (
    MARKER,
    PR_SET_CHILD_SUBREAPER,
    below,
    fence,
    kill_all,
    memory_file,
    prctl,
    process_parents,
    signal_each,
)
from .terminals import echo, set_modes, set_window
from .zygotes import START_PATIENCE, Zygote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .surroundings import Surroundings

TERM_GRACE = 0.5  # seconds between SIGTERM and SIGKILL when a command reached its timeout
LEFTOVER_GRACE = 0.2  # the same for what a command left running when it ended by itself
SWEEP = 0.02  # seconds between two looks for processes that are still to be killed


class Keeper:
    """Runs one command: it bounds its output and its time, and relays messages of a program that has a channel.

    Attributes:
        warm: whether the program is a fork that has not yet said anything
        sent: what it was told meanwhile
    """

    def __init__(self, link: Link, surroundings: "Surroundings") -> None:
        self.link = link
        self.surroundings = surroundings
        self.loop = Loop()
        self.loop.watch(link.read_fd, READ, self._on_link)
        self.subreaper = prctl(PR_SET_CHILD_SUBREAPER, 1)
        if os.getppid() != 1:  # of which the kernel takes care itself
            fence()
        self.host_gone = False
        self.zygote = None  # type: Zygote | None
        self._prepare({})

    def _prepare(self, request: "dict[str, Any]") -> None:
        """Be ready for a command."""
        self.request = request
        self.id = request.get("id", 0)
        self.streams = Streams(self.loop, self.link, request, self._on_message)
        self.family = Family(self.zygote.process if self.zygote is not None else 0)
        self.cwd = b""
        self.started = 0.0
        self.deadline = None  # type: float | None
        self.kill_at = None  # type: float | None
        self.give_up_at = None  # type: float | None
        self.next_sweep = 0.0
        self.ending = False
        self.timed_out = False
        self.kill_requests = []  # type: list[int]
        self.warm = False
        self.sent = []  # type: list[bytes]

    def _reset(self) -> None:
        """Be ready for the next command."""
        self.streams.close()
        self._prepare({})

    # -- requests

    def run(self) -> None:
        """Wait for commands, serve each to its end, until the supervisor goes."""
        while not self.host_gone or self.family.main:
            self.loop.turn(self._patience())
            if self.link.outgoing:
                self.link.flush()
            if self.link.broken and not self.host_gone:
                self._lose_host()
            if self.family.main:
                self._advance()
            self.loop.watch(self.link.write_fd, self._link_events(), self._on_link)
        if self.zygote is not None:
            self._drop_zygote()

    def _link_events(self) -> int:
        events = 0 if self.host_gone else READ
        return events | WRITE if self.link.outgoing else events

    def _on_link(self, events: int) -> None:
        if events & WRITE:
            self.link.flush()
        if events & READ:
            alive = self.link.receive()
            for header, body, _ in self.link.frames():
                self._handle(header, body)
            if not alive:
                self._lose_host()

    def _lose_host(self) -> None:
        """The supervisor is gone: end the command."""
        self.host_gone = True
        self.loop.watch(self.link.read_fd, 0)
        if self.family.main:
            self._begin_end(0.0)

    def _handle(self, header: "dict[str, Any]", body: bytes) -> None:
        op = header["op"]
        if op in ("run", "process"):
            self._start(header, body)
        elif op == "zygote":
            self._start_zygote(header)
        elif op == "blob":
            self.surroundings.blobs[header["digest"]] = body
        elif header.get("of") != self.id:  # about a command that has just ended
            if "id" in header:
                self.link.send(pack({"id": header["id"], "t": "error", "kind": "ended", "text": "has ended"}))
        elif op == "send":
            if self.warm and self.streams.channel is not None:
                self.sent.append(body)
            self.streams.send(body)
        elif op == "stdin":
            self.streams.feed(body, bool(header.get("close")))
        elif op == "ack":
            self.streams.acknowledge(header.get("messages", 0), header.get("text", 0))
        elif op == "checkpoint":
            self.family.checkpoint()
            if self.streams.terminal_fd >= 0:
                set_modes(self.streams.slave_fd)
        elif op == "kill":
            self.kill_requests.append(header["id"])
            self._begin_end(0.0)
        elif "id" in header:
            self._answer(op, header)

    def _answer(self, op: str, header: "dict[str, Any]") -> None:
        """Do what is answered at once."""
        fields, data = {}, b""  # type: dict[str, Any], bytes
        if op == "output":
            self.streams.drain()
            output, data = self.streams.output.take()
            fields.update(output)
        elif op == "signal":
            fields["count"] = self.family.signal(header.get("pid") or self.family.main, header["number"])
        elif op == "signal_since":
            itself, again = bool(header.get("itself")), bool(header.get("again"))
            fields["count"] = self.family.signal_since(header["number"], itself, header.get("most"), again)
        elif op == "echo":
            fields["echo"] = echo(self.streams.slave_fd, header.get("state"))
        elif op == "resize":
            if self.streams.terminal_fd >= 0:
                set_window(self.streams.terminal_fd, header["rows"], header["columns"])
        else:
            self.link.send(pack({"id": header["id"], "t": "error", "kind": "internal", "text": "unknown request"}))
            return
        self.link.send(pack(dict(fields, id=header["id"], t="done"), data))

    # -- start

    def _start(self, request: "dict[str, Any]", body: bytes) -> None:
        started = time.monotonic()
        self._await_zygote(request)
        self._prepare(request)
        self.started = started
        if self._try_spawn(body) and request.get("timeout") is not None:
            self.deadline = self.started + request["timeout"]

    def _try_spawn(self, stdin: bytes) -> bool:
        """Start the program and tell the host, or refuse."""
        request = self.request
        try:
            self._spawn(stdin)
        except OSError as error:
            known = error.filename == self.cwd
            subject = request.get("cwd") if known else request.get("argv", ["the shell"])[0]
            self._refuse(os_error(error, subject or "."))
            return False
        except ValueError as error:  # a NUL in an argument
            self._refuse(os_error(OSError(errno.EINVAL, str(error))))
            return False
        except Exception as error:
            self._refuse({"t": "error", "kind": "internal", "text": repr(error)})
            return False
        if request["op"] == "process":
            self.link.send(pack({"id": self.id, "t": "started", "pid": self.family.main, "warm": self.warm}))
        return True

    def _refuse(self, reply: "dict[str, Any]") -> None:
        self.link.send(pack(dict(reply, id=self.id)))
        self._reset()

    def _spawn(self, stdin: bytes) -> None:
        request, streams, family = self.request, self.streams, self.family
        environment = self.surroundings.environment_with(request.get("env"))
        if not self.subreaper:
            family.marker = "%d-%d-%s" % (os.getpid(), self.id, os.urandom(4).hex())
            environment[to_bytes(MARKER)] = to_bytes(family.marker)
        if "shell" in request:
            argv = [self.surroundings.shell, b"-c", to_bytes(request["shell"])]
        else:
            argv = [to_bytes(part) for part in request["argv"]]
        passed = {}  # type: dict[str, int]
        theirs = -1, -1
        try:
            if request.get("channel"):
                passed["{channel}"] = streams.open_channel()
            for name, digest in (request.get("blobs") or {}).items():
                passed["{blob:" + name + "}"] = memory_file(self.surroundings.blobs[digest])
            places = {to_bytes(place): b"%d" % descriptor for place, descriptor in passed.items()}
            argv = [places.get(part, part) for part in argv]
            theirs = streams.open(request, bool(stdin))
            self.cwd = os.path.join(self.surroundings.root, to_bytes(request.get("cwd") or "."))
            family.main = self._fork_warm(theirs, passed)
            self.warm = family.main > 0
            if not self.warm:
                family.main = spawn(argv, environment, self.cwd, theirs, passed.values(), streams.terminal_fd >= 0)
        finally:
            for descriptor in {*passed.values(), *theirs} - {streams.slave_fd, -1}:
                os.close(descriptor)
        if stdin:
            streams.feed(stdin, streams.terminal_fd < 0 and not request.get("stdin"))
        streams.watch_output()
        streams.watch_channel()

    # -- warm starts

    def _start_zygote(self, request: "dict[str, Any]") -> None:
        """Prepare an interpreter from which programs like the one that was asked for are forked."""
        self.zygote = Zygote(request, self.surroundings)
        try:
            self.zygote.start(self.subreaper)
        except (OSError, ValueError):
            self._lose_zygote("failed")
        else:
            self.loop.watch(self.zygote.connection.fileno(), READ, self._on_zygote)

    def _await_zygote(self, request: "dict[str, Any]") -> None:
        """Wait for one that is started for this very program; nothing else is asked of us meanwhile."""
        if self.zygote is not None and not self.zygote.process:
            if self.zygote.speaks(min(START_PATIENCE, (request.get("timeout") or START_PATIENCE) / 2)):
                self._on_zygote(READ)
            else:
                self._lose_zygote("lost")

    def _on_zygote(self, _events: int) -> None:
        """It is ready, or gone."""
        zygote = self.zygote
        assert zygote is not None
        told = zygote.receive(0.0)
        if "ready" not in told or zygote.printed():
            self._lose_zygote("lost" if zygote.process or told else "failed")
            return
        zygote.process = self.family.spared = told["ready"]
        self.family.reap()
        kill_all(self.family.descendants)  # what imports left behind
        self.link.send(pack({"id": 0, "t": "zygote", "state": "ready"}))

    def _lose_zygote(self, state: str) -> None:
        """Do without it; `state`: stale, lost or failed."""
        self._drop_zygote()
        self.link.send(pack({"id": 0, "t": "zygote", "state": state}))

    def _drop_zygote(self) -> None:
        zygote, self.zygote = self.zygote, None
        assert zygote is not None
        self.family.spared = 0
        self.loop.watch(zygote.connection.fileno(), 0)
        zygote.close()
        if self.family.main == 0:
            kill_all(lambda: below([os.getpid()], process_parents()))
        elif zygote.process:
            signal_each([zygote.process], signal.SIGKILL)

    def _fork_warm(self, streams: "tuple[int, int]", passed: "dict[str, int]") -> int:
        """Have the zygote fork the program, whose parent we become; 0: it has to be started."""
        zygote = self.zygote
        if zygote is None or not zygote.process or not os.path.isdir(self.cwd):
            return 0
        process, state = zygote.start_program(self.request, self.cwd, streams, passed, self.streams.terminal_fd >= 0)
        if not process:
            self._lose_zygote(state)
        return process

    def _on_message(self) -> None:
        """The program says something."""
        self.warm = False
        del self.sent[:]
        self.family.let_go()

    def _start_again(self) -> None:
        """A fork ended before it said anything: start the program as if there had been none."""
        self.family.main = 0
        self._lose_zygote("failed")
        self.family.reap()
        request, sent, started, deadline = self.request, self.sent, self.started, self.deadline
        at_end = self.streams.close_stdin
        self.streams.close()
        self._prepare(request)
        self.started, self.deadline = started, deadline
        if self._try_spawn(b""):
            for message in sent:
                self.streams.send(message)
            if at_end:
                self.streams.feed(b"", True)

    # -- the end

    def _patience(self) -> "float | None":
        times = [self.kill_at, self.give_up_at] if self.ending else [self.deadline]
        if self.ending and self.kill_at is None:
            times.append(self.next_sweep)
        times.append(self.family.hold_until if self.family.held else None)
        known = [moment for moment in times if moment is not None]
        return max(0.0, min(known) - time.monotonic()) if known and self.family.main else None

    def _advance(self) -> None:
        """Move on what time or a child's end moves."""
        family = self.family
        if self.loop.child_changed:
            self.loop.child_changed = False
            family.reap()
        now = time.monotonic()
        if family.held and now >= family.hold_until:
            family.let_go()
        if not self.ending:
            if not family.running:
                if self.warm:
                    self.streams.drain_channel()
                if self.warm:
                    self._start_again()
                    return
                if family.gone():
                    self._finish()
                    return
                self._begin_end(LEFTOVER_GRACE)
            elif self.deadline is not None and now >= self.deadline:
                self.timed_out = True
                self._begin_end(TERM_GRACE)
        if not self.ending:
            return
        if not family.running and family.gone():
            self._finish()
            return
        if self.kill_at is not None and now >= self.kill_at:
            self.kill_at = None
            self.give_up_at = now + KILL_PATIENCE
            self.next_sweep = now
        if self.kill_at is None and now >= self.next_sweep:
            family.stop_group()
            kill_all(family.descendants)
            self.next_sweep = time.monotonic() + SWEEP
            self.loop.child_changed = True
        if self.give_up_at is not None and now >= self.give_up_at:
            self._finish()

    def _begin_end(self, grace: float) -> None:
        """End whatever lives of the command, politely for `grace` seconds."""
        now = time.monotonic()
        if self.ending:
            if grace == 0.0 and self.kill_at is not None:
                self.kill_at = now
            return
        self.ending = True
        self.kill_at = now + grace
        if grace and not self.family.ask_to_end():
            self.kill_at = now

    def _finish(self) -> None:
        streams, family = self.streams, self.family
        streams.draining = True
        streams.drain()
        streams.unacknowledged = 0
        streams.drain_channel()
        fields, data = streams.output.take()
        reply = dict(fields, id=self.id, t="done" if self.request["op"] == "run" else "exit")  # type: dict[str, Any]
        reply["clean"] = not family.running and family.gone()
        reply["status"] = -signal.SIGKILL if family.status is None else family.status
        reply["timed_out"] = self.timed_out
        reply["seconds"] = time.monotonic() - self.started
        self.link.send(pack(reply, data))
        for request in self.kill_requests:
            self.link.send(pack({"id": request, "t": "done"}))
        self._reset()
