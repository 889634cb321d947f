"""What models and people read of a debugger's replies."""

from __future__ import annotations

from typing import Any

import pytest

from debug_gym_core.sandbox.stacks import readable_stack
from debug_gym_tool_pdb.render import Call, end_text, reply_text, stop_text
from debug_gym_tool_pdb.session import NEVER, End, Reply

PLACE: dict[str, Any] = {"file": "app.py", "line": 3, "function": "f", "thread": "MainThread"}
EXCEPTION = {"type": "KeyError", "message": "no"}


def locals_of(**changes: Any) -> dict[str, Any]:
    return {"locals": {"first": True, "changed": {}, "unchanged": 0, "omitted": 0, **changes}}


@pytest.mark.parametrize(
    ("stop", "said"),
    [
        ({"reason": "entry"}, "stopped: before the program's first line"),
        ({"reason": "breakpoint", "breakpoint": 2, **PLACE}, "stopped: breakpoint 2 at app.py:3 in f (MainThread)"),
        ({"reason": "breakpoint", **PLACE}, "stopped: breakpoint() in the program at app.py:3 in f (MainThread)"),
        ({"reason": "test failed", "test": "t.py::t", "when": "call"}, "stopped: test failed: t.py::t"),
        ({"reason": "test failed", "test": "t.py::t"}, "stopped: test failed: t.py::t"),
        ({"reason": "test failed", "test": "t.py::t", "when": "setup"}, "stopped: test failed: t.py::t (in setup)"),
        ({"reason": "interrupt", "note": "slow"}, "stopped: interrupt\nnote: slow"),
        ({"reason": "return", "return": "[1,\n\n 2]"}, "stopped: return\nreturn value: [1,\n     2]"),
        ({"reason": "step", **locals_of()}, "stopped: step"),
        (
            {"reason": "step", **locals_of(first=False, unchanged=2)},
            "stopped: step\nchanged locals: none seen (2 as shown before)",
        ),
        (
            {"reason": "step", **locals_of(first=False, changed={"a": "1"}, unchanged=1, omitted=3)},
            "stopped: step\nchanged locals: a = 1 (1 unchanged, 3 more: pp locals())",
        ),
        (
            {"reason": "step", **locals_of(first=False, unchanged=2, late={"a": "A(1)"})},
            "stopped: step\nchanged locals: none seen (2 as shown before)\nfor this there was no time before: a = A(1)",
        ),
        (
            {"reason": "step", **locals_of(changed={"a": "1\n2", "b": "3"})},
            "stopped: step\nlocals:\n  a = 1\n    2\n  b = 3",
        ),
        (
            {"reason": "step", "threads": [{"name": "T", "function": "g", "file": "b.py", "line": 9}]},
            "stopped: step\nthread T: g b.py:9",
        ),
        (
            {
                "reason": "exception",
                "exceptions": [
                    {"type": "KeyError", "message": "", "file": "a.py", "line": 1, "function": "g"},
                    {"type": "OSError", "message": "no", "file": "a.py", "line": 7, "function": "h"},
                    {"type": "TypeError", "message": "", "handled": True, "file": "b.py", "line": 2, "function": "f"},
                    {"type": "ValueError", "message": "never raised"},
                ],
            },
            "stopped: exception\nexception: KeyError\ncaused by: OSError: no (at a.py:7 in h)\n"
            "raised while handling: TypeError (at b.py:2 in f)\ncaused by: ValueError: never raised",
        ),
        (
            {"reason": "step", "line": 9, "source": [[8, ""], [9, "x = 1"], [10, ""], [11, "y"], [12, " "]]},
            "stopped: step\n->  9  x = 1\n   10\n   11  y",
        ),
        (
            {"reason": "step", "ignored": True, **PLACE},
            "stopped: step at app.py:3 in f (MainThread)\n"
            "this file is ignored in the task: its source and variables are not shown",
        ),
    ],
)
def test_a_stop(stop: dict[str, Any], said: str) -> None:
    assert stop_text(stop) == said


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(), ""),
        (Reply(end=End.QUIT), "The session ended."),
        (Reply(end=End.EXITED, status=0), "The program exited with status 0."),
        (
            Reply(end=End.EXITED, status=1, exception={"type": "KeyError", "message": "'k'"}),
            "The program exited with status 1 after KeyError: 'k'.",
        ),
        (
            Reply(end=End.EXITED, status=1, exception={"type": "ValueError", "message": "No such key."}),
            "The program exited with status 1 after ValueError: No such key. The next pdb command",
        ),
        (
            Reply(end=End.EXITED, status=1, exception={"type": "KeyError", "message": ""}),
            "The program exited with status 1 after KeyError. The next pdb command",
        ),
        (Reply(end=End.EXITED, status=-15), "The program was killed by SIGTERM at its end."),
        (
            Reply(end=End.EXITED, status=-2, exception={"type": "KeyboardInterrupt", "message": ""}),
            "The program was killed by SIGINT at its end after KeyboardInterrupt.",
        ),
        (Reply(end=End.DIED, status=3), "The program ended at once with exit status 3 (os._exit)."),
        (Reply(end=End.REPLACED, status=3), "another one (os.exec), not debugged, which exited with status 3."),
        (Reply(end=End.REPLACED, status=-9), "not debugged, which was killed by SIGKILL."),
        (Reply(end=End.REPLACED), "not debugged, which was ended."),
        (Reply(end=End.REPLACED, timed_out=True), "not debugged, which ran longer than 2.5 s and was ended."),
        (Reply(end=End.DIED, status=-11), "The program was killed by SIGSEGV."),
        (Reply(end=End.DIED, status=-9), "The program was killed by SIGKILL (out of memory?)."),
        (Reply(end=End.STRANDED), "The program was ended, as it was only in part what it had been."),
        (Reply(end=End.STUCK), "The command ran longer than 2.5 s inside one call of C code"),
        (Reply(end=End.STUCK, stack="File f"), "It was here:\nFile f"),
    ],
)
def test_an_end(reply: Reply, said: str) -> None:
    text = end_text(reply, 2.5)
    assert said in text and bool(text) == bool(said)
    assert not said or "new session" in text


