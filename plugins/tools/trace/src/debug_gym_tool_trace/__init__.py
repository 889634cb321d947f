"""The trace tool: the life of one function call.

`running` runs the program and hears what the `tracee` in it saw; `seen` is what that looks like, `render` makes text of
it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from debug_gym_core import ActionError, Observation, Settings, Tool, hookimpl
from debug_gym_core.components.values import Flag, Seconds
from debug_gym_core.debugging.target import Target, find_target
from debug_gym_core.sandbox.grep import LONGEST_PATTERN, Glob, Query
from debug_gym_core.tools.observation import bound
from debug_gym_tool_trace.render import PASSES, pruned, render
from debug_gym_tool_trace.running import Outcome, Tracing, Wanted
from debug_gym_tool_trace.seen import Call

if TYPE_CHECKING:
    from debug_gym_core import Environment

DEEPEST = 5
"""Levels of calls that can be followed."""

ERROR_LIMIT = 2_000
PRINTED_LIMIT = 1_500
"""Characters shown of what a program printed that did not make the call."""

DATA_LIMIT = 60_000
"""Characters of a call as JSON."""

OUTCOMES = {
    "error": "had an error",
    "skipped": "was skipped",
    "xfailed": "failed as expected (xfail)",
    "xpassed": "passed although it was expected to fail (xfail)",
}
EXAMPLE = "app.py:total"
NAME = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
CANDIDATES = 5
"""Files that are named where a function may be in several."""
BRACKETS = re.compile(r"(.*?:[^\[]*|[^:\[]*)(\[.*\])", re.DOTALL)
"""A target, and the case of a test that it names behind it, as pytest writes its id."""
FORM = f"a target is file:function or file:Class.method, as in {EXAMPLE}"


class TraceSettings(Settings):
    """Settings of the trace tool.

    Attributes:
        timeout: seconds that the program may run before the call is over
        warm: whether programs may start from an interpreter that has been warmed up
    """

    timeout: Seconds = 60.0
    warm: Flag = True


class Trace(Tool):
    """Follow one call of a function, from its arguments to what it returned.

    Runs the program (by default the tests) and shows the statements that the call carried out, in order, each with the
    variables that it changed; loops by their first and last passes; the calls of the repository's functions that it
    made, with their arguments and results; what it returned, or the exception that ended it. One use shows what
    many steps of a debugger would. Nothing stays: each use runs the program anew.
    """

    name = "trace"
    examples = (
        {"target": EXAMPLE},
        {"target": "app.py:Cart.add", "call": 2, "entrypoint": "python -m pytest -q test_app.py::test_add"},
    )
    Settings: ClassVar[type[Settings]] = TraceSettings
    settings: TraceSettings

    def use(
        self, env: Environment, target: str, entrypoint: str | None = None, call: int = 1, depth: int = 0
    ) -> Observation:
        """Follow one call.

        Args:
            env: the environment
            target: the function, as file:function or file:Class.method; file:line means the function around that line,
                a name alone the function that only one file defines; of a test one case, as test_app.py::test_add[3]
            entrypoint: what to run instead of the task's own program, as `python -m pytest -q test_app.py::test_add`
            call: which call of the function, counted from 1
            depth: how many levels of the calls that it makes are shown in the same detail; 0: one line for each
        """
        target, case = _without_case(target)
        file, function = _target(env, target)
        if call < 1:
            raise ActionError(f"trace: call is {call}, but calls are counted from 1")
        if not 0 <= depth <= DEEPEST:
            raise ActionError(f"trace: depth is {depth}; it is 0 to {DEEPEST}")
        asked = entrypoint or env.debug_entrypoint
        found = find_target(asked, env, "trace", "traced")
        tracing = Tracing(
            env.session,
            found,
            Wanted(file, function, call, depth, case),
            env.workspace.ignored_files(".py"),
            self.settings.timeout,
            self.settings.warm,
            env.interruption,
        )
        try:
            outcome = tracing.run()
        except ActionError as error:
            raise ActionError(bound(f"trace: {error}", ERROR_LIMIT)) from None
        unread = _unread(case, found, file, outcome)
        if outcome.story is None:
            text = "\n".join([self._uncalled(outcome, file, call, found), *unread])
            return Observation(self.name, text, _data(outcome, file, None))
        return self._observe(outcome, outcome.story, file, unread)

    def interrupt(self) -> bool:
        """A program that has not begun is ended as soon as it has; see `Tool`. One that has is ended without this."""
        return True

    def _observe(self, outcome: Outcome, story: Call, file: str, unread: Sequence[str]) -> Observation:
        shown = render(story)
        parts = [_heading(story, outcome), shown.text, *self._notes(outcome, story), *unread]
        if shown.cut:
            parts.append(
                f"[what is left out: follow a function that it calls, or another `call`; pdb stops at any pass:"
                f" b {story.file}:LINE, CONDITION]"
            )
        return Observation(self.name, "\n".join(parts), _data(outcome, file, story, shown.passes))

    def _notes(self, outcome: Outcome, story: Call) -> list[str]:
        """What else there is to know of a call."""
        notes = []
        if outcome.test is not None and outcome.test.outcome == "passed":
            notes.append("[that test passed: for one that fails, name it in `entrypoint`, or give another `call`]")
        if outcome.about is not None and outcome.about.definitions > 1:
            notes.append(f"[{story.function} is defined {outcome.about.definitions} times; calls of all of them count]")
        if story.kind == "class":
            notes.append(f"[this is the class's body, run when it is defined; for a method: {file_of(story)}.METHOD]")
        if outcome.blind:
            notes.append("[calls made before while the program traced itself (sys.settrace) are not counted]")
        if outcome.problem:
            notes.append(f"[the call was not followed to its end: {outcome.problem}]")
        if not outcome.done:
            notes.append(f"[{self._unfinished(outcome)}]")
            notes += _stack(outcome)
        return notes

    def _unfinished(self, outcome: Outcome) -> str:
        """Why a call is not over, or was not made."""
        if outcome.timed_out or outcome.interrupted:
            limit = f"reached the time limit of {self.settings.timeout:g} s"
            said = f"the program {limit if outcome.timed_out else 'was interrupted'} and was ended"
            if outcome.now is not None:
                return f"{said}; it was at {outcome.now}"
            if outcome.stack:
                return f"{said}; it was in one long call of C code"
            return f"{said}; it could not say where it was" if outcome.stuck else said
        if outcome.lost:
            return "the program closed the channel over which the call is told, or wrote to it, and was ended"
        if outcome.end is not None:
            return _ended(outcome)
        status = outcome.status or 0
        how = f"by signal {-status}" if status < 0 else f"with status {status}, without an exception"
        return f"the program died {how}; what it did just before may be missing"

    def _uncalled(self, outcome: Outcome, file: str, call: int, target: Target) -> str:
        """What to say where there was no such call."""
        about = outcome.about
        name = f"{about.function} ({file}:{about.line})" if about is not None and about.line else file
        what = "the class body of " if about is not None and about.kind == "class" else ""
        ended = "the program was ended then" if outcome.done else self._unfinished(outcome)
        lines = [f"{what}{name} {_calls(outcome, call)}.", f"`{target.entrypoint.text}`: {ended}."]
        lines += _stack(outcome)
        lines.append("Processes that the program starts are not followed.")
        printed = outcome.printed.strip("\n")
        if printed:
            lines.append(f"It printed:\n{bound(printed, PRINTED_LIMIT, missing=outcome.printed_cut)}")
        return "\n".join(lines)


def _calls(outcome: Outcome, call: int) -> str:
    """How often a function was called, where a call was not followed."""
    if outcome.calls >= call:
        return f"was called, but call {call} could not be followed: {outcome.problem}"
    times = "once" if outcome.calls == 1 else f"{outcome.calls} times"
    if outcome.blind:
        seen = f"was called at least {times}" if outcome.calls else "may have been called"
        return f"{seen}: calls made while it traced itself (sys.settrace), or near its recursion limit, are not seen"
    if not outcome.all or outcome.lost:
        seen = f"was called at least {times}" if outcome.calls else "was not called before that"
        return f"{seen}; whether there was a call {call} is not known"
    return f"was called {times}; there was no call {call}" if outcome.calls else "was not called"


def file_of(call: Call) -> str:
    """A function as a target."""
    return f"{call.file}:{call.function}"


def _without_case(target: str) -> tuple[str, str]:
    """A target without the case in brackets, and that."""
    found = BRACKETS.fullmatch(target.strip())
    return (found[1], found[2]) if found is not None else (target, "")


def _unread(case: str, target: Target, file: str, outcome: Outcome) -> list[str]:
    """A note where the case of a test was asked for, and could not be looked at."""
    about, story = outcome.about, outcome.story
    if not case or about is None:
        return []
    test = about.function.replace(".", "::")
    if target.entrypoint.module != "pytest":
        entrypoint = f"python -m pytest {shlex.quote(f'{file}::{test}{case}')}"
        return [f"[{case} was not looked at, as the program is not pytest: give `entrypoint`, {entrypoint}]"]
    if story is not None and not story.test.partition("::")[2].startswith(f"{test}["):
        return [f"[{case} was not looked at: pytest has no cases of {about.function}]"]
    return []


def _target(env: Environment, target: str) -> tuple[str, str]:
    """The file and the function that a target names; forgiving of how other tools write it.

    Raises:
        ActionError: it names none, or the file is not there or ignored
    """
    alone = re.fullmatch(NAME, target.strip()) is not None
    if alone and (found := _named(env, target.strip())):
        return found
    path, _, function = target.strip().partition("::") if "::" in target else target.strip().rpartition(":")
    if not path:
        path, function = function, ""
    function = re.sub(r"\[.*|\(.*", "", function.replace("::", ".")).strip()
    try:
        if re.fullmatch(r"\w+(\.\w+)*", path) and not path.endswith(".py") and function:
            env.workspace.resolve(path)  # a link of that name may lead elsewhere
            path = path.replace(".", "/") + ".py"
        file, _ = env.workspace.read_lines(path, 1, 1, 1)
    except ActionError as error:
        if function:
            raise ActionError(f"trace: {error}") from None
        no_function = f"no file defines a function {bound(path, 200)}, and " if alone else ""
        raise ActionError(f"trace: {no_function}{error}; {FORM}") from None
    if not function:
        raise ActionError(f"trace: {bound(target, 200)!r} names no function: {FORM}")
    return file, function


def _named(env: Environment, name: str) -> tuple[str, str] | None:
    """The file and the function of a name alone, or after that of its module; None: no Python file defines it.

    Raises:
        ActionError: several files do
    """
    parts = name.split(".")
    for count in range(len(parts)):
        module, function = "/".join(parts[:count]), ".".join(parts[count:])
        files = [path for path in _defining(env, parts[count]) if _is_of(path, module)]
        if files:
            return _only(files, name, function)
    return None


def _defining(env: Environment, name: str) -> list[str]:
    """The Python files that define a function or class, not as a part of another one's name."""
    if len(name) > LONGEST_PATTERN:
        return []
    query = Query(rf"^\s*(?:async\s+def|def|class)\s+{name}\b", Glob.parse("*.py"), width=1, lines=10_000)
    return [file.path for file in env.workspace.grep(query).files if not file.binary]


