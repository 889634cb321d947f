"""Which keepers have a zygote, for what programs, and when there is room for one."""

import collections
import contextlib
import json
import time

from .frames import pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .children import Child
    from .surroundings import Surroundings

READY = "debug_gym_ready"  # see the package `zygote`

ZYGOTES = 2  # interpreters with modules loaded that are kept for warm starts
PREPARATIONS = 4  # times that one for the same kind of program is prepared
PREPARE_PATIENCE = 60.0  # seconds that the preparation may take
IDLE = 900.0  # seconds without a program after which a zygote is given up
REST = 3.0  # seconds without a word of the host, as when a model thinks, after which there is time to prepare one
OFTEN = 3  # cold starts of one kind after which one is prepared without such a time

SAFE_FLAGS = frozenset(("-B", "-b", "-E", "-I", "-O", "-P", "-q", "-s", "-S", "-u", "-W", "-X"))
SAFE_OPTIONS = frozenset(("dev", "utf8", "utf8=0", "utf8=1"))  # of -X
UNSAFE_VARIABLES = (
    b"PYTHONVERBOSE PYTHONPROFILEIMPORTTIME PYTHONTRACEMALLOC PYTHONINSPECT PYTHONDEBUG PYTHONDUMPREFS PYTHONSTARTUP"
    b" PYTHONPERFSUPPORT LD_PRELOAD LD_AUDIT COVERAGE_PROCESS_START COV_CORE_SOURCE COV_CORE_CONFIG"
).split()


def warm_kind(header: "dict[str, Any]", surroundings: "Surroundings") -> str:
    """What programs must agree in to be forked from one zygote; empty for those that are always started cold.

    Its flags and variables must be ones that do not act while modules are loaded. Where the seed of hashes is drawn
    at each start, a fork would have that of its zygote.
    """
    argv = header.get("argv") or []
    if not header.get("warm") or "-c" not in argv or header.get("follow"):
        return ""
    if header.get("stdin") and not header.get("pty"):
        return ""
    if not header.get("channel") or "code" not in (header.get("blobs") or {}):
        return ""
    flags = list(argv[1 : argv.index("-c")])
    for before, flag in zip(["", *flags], flags):  # noqa: B905 (Python 3.6)
        if not (before == "-W" or (flag in SAFE_OPTIONS if before == "-X" else flag in SAFE_FLAGS)):
            return ""
    environment = surroundings.environment_with(header.get("env"))
    seed = b"" if {"-E", "-I"} & set(flags) else environment.get(b"PYTHONHASHSEED", b"")
    if not seed.isdigit() or any(environment.get(name) for name in UNSAFE_VARIABLES):
        return ""
    streams = [bool(header.get(name)) for name in ("pty", "stdin")]
    text = "".join(argv[len(flags) + 2 : len(flags) + 3])
    code = [text, header["blobs"]["code"]] if READY in text else []  # part of it will have run
    return json.dumps([argv[0], flags, header.get("env"), streams, header["warm"]["imports"], code])


