"""Debugger replies as text for models and people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from debug_gym_core.names import killed_by, signal_name
from debug_gym_core.tools.observation import bound
from debug_gym_tool_pdb.session import End, Reply

PDB_LIMIT = 6000
PRINTED_LIMIT = 3000
VALUE_LIMIT = 400
"""Characters of each part that are shown."""


@dataclass
class Call:
    """What one use of the tool brought about, in order: commands with their outcome, and what we say ourselves."""

    replies: list[tuple[str, Reply]] = field(default_factory=list)
    _said: list[tuple[int, str]] = field(default_factory=list)

    def say(self, *texts: str) -> None:
        """Say something after the replies that there are so far."""
        self._said += [(len(self.replies), text) for text in texts if text]

    def text(self) -> str:
        """All of it; only the last stop is shown in full, of the others what changed."""
        several = sum(1 for command, _ in self.replies if command) > 1
        stops = [place for place, (command, reply) in enumerate(self.replies) if command and reply.stop is not None]
        parts = [text for place, text in self._said if place == 0]
        for place, (command, reply) in enumerate(self.replies):
            if several and command:
                parts.append(
                    "(Pdb) " + bound(command, VALUE_LIMIT, more="it is a long command").replace("\n", "\n      ")
                )
            parts.append(reply_text(reply, full=place == stops[-1] if command and stops else False))
            parts += [text for said, text in self._said if said == place + 1]
        return "\n".join(part for part in parts if part)


def reply_text(reply: Reply, *, full: bool) -> str:
    """One command's outcome: what pdb printed, what the program printed, where it stopped.

    Args:
        reply: the outcome
        full: whether to show the stop with its source and stack, or only what changed
    """
    parts = [bound(reply.text.rstrip("\n"), PDB_LIMIT, missing=reply.missing, more="ask for less at once")]
    if reply.printed.strip() or reply.printed_cut:
        parts.append(_printed(reply))
    parts += [f"note: {note}" for note in reply.notes]
    if reply.stop is not None:
        parts += [stop_text(reply.stop)] if full else [_headline(reply.stop), _locals_line(reply.stop)]
    return "\n".join(part for part in parts if part)


def _printed(reply: Reply) -> str:
    text = bound(reply.printed.strip("\n"), PRINTED_LIMIT, more="stop earlier to see it in pieces")
    more = "left out of the middle; stop earlier to see it in pieces"
    note = f" (it printed {reply.printed_cut} bytes more, {more})" if reply.printed_cut else ""
    return f"program printed{note}:\n{text}"


def _headline(stop: Mapping[str, Any]) -> str:
    """Why it stopped, in a line; empty after a step, of which pdb says all there is to say."""
    if stop["reason"] in ("entry", "step", "call", "return"):
        return ""
    found = _exceptions(stop.get("exceptions", ())[:1])
    return "; ".join([f"{_numbered(stop)}: {_reason(stop)}", *(line.strip().replace("\n", " ") for line in found)])


def stop_text(stop: Mapping[str, Any]) -> str:
    """The stop report: reason and place, source, locals, stack, exceptions."""
    lines = [f"{_numbered(stop)}: {_reason(stop)}"]
    if "file" in stop:
        process = f" of process {stop['process']}" if stop.get("process") else ""
        thread = f" ({stop['thread']}{process})" if "thread" in stop else ""  # not where it cannot be described
        lines[0] += f" at {stop['file']}:{stop['line']} in {stop['function']}{thread}"
    if stop.get("ignored"):
        lines.append("this file is ignored in the task: its source and variables are not shown")
    if stop.get("note"):
        lines.append(f"note: {stop['note']}")
    if stop.get("unkept"):
        lines.append(f"note: this stop cannot be gone back to: {stop['unkept']}")
    lines += _exceptions(stop.get("exceptions", ()))
    lines += _source(stop.get("source", ()), stop.get("line", 0))
    if "return" in stop:
        lines.append(f"return value: {_value(stop['return'])}")
    lines.append(_locals_line(stop))
    late = (stop.get("locals") or {}).get("late") or {}
    lines += [f"for this there was no time before: {name} = {_value(text)}" for name, text in late.items()]
    task = stop.get("task")
    if task:
        lines.append(f"task {task['name']}: {_places(task['awaits'])}")
    stack = stop.get("stack", ())
    if len(stack) > 1 or any((one["file"], one["line"]) != (stop.get("file"), stop.get("line")) for one in stack):
        lines.append(f"stack: {_places(stack)}")
    lines += [f"thread {one['name']}: {one['function']} {one['file']}:{one['line']}" for one in stop.get("threads", ())]
    return "\n".join(line for line in lines if line)


def _numbered(stop: Mapping[str, Any]) -> str:
    """That it stopped; of a stop that can be gone back to, which one it is."""
    return f"stop {stop['number']}" if "number" in stop else "stopped"


def _places(frames: Sequence[Mapping[str, Any]]) -> str:
    places = []
    for one in frames:
        times = f" ({one['times']} times)" if one.get("times", 1) > 1 else ""
        places.append(f"{one['function']} {one['file']}:{one['line']}{times}")
    return " < ".join(places)


def place(stop: Mapping[str, Any]) -> str:
    """Where a stop is, as in `at app.py:12 in main`; before a program began, that."""
    if stop["reason"] == "entry":
        return "before the program's first line"
    if "file" not in stop:
        return "where its stop could not be described"
    return f"at {stop['file']}:{stop['line']} in {stop['function']}"


def _reason(stop: Mapping[str, Any]) -> str:
    reason = str(stop["reason"])
    if reason == "entry":
        return "before the program's first line"
    if reason == "breakpoint":
        return f"breakpoint {stop['breakpoint']}" if stop.get("breakpoint") else "breakpoint() in the program"
    if reason == "test failed":
        when = stop.get("when")
        return f"test failed: {stop['test']}" + (f" (in {when})" if when not in (None, "call") else "")
    return reason


def _exceptions(chain: Sequence[Mapping[str, Any]], inside: bool = False) -> list[str]:
    """An exception and those that led to it, a line each; below a group, indented, those of which it consists.

    Args:
        chain: the exception first
        inside: it is of a group; else the stop is at it, which says the place
    """
    lines = []
    for place, one in enumerate(chain):
        before = "raised while handling" if one.get("handled") else "caused by"
        title = before if place else "sub-exception" if inside else "exception"
        told = "file" in one and (place or inside)
        where = f" (at {one['file']}:{one['line']} in {one['function']})" if told else ""
        message = f": {_value(one['message'])}" if one["message"] else ""
        lines.append(f"{title}: {one['type']}{message}{where}")
        for member in one.get("members", ()):
            lines += [f"  {line}" for line in _exceptions(member, inside=True)]
        if one.get("omitted"):
            lines.append(f"  [{one['omitted']} more]")
    return lines


def _source(window: Sequence[Sequence[Any]], current: int) -> list[str]:
    width = len(str(window[-1][0])) if window else 0
    return [
        f"{'->' if number == current else '  '} {number:>{width}}  {text}".rstrip()
        for number, text in window
        if text.strip() or number == current or number not in (window[0][0], window[-1][0])
    ]


def _locals_line(stop: Mapping[str, Any]) -> str:
    """Locals that changed; all of them at the first stop of a frame."""
    found = stop.get("locals")
    if not found or not (found["changed"] or found["unchanged"] or found["omitted"]):
        return ""
    notes = []
    if found["unchanged"]:
        # Of what is large or deep a part is compared: where nothing was seen, nothing more is said.
        notes.append(f"{found['unchanged']} {'unchanged' if found['changed'] else 'as shown before'}")
    if found["omitted"]:
        notes.append(f"{found['omitted']} more: pp locals()")
    suffix = f" ({', '.join(notes)})" if notes else ""
    title = "locals" if found["first"] else "changed locals"
    if not found["changed"]:
        return f"{title}: none{suffix}" if found["first"] else f"{title}: none seen{suffix}"
    values = {name: _value(text) for name, text in found["changed"].items()}
    if len(values) <= 4 and sum(map(len, values.values())) <= 80 and not any("\n" in v for v in values.values()):
        return f"{title}: " + ", ".join(f"{name} = {text}" for name, text in values.items()) + suffix
    return f"{title}{suffix}:\n" + "\n".join(f"  {name} = {text}" for name, text in values.items())


def _value(text: str) -> str:
    """A value on several lines keeps them, indented."""
    text = text if len(text) <= VALUE_LIMIT else text[:VALUE_LIMIT] + "..."
    return "\n    ".join(line.rstrip() for line in text.splitlines() if line.strip())


def end_text(reply: Reply, timeout: float) -> str:
    """How a session ended, empty when it goes on."""
    if reply.end is None:
        return ""
    again = "The next pdb command starts a new session."
    if reply.end is End.QUIT:
        return f"The session ended. {again}"
    if reply.end is End.STRANDED:
        return f"The program was ended, as it was only in part what it had been. Breakpoints are kept. {again}"
    if reply.end is End.LOST:
        return f"The program closed or overwrote the debugger's own descriptor, and was ended. {again}"
    if reply.end is End.STUCK:
        stack = f" It was here:\n{reply.stack}" if reply.stack else ""
        return (
            f"The command ran longer than {timeout:g} s inside one call of C code, or with signals blocked, which"
            f" cannot be interrupted: the program was ended. Breakpoints are kept. {again}{stack}"
        )
    if reply.end is End.REPLACED:
        return (
            f"The program was replaced by another one (os.exec), not debugged, which {_ended(reply, timeout)}. {again}"
        )
    if reply.end is End.DIED and reply.status is None:
        return f"The process that ran the program was killed, by the program or for lack of memory. {again}"
    status = reply.status or 0
    if reply.end is End.DIED:
        if status < 0:
            return f"The program {killed_by(-status)}. {again}"
        return f"The program ended at once with exit status {status} (os._exit). {again}"
    said = [reply.exception["type"], _value(reply.exception["message"])] if reply.exception else []
    error = f" after {': '.join(filter(None, said))}" if said else ""
    how = f"was killed by {signal_name(-status)} at its end" if status < 0 else f"exited with status {status}"
    return f"The program {how}{error}{'' if error.endswith('.') else '.'} {again}"


def _ended(reply: Reply, timeout: float) -> str:
    """How a program ended that nothing else is known of."""
    if reply.status is None:
        return f"ran longer than {timeout:g} s and was ended" if reply.timed_out else "was ended"
    return f"was killed by {signal_name(-reply.status)}" if reply.status < 0 else f"exited with status {reply.status}"
