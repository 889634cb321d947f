"""Events by `sys.monitoring` (Python 3.12 and newer): what is not followed runs as fast as ever."""

from debug_gym_core.debugging.inside.monitoring import MONITORING, listen, take_number

from .backend import Backend
from .channel import _getframe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Dict, Optional

    from .story import Call
    from .watching import Watch


class Monitoring(Backend):
    """Events of all threads, of the code objects that matter."""

    lasts = True

    def __init__(self, watch: "Watch", files: "Any") -> None:
        """Tell `watch`; `files`: the repository's."""
        self._watch = watch
        self._files = files
        self._tool: "Optional[int]" = None
        self._codes: "Dict[int, CodeType]" = {}

    def available(self) -> bool:
        """Whether there is a free number for a tool; takes it."""
        if self._tool is None:
            self._tool = take_number()
        return self._tool is not None

    def start(self) -> None:
        """See Backend."""
        assert self._tool is not None
        listen(self._tool, self)
        MONITORING.set_events(self._tool, MONITORING.events.PY_START)

    def follow(self, call: "Call") -> None:
        """See Backend."""
        assert call.frame is not None
        events, code = MONITORING.events, call.frame.f_code
        wanted = events.PY_RETURN | events.PY_YIELD | events.PY_RESUME | (events.LINE if call.detailed else 0)
        before = MONITORING.get_local_events(self._tool, code)
        if wanted | before != before:
            MONITORING.set_local_events(self._tool, code, wanted | before)
            self._codes[id(code)] = code
        if call.level == 0:
            MONITORING.set_events(self._tool, events.PY_START | events.PY_THROW | events.PY_UNWIND | events.RAISE)
            MONITORING.restart_events()

    def end_only(self, call: "Call") -> None:
        """See Backend."""
        if call.frame is not None:
            events, code = MONITORING.events, call.frame.f_code
            before = MONITORING.get_local_events(self._tool, code)
            MONITORING.set_local_events(self._tool, code, before & ~events.LINE)

    def no_more_calls(self) -> None:
        """See Backend."""
        MONITORING.set_events(self._tool, MONITORING.get_events(self._tool) & ~MONITORING.events.PY_START)

    def settle(self) -> None:
        """See Backend: nothing waits."""

    def hears(self) -> bool:
        """See Backend."""
        return True

    def stop(self) -> None:
        """See Backend."""
        MONITORING.set_events(self._tool, 0)
        for code in self._codes.values():
            MONITORING.set_local_events(self._tool, code, 0)
        assert self._tool is not None
        listen(self._tool, self, ends=True)

    # ---- events

    def _on_py_start(self, code: "CodeType", offset: int) -> "Any":
        watch = self._watch
        if watch.root is None:
            if code.co_name not in watch.names or not watch.is_wanted(code):
                return MONITORING.DISABLE
            watch.begins(_getframe(1))
            return None
        if not self._files.is_own(code.co_filename):
            return MONITORING.DISABLE
        watch.called(_getframe(1))
        return None

    def _on_py_resume(self, code: "CodeType", offset: int) -> None:
        call = self._watch.find(_getframe(1))
        if call is not None:
            call.goes_on(None)

    def _on_py_throw(self, code: "CodeType", offset: int, error: BaseException) -> None:
        call = self._watch.find(_getframe(1))
        if call is not None:
            call.goes_on(None)

    def _on_line(self, code: "CodeType", line: int) -> None:
        frame = _getframe(1)
        call = self._watch.find(frame)
        if call is not None:
            self._watch.line(call, frame, line)

    def _on_py_return(self, code: "CodeType", offset: int, value: "Any") -> None:
        frame = _getframe(1)
        call = self._watch.find(frame)
        if call is not None:
            self._watch.returned(call, frame, value)

    def _on_py_yield(self, code: "CodeType", offset: int, value: "Any") -> None:
        frame = _getframe(1)
        call = self._watch.find(frame)
        if call is not None:
            self._watch.yielded(call, frame, value)

    def _on_py_unwind(self, code: "CodeType", offset: int, error: BaseException) -> None:
        frame = _getframe(1)
        call = self._watch.find(frame)
        if call is not None:
            self._watch.unwound(call, frame, error)

    def _on_raise(self, code: "CodeType", offset: int, error: BaseException) -> None:
        call: "Optional[Call]" = self._watch.find(_getframe(1))
        if call is not None:
            self._watch.raised(call, error)
