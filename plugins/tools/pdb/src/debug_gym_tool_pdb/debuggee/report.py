"""Describes where the program stopped."""

import inspect
import linecache
import sys
import threading
import types

from debug_gym_core.debugging.inside.limits import TimeLimit
from debug_gym_core.debugging.inside.process import _get_ident

from .frames import in_order, is_cleared, is_shown, line_of, other_frames, outwards, real_line
from .groups import members
from .own_frames import is_ours
from .values import MESSAGE_LENGTH, REPR_SECONDS, is_same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Dict, List, Optional, Set, Tuple

    from .files import Files
    from .shown import Shown
    from .values import Values

    Json = Dict[str, Any]

SOURCE_LINES = 4
SOURCE_WIDTH = 200
MOST_LOCALS = 30
MOST_FRAMES = 8
MOST_THREADS = 8
MOST_LISTED = 30
FRAMES_LISTED = 5
UNNAMED = "a thread without a name"
MOST_EXCEPTIONS = 5
MOST_MEMBERS = (5, 3, 1)
"""Exceptions that are shown of a group, of one in it, and of one in that."""

CLEARED = (
    "its variables were deleted, or cleared by the test runner (assertRaises); `trace`, or a breakpoint at the line, "
    "shows them"
)
_COROUTINE_FLAGS = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Reporter:
    """Describes where the program stopped, in JSON types.

    Attributes:
        process: what the process is called; None: it is the first one
    """

    def __init__(self, files: "Files", shown: "Shown", values: "Values") -> None:
        """Describe a program.

        Args:
            files: of its repository
            shown: what was shown of frames before
            values: describes its values
        """
        self.process: "Optional[str]" = None
        self._files = files
        self._shown = shown
        self._values = values

    def place(self, frame: "FrameType", line: int) -> "Json":
        """File, line and function."""
        return {"file": self._files.path(frame.f_code.co_filename), "line": line, "function": frame.f_code.co_name}

    def report(
        self,
        stack: "List[Tuple[FrameType, int]]",
        index: int,
        error: "Optional[BaseException]",
        value: "Tuple[Any, ...]",
    ) -> "Json":
        """Describe a stop.

        Args:
            stack: frames and lines, outermost first
            index: the current frame
            error: the exception that stopped the program
            value: the value that is being returned, in a tuple; empty: none
        """
        frame, line = stack[index]
        result = self.place(frame, line)
        result["thread"] = _thread_names().get(_get_ident(), UNNAMED)
        if self.process is not None:
            result["process"] = self._process_name()
        task = self._task(stack[: index + 1])
        if task is not None:
            result["task"] = task
        result["source"] = self._source(frame, line)
        result["stack"] = self._stack(stack)
        with TimeLimit(REPR_SECONDS) as limit:
            result["locals"] = self._locals(frame, limit)
            if value:
                result["return"] = self._values.describe(value[0], limit)
            if error is not None and is_cleared(frame):
                result["note"] = CLEARED
            if error is not None:
                result["exceptions"] = self._exceptions(error, limit)
        return result

    def _stack(self, stack: "List[Tuple[FrameType, int]]") -> "List[Json]":
        """The innermost frames of the repository; those of a function that calls itself are counted."""
        found: "List[Json]" = []
        for frame, line in reversed(stack):
            if self._files.is_own(frame.f_code.co_filename):
                place = self.place(frame, line)
                if found and all(found[-1][key] == place[key] for key in place):
                    found[-1]["times"] = found[-1].get("times", 1) + 1
                elif len(found) == MOST_FRAMES:
                    break
                else:
                    found.append(place)
        return found

    def _task(self, stack: "List[Tuple[FrameType, int]]") -> "Optional[Json]":
        """The asyncio task that runs, and what awaits what in it: the current frame first."""
        task = _current_task()
        outermost = getattr(task, "_coro", None)
        top = getattr(outermost, "cr_frame", None) or getattr(outermost, "gi_frame", None)
        frames = [frame for frame, _ in stack]
        if top not in frames:
            return None
        inside = stack[frames.index(top) :]
        name = task.get_name() if hasattr(task, "get_name") else getattr(outermost, "__name__", "?")
        awaits = [self.place(f, n) for f, n in reversed(inside) if f.f_code.co_flags & _COROUTINE_FLAGS]
        return {"name": str(name)[:MESSAGE_LENGTH], "awaits": awaits[:MOST_FRAMES]}

    def _process_name(self) -> "Optional[str]":
        """The name that multiprocessing gave to the process, or ours."""
        module = sys.modules.get("multiprocessing.process")
        name = None if module is None else module.current_process().name
        return self.process if name in (None, "MainProcess") else str(name)

    def all_threads(self, stack: "List[Tuple[FrameType, int]]") -> str:
        """Every thread and where it is: innermost first, in the repository's own code when it is in any.

        Args:
            stack: of the calling thread, outermost first
        """
        names = _thread_names()
        here = _get_ident()
        tops = sorted(other_frames().items(), key=lambda one: (one[0] not in names, str(names.get(one[0])), one[0]))
        lines = ["* {}: {}".format(names.get(here, UNNAMED), self._where(list(reversed(stack))))]
        for ident, top in tops[: MOST_LISTED - 1]:
            frames = [(one, line_of(one)) for one in outwards(top) if not is_ours(one)]
            lines.append("  {}: {}".format(names.get(ident, UNNAMED), self._where(frames)))
        if len(tops) >= MOST_LISTED:
            lines.append("  [{} more]".format(len(tops) - MOST_LISTED + 1))
        return "\n".join(lines)

    def _where(self, frames: "List[Tuple[FrameType, int]]") -> str:
        """Calls within each other, innermost first."""
        own = [one for one in frames if self._files.is_own(one[0].f_code.co_filename)]
        places = [self.place(*one) for one in (own or frames[:1])]
        text = " < ".join("{function} {file}:{line}".format(**one) for one in places[:FRAMES_LISTED])
        if len(places) > FRAMES_LISTED:
            text += " < [{} more]".format(len(places) - FRAMES_LISTED)
        return text or "nowhere"

    def threads(self) -> "List[Json]":
        """Where the other threads are, in the repository's own code."""
        names = _thread_names()
        found = []
        for ident, top in other_frames().items():
            frame: "Optional[FrameType]" = top
            while frame is not None and not self._files.is_own(frame.f_code.co_filename):
                frame = frame.f_back
            if frame is not None:
                found.append(dict(self.place(frame, line_of(frame)), name=names.get(ident, UNNAMED)))
        return sorted(found, key=lambda one: str(one["name"]))[:MOST_THREADS]

    def _source(self, frame: "FrameType", line: int) -> "List[Tuple[int, str]]":
        lines = linecache.getlines(self._files.with_lines(frame.f_code.co_filename), frame.f_globals)
        first = max(1, line - SOURCE_LINES)
        window = lines[first - 1 : line + SOURCE_LINES]
        return [(number, text.rstrip("\r\n")[:SOURCE_WIDTH]) for number, text in enumerate(window, first)]

    def _locals(self, frame: "FrameType", limit: "TimeLimit") -> "Json":
        """Locals that changed since the last stop of this frame; of a module, its data only.

        And those for whose text there was no time then.
        """
        values = frame.f_locals
        module_level = values is frame.f_globals
        names = [
            name
            for name, value in list(values.items())
            if is_shown(name)
            and not (module_level and issubclass(type(value), (types.ModuleType, types.FunctionType, type)))
        ]
        names = in_order(names, frame)
        last = self._shown.last(frame)
        before = last or {}
        now = {}
        for name in names[:MOST_LOCALS]:
            try:
                now[name] = self._values.marked(values[name], limit)
            except KeyError:
                continue
        changed = {name: shown[0] for name, shown in now.items() if not is_same(before.get(name), shown)}
        same = [name for name in now if name not in changed]
        self._shown.keep(frame, dict(now, **{name: before[name] for name in same if now[name][2] is None}))
        late = {name: now[name][0] for name in same if before[name][2] is None and now[name][2] is not None}
        found: "Json" = {
            "first": last is None,
            "changed": changed,
            "unchanged": len(now) - len(changed),
            "omitted": max(0, len(names) - MOST_LOCALS),
        }
        return dict(found, late=late) if late else found

    def _exceptions(
        self, error: "BaseException", limit: "TimeLimit", most: "Tuple[int, ...]" = MOST_MEMBERS
    ) -> "List[Json]":
        """The exception and what caused it or was being handled then, innermost last; of groups, what is in them.

        Args:
            error: the exception
            limit: the time in which code of the program's is to be done
            most: how many exceptions are described of a group, of a group in it, and so on
        """
        found: "List[Json]" = []
        seen: "Set[int]" = set()
        current: "Optional[BaseException]" = error
        handled = False
        while current is not None and id(current) not in seen and len(found) < MOST_EXCEPTIONS:
            seen.add(id(current))
            one: "Json" = {"type": type(current).__name__, "message": self._values.message(current, limit)}
            if handled:
                one["handled"] = True
            end = None
            step = current.__traceback__
            while step is not None:
                if not is_ours(step.tb_frame):
                    end = step
                step = step.tb_next
            if end is not None:
                one.update(self.place(end.tb_frame, real_line(end.tb_frame, end.tb_lineno)))
            inside = members(current, limit)
            if inside:
                shown = inside[: most[0]] if most else ()
                one["members"] = [self._exceptions(member, limit, most[1:]) for member in shown]
                one["omitted"] = len(inside) - len(shown)
            found.append(one)
            handled = current.__cause__ is None
            if not handled:
                current = current.__cause__
            else:
                current = None if current.__suppress_context__ else current.__context__
        return found


def _thread_names() -> "Dict[Optional[int], str]":
    """Names of threads; those that `_thread` started have none, and asking for the current one's would make one up.

    What a program has in the place of a thread's name, as tests have mocks, is not asked.
    """
    known = list(threading._active.items())  # type: ignore[attr-defined]
    return {ident: str(vars(thread).get("_name", "")) for ident, thread in known}


def _current_task() -> "Any":
    """The asyncio task that the calling thread runs; None: none, or the program has no asyncio."""
    events, tasks = sys.modules.get("asyncio.events"), sys.modules.get("asyncio.tasks")
    if events is None or tasks is None:
        return None
    loop = events._get_running_loop()
    if loop is None:
        return None
    current = getattr(tasks, "current_task", None) or tasks.Task.current_task
    return current(loop)