def test_what_the_program_printed_is_apart_and_bounded() -> None:
    reply = Reply(text="-> x = 1\n", printed="\nout\n", printed_cut=70)
    left = "it printed 70 bytes more, left out of the middle; stop earlier to see it in pieces"
    said = f"-> x = 1\nprogram printed ({left}):\nout"
    assert reply_text(reply, full=False) == said
    assert reply_text(Reply(printed=" \n"), full=True) == ""
    long = reply_text(Reply(printed="a" * 5000 + "b"), full=False)
    assert "[... 2001 characters left out; stop earlier to see it in pieces ...]" in long and long.endswith("b")


def test_of_several_stops_the_last_is_shown_whole() -> None:
    stop = {"reason": "step", **PLACE, **locals_of(changed={"a": "1"})}
    call = Call([("n", Reply(text="-> one", stop=stop)), ("n", Reply(text="-> two", stop=stop)), ("p a", Reply("1"))])
    call.say("told at the end", "")
    assert call.text() == (
        "(Pdb) n\n-> one\nlocals: a = 1\n"
        "(Pdb) n\n-> two\nstopped: step at app.py:3 in f (MainThread)\nlocals: a = 1\n"
        "(Pdb) p a\n1\ntold at the end"
    )


def test_of_stops_before_the_last_the_reason_is_told_in_a_line() -> None:
    failed = {"reason": "test failed", "test": "t.py::t", "when": "call", "exceptions": [EXCEPTION], **PLACE}
    text = Call([("c", Reply(text="-> one", stop=failed)), ("c", Reply(text="-> two", stop=failed))]).text()
    assert text.startswith("(Pdb) c\n-> one\nstopped: test failed: t.py::t; exception: KeyError: no\n(Pdb) c\n")


def test_the_one_own_frame_behind_a_foreign_one_is_told() -> None:
    here = {"file": "app.py", "line": 3, "function": "f"}
    foreign = {**PLACE, "file": "/lib/threading.py", "line": 9}
    assert stop_text({"reason": "interrupt", **foreign, "stack": [here]}).endswith("\nstack: f app.py:3")
    assert "stack" not in stop_text({"reason": "interrupt", **PLACE, "stack": [here]})
    many = [{**here, "times": 60}, {**here, "line": 8}]
    assert stop_text({"reason": "step", **PLACE, "stack": many}).endswith("\nstack: f app.py:3 (60 times) < f app.py:8")


def test_a_breakpoint_that_never_stopped_is_told() -> None:
    told = {"number": 2, "file": "app.py", "line": 7, "why": "it was not reached"}
    assert NEVER.format(**told) == "breakpoint 2 at app.py:7 never stopped: it was not reached"


def test_a_stack_ends_where_the_program_begins() -> None:
    told = (
        'Current thread 0x7f (most recent call first):\n  File "app.py", line 3 in f\n  File "{}", line 5 in <module>\n'
    )
    start = '  File "<string>", line 51 in <module>\n'
    assert "<string>" not in readable_stack(told.format("app.py") + start)
    assert readable_stack(told.format("<string>") + start).count("<string>") == 1
