"""The supervisor: the process that speaks to the host, and has all others do the work."""

import collections
import gc
import os
import signal
import socket
import sys
import time

from .children import KEEPER_GRACE, Child, Request
from .family import KILL_PATIENCE
from .frames import Link, pack
from .keeper import Keeper
from .loop import READ, WRITE, Loop
from .nursery import Nursery
from .surroundings import Surroundings
from .system import below, kill_all, process_parents, run_forked, shortcomings, signal_each
from .worker import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

VERSION = 1
FINAL = frozenset(["done", "error", "exit"])

END_PATIENCE = 2.5  # seconds that keepers have to end their commands when the host is gone
LULL = 0.002  # seconds without an event after which the host, that has just started us, does not wait for anything
SPARES = 4  # keepers that wait for a command
BACKLOG = 1 << 22  # bytes for the host that wait before children are read no more


class Supervisor:
    """Passes frames between the host and the children, which it starts and replaces."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.host = Link(0, 1)
        self.surroundings = None  # type: Surroundings | None
        self.children = {}  # type: dict[int, Child]
        self.routes = {}  # type: dict[int, Child]
        self.worker = None  # type: Child | None
        self.spares = []  # type: list[Child]
        self.waiting = collections.deque()  # type: collections.deque[Request]
        self.failures = []  # type: list[bytes]
        self.sweep_until = None  # type: float | None
        self.held = set()  # type: set[int]
        self.over = False
        self.prepared = False
        self.nursery = Nursery(self._fork_keeper, self._forget)
        self.loop.watch(0, READ, self._on_host)

    def run(self) -> None:
        """Serve until the host goes, then end everything."""
        while not self.over:
            happened = self.loop.turn(self._patience())
            self._look_after_children()
            if self.surroundings is not None and not self.over:
                self._prepare(not happened)
            self.host.flush()
            if self.host.broken:
                self.over = True
            self.loop.watch(1, WRITE if self.host.outgoing else 0, self._on_host_writable)
            if self.held and self.host.waiting < BACKLOG // 2:
                for descriptor in self.held:
                    child = self.children.get(descriptor)
                    if child is not None:
                        self._watch(child)
                self.held.clear()
        self._end()

    def _patience(self) -> "float | None":
        if self.sweep_until is not None:
            return 0.02
        deadlines = [child.deadline for child in self.children.values() if child.deadline is not None]
        if self.nursery.moment is not None:
            deadlines.append(self.nursery.moment)
        if self.surroundings is not None and not self.prepared:
            deadlines.append(time.monotonic() + LULL)
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    # -- the host's frames

    def _on_host_writable(self, _events: int) -> None:
        self.host.flush()

    def _on_host(self, _events: int) -> None:
        alive = self.host.receive()
        for header, body, frame in self.host.frames():
            self._handle(header, body, frame)
        if not alive:
            self.over = True

    def _handle(self, header: "dict[str, Any]", body: bytes, frame: bytes) -> None:
        self.nursery.put_off()
        op = header["op"]
        if "of" in header:
            child = self.routes.get(header["of"])
            if child is not None:
                if "id" in header:
                    self._route(header["id"], child)
                if op == "kill":
                    child.deadline = time.monotonic() + KILL_PATIENCE + KEEPER_GRACE
                self._send(child, frame)
            elif "id" in header:
                self.host.send(pack({"id": header["id"], "t": "error", "kind": "ended", "text": "has ended"}))
        elif op in ("run", "process"):
            self._command(Request(header, frame))
        elif op == "grep":  # by a process of its own, since it may have to be killed
            self._give(self._fork_worker(), Request(header, frame, last=True))
        elif op == "start":
            self._start(header)
        elif op == "blob":
            assert self.surroundings is not None
            self.surroundings.blobs[header["digest"]] = body
            while self.spares:  # they were forked without it
                self._forget(self.spares.pop())
            for child in self.nursery.keepers():
                self._send(child, frame)
            self.host.send(pack({"id": header["id"], "t": "done"}))
        elif op == "ping":
            self.host.send(pack({"id": header["id"], "t": "done"}))
        else:
            self.waiting.append(Request(header, frame))
            self._feed_worker()

    def _command(self, request: Request) -> None:
        """Have a keeper run a command; the last time it is tried, one that no zygote can fail."""
        assert self.surroundings is not None
        known = None if request.last else self.nursery.keeper_for(request.header, self.surroundings)
        self._give(known or self._keeper(), request)

    def _start(self, header: "dict[str, Any]") -> None:
        self.surroundings = Surroundings(header)
        hello = {"t": "hello", "id": header["id"], "version": VERSION, "pid": os.getpid()}
        hello.update(python=list(sys.version_info[:3]), notes=shortcomings())
        self.host.send(pack(hello))

    def _route(self, request: int, child: Child) -> None:
        self.routes[request] = child
        child.requests.add(request)

    def _give(self, child: Child, request: Request) -> None:
        """Have a child do it."""
        child.begin(request)
        self._route(request.id, child)
        self._send(child, request.frame)
        child.untouched = True

    def _send(self, child: Child, frame: bytes) -> None:
        child.link.send(frame)
        child.untouched = False
        if child.link.outgoing:
            self._watch(child)

    def _feed_worker(self) -> None:
        """Give the worker its next request; one at a time, so that its death costs one."""
        if self.waiting and (self.worker is None or not self.worker.busy):
            self.worker = self.worker or self._fork_worker()
            self._give(self.worker, self.waiting.popleft())

    # -- the children

    def _fork(self, main: "Callable[[socket.socket], None]") -> Child:
        ours, theirs = socket.socketpair()
        process = os.fork()
        if process == 0:
            run_forked(lambda: self._in_child(ours, theirs, main))
        theirs.close()
        child = Child(process, ours)
        self.children[ours.fileno()] = child
        self._watch(child)
        return child

    def _in_child(self, ours: socket.socket, theirs: socket.socket, main: "Callable[[socket.socket], None]") -> None:
        """Let go of everything that is the supervisor's, above all the host's stream."""
        self.loop.close_after_fork()
        ours.close()
        for child in self.children.values():
            child.connection.close()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0, False)
        os.dup2(null, 1, False)
        os.close(null)
        main(theirs)

    def _fork_keeper(self) -> Child:
        surroundings = self.surroundings
        assert surroundings is not None

        def main(connection: socket.socket) -> None:
            Keeper(Link(connection.fileno(), connection.fileno()), surroundings).run()

        child = self._fork(main)
        child.blobs = len(surroundings.blobs)
        return child

    def _keeper(self) -> Child:
        return self.spares.pop() if self.spares else self._fork_keeper()

    def _fork_worker(self) -> Child:
        surroundings = self.surroundings
        assert surroundings is not None

        def main(connection: socket.socket) -> None:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            Worker(connection, surroundings).run()

        return self._fork(main)

    def _prepare(self, idle: bool) -> None:
        """Do while the host is not waiting what makes commands quick: the first one, and such as come often."""
        assert self.surroundings is not None
        for child, header in self.nursery.due(self.surroundings):
            self._send(child, pack(dict(header, op="zygote")))
        if self.prepared or not idle:
            return
        self.prepared = True
        import subprocess  # noqa: F401

        if hasattr(gc, "freeze"):
            gc.freeze()
        if not self.spares:
            self.spares.append(self._fork_keeper())

    def _release(self, child: Child, clean: bool) -> None:
        """A keeper has done its command: it serves the next one if it left nothing and knows all blobs."""
        assert self.surroundings is not None
        child.deadline = None
        if clean and child.ready:
            self.nursery.free(child)
        elif clean and len(self.spares) < SPARES and child.blobs == len(self.surroundings.blobs):
            self.spares.append(child)
        else:
            self._forget(child)

    def _watch(self, child: Child) -> None:
        if child.callback is None:
            child.callback = lambda events: self._on_child(child, events)
        self.loop.watch(child.link.read_fd, READ | WRITE if child.link.outgoing else READ, child.callback)

    def _on_child(self, child: Child, events: int) -> None:
        if events & WRITE:
            child.link.flush()
        if events & READ:
            alive = child.link.receive()
            done = wish = None  # type: dict[str, Any] | None
            for header, _, frame in child.link.frames():
                if header["t"] == "zygote":
                    self.nursery.told(child, header["state"])
                    if not child.requests and not child.ready:
                        return
                    child.wish = child.request.warm if child.request is not None and child.requests else None
                    continue
                number, child.untouched = header["id"], False
                if header["t"] in FINAL:
                    child.requests.discard(number)
                    self.routes.pop(number, None)
                    if child.request is not None and number == child.request.id:
                        done = header
                self.host.send(frame)
                if child.wish is not None and (done or header["t"] == child.wish["warm"]["after"]):
                    wish, child.wish = child.wish, None
            if wish is not None:
                assert self.surroundings is not None
                self.nursery.wish(wish, self.surroundings)
            if not alive:
                self._lose(child)
                return
            if child is self.worker:
                self._feed_worker()
            elif child.request is not None and not child.busy:
                child.clean = child.clean if done is None else bool(done.get("clean"))
                if not child.requests:
                    child.request = None
                    self._release(child, child.clean)
                    if child not in self.spares:
                        return
            if self.host.waiting > BACKLOG:
                self.loop.watch(child.link.read_fd, 0)
                self.held.add(child.link.read_fd)
                return
        self._watch(child)

    def _forget(self, child: Child) -> None:
        descriptor = child.link.read_fd
        self.nursery.remove(child)
        self.loop.watch(descriptor, 0)
        self.held.discard(descriptor)
        self.children.pop(descriptor, None)
        child.connection.close()
        for request in child.requests:
            self.routes.pop(request, None)

    def _lose(self, child: Child) -> None:
        """A child closed its stream: it is done, or died. What it did not take is done again by another, once."""
        again = None  # type: Request | None
        self._forget(child)
        if child in self.spares:
            self.spares.remove(child)
        if child.requests and not child.busy:  # it was done; these came too late
            for number in child.requests:
                self.host.send(pack({"id": number, "t": "error", "kind": "ended", "text": "has ended"}))
        elif child.requests:
            signal_each([child.process], signal.SIGKILL)
            again = child.untaken()
            if again is None:
                self.failures += [child.failure(number) for number in child.requests]
            self.sweep_until = time.monotonic() + KILL_PATIENCE
            while self.spares:  # what killed it may have killed them, too, and they are not gone yet
                self._forget(self.spares.pop())
        if child is self.worker:
            self.worker = None
            if again is not None:
                self.waiting.appendleft(again)
            self._feed_worker()
        elif again is not None:
            self._command(again)

    def _look_after_children(self) -> None:
        now = time.monotonic()
        for child in [c for c in self.children.values() if c.deadline is not None and now >= c.deadline]:
            child.deadline = None
            if child.requests:
                child.late = True
                signal_each([child.process], signal.SIGKILL)
            elif child.kind:
                self._forget(child)
        if self.loop.child_changed:
            self.loop.child_changed = False
            self._reap()
        # What a dead keeper left has become ours; the failure is told when that is gone.
        if self.sweep_until is not None and (not kill_all(self._strangers) or now >= self.sweep_until):
            self.sweep_until = None
            for frame in self.failures:
                self.host.send(frame)
            del self.failures[:]

    def _reap(self) -> None:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if process == 0:
                return
            if os.WIFSTOPPED(status):  # a command stopped its keeper
                signal_each([process], signal.SIGCONT)

    def _strangers(self) -> "set[int]":
        """Descendants that belong to no living child."""
        parents = process_parents()
        own = {child.process for child in self.children.values()}
        me = os.getpid()
        orphans = {process for process, parent in parents.items() if parent == me and process not in own}
        return orphans | below(orphans, parents)

    def _end(self) -> None:
        """End every process: keepers by closing their streams, what they leave by force."""
        self.host.flush()
        for child in list(self.children.values()):
            self._forget(child)
        end = time.monotonic() + END_PATIENCE
        self.loop.watch(0, 0)
        self.loop.watch(1, 0)
        while True:
            self._reap()
            try:
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            left = end - time.monotonic()
            if left <= 0:
                break
            self.loop.turn(min(left, 0.1))
        for _ in range(50):
            if not kill_all(lambda: below([os.getpid()], process_parents())):
                return
            self._reap()