def memory_is_short() -> bool:
    """Whether the machine, or the control group where one can be seen, has hardly any memory left."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        with open("/proc/meminfo", "rb") as file:
            sizes = {line.split()[0]: int(line.split()[1]) for line in file.read().splitlines()[:8]}
        if sizes[b"MemAvailable:"] < sizes[b"MemTotal:"] // 20:
            return True
    with contextlib.suppress(OSError, ValueError):
        with open("/sys/fs/cgroup/memory.max", "rb") as file:
            most = int(file.read())
        with open("/sys/fs/cgroup/memory.current", "rb") as file:
            return int(file.read()) > most * 9 // 10
    return False


class Nursery:
    """The keepers that have a zygote, or are preparing one, by the kind of programs that it is for.

    Attributes:
        by_kind: those that have loaded all that is known of, or are doing so
        begun: those that were started for the first program of their kind; None: it is there no more
    """

    def __init__(self, fork: "Callable[[], Child]", forget: "Callable[[Child], None]") -> None:
        """Begin with none.

        Args:
            fork: makes a keeper
            forget: gives one up
        """
        self.fork = fork
        self.forget = forget
        self.by_kind = {}  # type: dict[str, Child]
        self.begun = {}  # type: dict[str, Child | None]
        self.preparations = collections.Counter()  # type: collections.Counter[str]
        self.wished = {}  # type: dict[str, dict[str, Any]]
        self.wishes = collections.Counter()  # type: collections.Counter[str]
        self.moment = None  # type: float | None

    def keepers(self) -> "list[Child]":
        """All of them."""
        return [*self.by_kind.values(), *(child for child in self.begun.values() if child is not None)]

    def keeper_for(self, header: "dict[str, Any]", surroundings: "Surroundings") -> "Child | None":
        """The keeper from whose zygote a program is to be forked, if there is one that is ready and free."""
        keepers = self.keepers()
        if keepers and memory_is_short():
            for child in keepers:
                if not child.requests:
                    self.forget(child)
        kind = warm_kind(header, surroundings)
        for known in (self.by_kind.get(kind), self.begun.get(kind)):
            if known is not None and known.ready and not known.requests:
                return known
        return self._begin(kind, header)

    def _begin(self, kind: str, header: "dict[str, Any]") -> "Child | None":
        """A keeper that starts a zygote for the first program of a kind, which is forked from it; once for a kind."""
        if not kind or not header["warm"]["at_once"] or kind in self.begun or kind in self.by_kind:
            return None
        if len(self.keepers()) >= ZYGOTES or memory_is_short():
            return None
        child = self.begun[kind] = self.fork()
        child.kind = kind
        child.link.send(pack(dict(header, op="zygote", at_once=True)))
        return child

    def wish(self, header: "dict[str, Any]", surroundings: "Surroundings") -> None:
        """A program was started cold: prepare for others like it when the host leaves us time, or starts many.

        An episode that is over in seconds starts a program once or twice, and would wait for what it never uses.
        """
        kind = warm_kind(header, surroundings)
        if not kind:
            return
        self.wished[kind] = header
        self.wishes[kind] += self.begun.get(kind) is None  # else the next one is warm as it is
        self.put_off()

    def put_off(self) -> None:
        """The host speaks: what it wants comes first."""
        if self.wished:
            often = any(self.wishes[kind] >= OFTEN for kind in self.wished)
            self.moment = 0.0 if often else time.monotonic() + REST

    def due(self, surroundings: "Surroundings") -> "Iterator[tuple[Child, dict[str, Any]]]":
        """The keepers that are to prepare now, with the program that each prepares for; tell one before the next.

        Making the next may give up another, whose descriptor the next then has.
        """
        if self.moment is None or time.monotonic() < self.moment:
            return
        wished, self.wished, self.moment = self.wished, {}, None
        for header in wished.values():
            child = self.prepare(header, surroundings)
            if child is not None:
                yield child, header

    def prepare(self, header: "dict[str, Any]", surroundings: "Surroundings") -> "Child | None":
        """Make a keeper that is to prepare for programs like one that was just started cold, if there is room."""
        kind = warm_kind(header, surroundings)
        if not kind or kind in self.by_kind or self.preparations[kind] >= PREPARATIONS or memory_is_short():
            return None
        # One that is still preparing keeps its place: giving it up would be its work for nothing.
        idle = [child for child in self.by_kind.values() if child.ready and not child.requests]
        if len(self.by_kind) >= ZYGOTES:
            if not idle:
                return None
            self.forget(idle[0])
        self.preparations[kind] += 1
        child = self.by_kind[kind] = self.fork()
        child.kind = kind
        child.deadline = time.monotonic() + PREPARE_PATIENCE
        return child

    def told(self, child: "Child", state: str) -> None:
        """A keeper tells of its zygote: it is ready, or gone."""
        if state == "ready":
            child.ready = True
            if not child.requests:
                child.deadline = time.monotonic() + IDLE
            begun = self.begun.get(child.kind)
            if begun is not None and begun is not child:  # this one has loaded more
                self.begun[child.kind] = None
                if not begun.requests:
                    self.forget(begun)
            return
        if state == "failed":
            self.preparations[child.kind] = PREPARATIONS
        self.remove(child)
        child.kind, child.ready = "", False
        if not child.requests:
            self.forget(child)

    def free(self, child: "Child") -> None:
        """One has done its program: of all, it is now the last to be given up for another."""
        if self.by_kind.get(child.kind) is child:
            self.by_kind[child.kind] = self.by_kind.pop(child.kind)
        elif self.begun.get(child.kind) is not child:  # there is a better one by now
            self.forget(child)
            return
        child.deadline = time.monotonic() + IDLE

    def remove(self, child: "Child") -> None:
        """A keeper has no zygote, or is itself gone."""
        if self.by_kind.get(child.kind) is child:
            del self.by_kind[child.kind]
        if self.begun.get(child.kind) is child:
            self.begun[child.kind] = None
