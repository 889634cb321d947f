"""Programs that do to a debugger what Python lets them do, for test_random_commands.py; see hostile_processes.py."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

HEAD = """\
turn = -1


def walk(n):
    here = 5
    here = 6
    if n >= 0:
        here = 8
    here = helper(9)
    here = 10
    return here


def helper(value):
    kept = value
    return kept


"""
"""How each program begins."""

HERE = {6: 5, 7: 6, 8: 6, 9: 8, 10: 9, 11: 10}
"""What `here` is in `walk`, before each line of it."""

CODE_LINES = (5, 6, 7, 8, 9, 10, 11, 15, 16)
"""Lines that a breakpoint can be set on."""

OTHER_LINES = (2, 3, 12, 900)
"""Lines that none can be set on."""


@dataclass(frozen=True)
class Hostile:
    """A program.

    Attributes:
        code: follows HEAD
        probes: expressions and what `p` prints for them wherever `walk` is on the stack
        timeout: seconds that a command may take
        share: how many commands it gets, relative to others; less where commands run into the timeout
    """

    code: str
    probes: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 10.0
    share: float = 1.0

    @property
    def source(self) -> str:
        """The whole program."""
        return HEAD + textwrap.dedent(self.code)


PROGRAMS = {
    "catches everything": Hostile(
        """
        import sys
        def stubborn():
            global turn
            while turn < 25:
                try:
                    turn += 1
                    walk(turn)
                    raise KeyboardInterrupt
                except BaseException:
                    pass
                finally:
                    try:
                        walk(turn)
                    except:
                        continue
        sys.excepthook = lambda *args: 1 / 0
        stubborn()
        """,
    ),
    "traces": Hostile(
        """
        import sys, threading
        seen = []
        def tracer(frame, event, arg):
            seen.append(event)
            del seen[:-5]
            return tracer
        def raises(frame, event, arg):
            raise ValueError("traced")
        for turn in range(12):
            walk(turn)
            if turn == 2:
                sys.settrace(None)
                threading.settrace(None)
            if turn == 4:
                sys.settrace(tracer)
            if turn == 6:
                sys.setprofile(tracer)
            if turn == 8:
                sys.setprofile(None)
                sys._getframe().f_trace = tracer
                try:
                    sys.settrace(raises)
                    walk(turn)
                except ValueError:
                    pass
            if turn == 10:
                sys.settrace(None)
                sys._getframe().f_trace = None
        """,
    ),
    "exits": Hostile(
        """
        import atexit, sys, threading
        class Exits:
            def __repr__(self):
                sys.exit(5)
            def __del__(self):
                sys.exit(6)
            def __str__(self):
                raise SystemExit("str")
        atexit.register(walk, 1)
        atexit.register(sys.exit, 7)
        def leave(n):
            held = Exits()
            walk(n)
            sys.exit("(Pdb) ")
        for turn in range(6):
            try:
                leave(turn)
            except SystemExit as error:
                walk(turn)
        thread = threading.Thread(target=leave, args=(3,))
        thread.start()
        thread.join()
        try:
            leave(4)
        finally:
            raise SystemExit([Exits()])
        """,
    ),
    "exec": Hostile(
        """
        import sys, types
        names = {"walk": walk}
        for turn in range(10):
            exec("here = 1\\nhere = walk(2)\\nhere = 3\\n" * 3, names)
            exec(compile("\\n" * 4 + "here = 5\\nhere = 6\\nwalk(1)\\n", __file__, "exec"), dict(names))
            exec(compile("\\n\\n\\ndef walk(n):\\n    here = 5\\n    here = 6\\nwalk(1)\\n", "app.py", "exec"), {})
            eval(compile("[walk(one) for one in range(2)]", "<debug-gym>", "eval"))
            eval("walk(3)", {"walk": types.FunctionType(walk.__code__, {"helper": lambda value: value})})
            walk(turn)
            exec("raise ValueError" if turn == 9 else "")
        """,
    ),
    "recursion": Hostile(
        """
        import sys
        def deep(n):
            if n % 50 == 0:
                walk(n)
            return deep(n + 1) if n < 800 else 0
        def endless(n):
            return endless(n + 1)
        for turn in range(3):
            deep(0)
            try:
                endless(0)
            except RecursionError:
                walk(turn)
        depth, frame = 60, sys._getframe()
        while frame is not None:
            depth, frame = depth + 1, frame.f_back
        sys.setrecursionlimit(depth)
        walk(0)
        endless(0)
        """,
    ),
    "reprs": Hostile(
        """
        import time
        class Raises:
            def __repr__(self):
                raise BaseException("repr")
            __str__ = __eq__ = __len__ = __bool__ = __getattribute__ = __repr__
            def __hash__(self):
                return 1
        class Sleeps:
            def __repr__(self):
                time.sleep(0.01)
                return "slept"
        class Prints:
            def __repr__(self):
                print("(Pdb) printed")
                return walk(5) and "prints"
        class Odd(str):
            def __repr__(self):
                return "odd " + str(walk(6))
            __str__ = __repr__
        class Meta(type):
            def __repr__(self):
                raise KeyError(self)
            __name__ = property(lambda self: 1 / 0)
        Strange = Meta("Strange", (dict,), {"__class__": property(lambda self: 1 / 0)})
        def hold(n):
            one, two, three, four = Raises(), Sleeps(), Prints(), Odd("x" * 1000)
            five = {"k": [one, two, three]}
            six = Strange(a=1)
            seven = Strange
            walk(n)
            return five
        for turn in range(6):
            kept = hold(turn)
        raise ValueError(Odd("x"), Prints())
        """,
    ),
    "builtins": Hostile(
        """
        import builtins
        def wrong(*args, **kwargs):
            return 99
        def fails(*args, **kwargs):
            raise RuntimeError("replaced")
        kept = dict(vars(builtins))
        for turn, names in enumerate([["len"], ["print"], ["open"], ["repr", "str"], ["compile", "exec"]]):
            for replacement in (wrong, fails):
                for name in names:
                    setattr(builtins, name, replacement)
                walk(turn)
                vars(builtins).update(kept)
            walk(turn)
        for name in ("len", "print", "open", "sorted", "max", "min", "any", "all", "input"):
            setattr(builtins, name, fails)
        walk(7)
        """,
    ),
    "modules": Hostile(
        """
        import bdb, cmd, json, linecache, os, pdb, signal, struct, sys, threading, time
        def fails(*args, **kwargs):
            raise RuntimeError("replaced")
        walk(0)
        time.monotonic = time.time = time.sleep = time.perf_counter = fails
        json.dumps = json.loads = struct.pack = struct.unpack = fails
        walk(1)
        for name in ("read", "write", "getpid", "stat", "getcwd", "open", "close", "listdir", "readlink", "lstat"):
            setattr(os, name, fails)
        walk(2)
        for name in ("exists", "isfile", "realpath", "abspath", "join", "basename"):
            setattr(os.path, name, fails)
        walk(3)
        threading.current_thread = threading.main_thread = threading.enumerate = threading.get_ident = fails
        signal.signal = signal.setitimer = signal.getsignal = fails
        walk(4)
        sys.settrace = sys.gettrace = sys._getframe = sys._current_frames = fails
        walk(5)
        linecache.getline = linecache.getlines = linecache.checkcache = linecache.updatecache = fails
        walk(6)
        pdb.Pdb.do_p = pdb.Pdb.onecmd = cmd.Cmd.onecmd = pdb.Pdb.interaction = fails
        bdb.Bdb.set_break = bdb.Bdb.canonic = bdb.checkfuncname = fails
        walk(7)
        for name in ("pdb", "bdb", "cmd", "linecache", "json", "reprlib"):
            sys.modules[name] = None
        walk(8)
        sys.modules.clear()
        walk(9)
        """,
    ),
    "coroutines": Hostile(
        """
        import asyncio
        def produce(n):
            try:
                for number in range(n):
                    yield walk(number)
            finally:
                walk(n)
        class Context:
            async def __aenter__(self):
                await asyncio.sleep(0)
                return walk(1)
            async def __aexit__(self, *error):
                await asyncio.sleep(0)
                walk(2)
                return True
        async def several(n):
            async with Context() as found:
                await asyncio.sleep(0.001)
                walk(n)
                if n == 2:
                    raise ValueError(n)
            return [walk(one) for one in produce(n)]
        async def everything():
            await asyncio.gather(*(several(n) for n in range(4)))
            task = asyncio.ensure_future(asyncio.sleep(100))
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                walk(0)
        for turn in range(3):
            loop = asyncio.new_event_loop()
            loop.run_until_complete(everything())
            loop.close()
            unfinished = produce(3)
            next(unfinished)
            del unfinished
        """,
    ),
    "endless": Hostile(
        """
        import time
        walk(0)
        while True:
            turn += 1
            if turn % 20000 == 0:
                walk(turn)
        """,
        timeout=0.3,
        share=0.1,
    ),
    "last words": Hostile(
        """
        import atexit, gc, sys, weakref
        class Dying:
            def __del__(self):
                walk(1)
                raise ValueError("in del")
        class Cycle:
            def __init__(self):
                self.me = self
            __del__ = Dying.__del__
        for turn in range(5):
            Dying()
            Cycle()
            gc.collect()
            finalizer = weakref.finalize(Dying, walk, turn)
        atexit.register(lambda: walk(3))
        atexit.register(lambda: 1 / 0)
        kept = [Dying(), Cycle()]
        sys.modules["kept"] = Dying()
        raise ValueError(kept)
        """,
    ),
}