def _is_of(path: str, module: str) -> bool:
    """Whether a file is that of a module, whose name's parts have slashes between them; empty: any is."""
    own = path.removesuffix(".py").removesuffix("/__init__")
    return not module or own == module or own.endswith(f"/{module}")


def _only(files: Sequence[str], name: str, function: str) -> tuple[str, str]:
    """The one file that defines a name, and the function.

    Raises:
        ActionError: there are several
    """
    if len(files) > 1:
        known = ", ".join(f"{path}:{function}" for path in files[:CANDIDATES])
        more = f" and {len(files) - CANDIDATES} more files" if len(files) > CANDIDATES else ""
        raise ActionError(f"trace: {name} is defined in {len(files)} files; say which is meant: {known}{more}")
    return files[0], function


def _heading(story: Call, outcome: Outcome) -> str:
    """The first line: which call this is."""
    where = f"from {story.caller}" if story.caller is not None else "not from the repository's own code"
    parts = [f"trace of {story.file}:{story.function}, call {story.call}", where]
    if story.kind not in ("function", "class", "module"):
        parts[0] += f" ({story.kind})"
    if not story.main_thread:
        parts.append("in another thread than the main one")
    heading = ", ".join(parts)
    test = outcome.test
    if test is not None:
        heading += f"\nin {test.test}, which {OUTCOMES.get(test.outcome, test.outcome)}" + (
            f": {_in_short(test.message)}" if test.message else ""
        )
    elif story.test:
        heading += f"\nin {story.test}"
    return heading


def _stack(outcome: Outcome) -> list[str]:
    """Where a program was that could not say so itself."""
    return [bound(f"It was here:\n{outcome.stack}", PRINTED_LIMIT)] if outcome.stack else []


def _in_short(message: str) -> str:
    text = " ".join(message.split())
    return text if len(text) <= 240 else f"{text[:237]}..."


def _ended(outcome: Outcome) -> str:
    """How the program ended by itself."""
    assert outcome.end is not None
    if outcome.end.refused:
        return outcome.end.refused
    said = f"the program ended with status {outcome.end.status}"
    if outcome.end.exception:
        said += f", by {outcome.end.exception}"
    if outcome.tests is not None:
        counts = ", ".join(f"{count} {name}" for name, count in outcome.tests.items())
        said += f"; tests: {counts or 'none was run'}"
    return said


def _data(outcome: Outcome, file: str, story: Call | None, passes: int = PASSES[0]) -> dict[str, Any]:
    """The same facts as JSON types."""
    about = outcome.about
    data: dict[str, Any] = {
        "function": f"{file}:{about.function}" if about is not None else None,
        "calls": outcome.calls,
        "over": outcome.done,
        "timed_out": outcome.timed_out,
        **({"interrupted": True} if outcome.interrupted else {}),
        "at": str(outcome.now) if outcome.now is not None else None,
        **({"stack": outcome.stack} if outcome.stack else {}),
        "ended": outcome.end.model_dump() if outcome.end is not None else None,
        "status": outcome.status,
        "tests": dict(outcome.tests) if outcome.tests is not None else None,
        "test": outcome.test.model_dump() if outcome.test is not None else None,
        "call": None,
    }
    if story is not None:
        for fewer in [one for one in PASSES if one <= passes]:
            data["call"] = pruned(story, fewer).model_dump(by_alias=True, exclude_defaults=True)
            if len(json.dumps(data)) <= DATA_LIMIT:
                return data
        items = data["call"]["items"]
        while items and len(json.dumps(data)) > DATA_LIMIT:
            del items[len(items) // 2 :]
            data["call"]["cut"] = True
    return data


@hookimpl
def debug_gym_register_tools() -> Sequence[type[Tool]]:
    """The tool of this package."""
    return [Trace]
