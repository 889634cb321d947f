"""Python stacks as faulthandler writes them, made readable."""

from __future__ import annotations

import itertools
import re

from debug_gym_core.sandbox import shipping
from debug_gym_core.sandbox.terminal import ROOT

MOST_FOREIGN = 8
"""Frames that are shown of a thread that runs none of the repository's code."""

_START = re.compile(r'^  File "<string>", line \d+ in <module>$(?!\n  File)', re.MULTILINE)
_THREAD = re.compile(
    r"(?:Current thread|Thread) 0x[0-9a-f]{1,16}\b[^(\n]{0,100}\(most recent call first\):$", re.MULTILINE
)
_FRAME = re.compile(r'  (?:File "(.*)", line \d+ in .*|\.\.\.|<no Python frame>|Garbage-collecting)')
_CYCLE = re.compile(r"((?:^  File [^\n]*\n){2,8}?)\1{2,}", re.MULTILINE)
"""Frames of a recursion through several functions."""

_INSTALLED = re.compile(r"/(?:site|dist)-packages/|/lib/python[0-9.]+/")


def readable_stack(text: str) -> str:
    """What faulthandler wrote, without thread numbers and our own frames, of which the outermost is the start's.

    Frames of a recursion are counted.

    Args:
        text: stacks of one or more threads, under the public path
    """
    text = _THREAD.sub("thread (most recent call first):", text)
    text = _START.sub("", text)
    lines = [line for line in text.splitlines() if f'"{shipping.NAME}"' not in line]
    counted = [(line, len(list(same))) for line, same in itertools.groupby(lines)]
    text = "\n".join(f"{line} ({count} times)" if line and count > 1 else line for line, count in counted)
    return _CYCLE.sub(_folded, f"{text}\n").strip()


def _folded(cycle: re.Match[str]) -> str:
    """The frames that come again and again, once."""
    return f"{cycle[1]}  (these {cycle[1].count(chr(10))} frames {len(cycle[0]) // len(cycle[1])} times)\n"


def split_stack(output: str) -> tuple[str, str]:
    """The stacks that faulthandler wrote into an output, and the output without them.

    Args:
        output: of a run that was asked for its stacks, under the public path; no more than once

    Returns:
        the output, and the stacks, readable; empty: there are none
    """
    begins = [found.start() for found in _THREAD.finditer(output)]
    if not begins:
        return output, ""
    # Those of the end: what the program printed itself, perhaps the same way, came before.
    ends = _end(output, begins[-1])
    first = begins[-1]
    for begin in reversed(begins[:-1]):
        if output[_end(output, begin) : first].strip():
            break
        first = begin
    threads = readable_stack(output[first:ends]).split("thread (most recent call first):")
    shown = ["thread (most recent call first):" + _without_runner(one) for one in threads if one.strip()]
    return output[:first] + output[ends:].lstrip("\n"), "\n".join(shown)


def _end(text: str, begin: int) -> int:
    """Where the stack ends that begins here."""
    end = text.find("\n", begin) + 1 or len(text)
    while end < len(text):
        after = text.find("\n", end) + 1 or len(text)
        if not _FRAME.fullmatch(text[end:after].rstrip("\n")):
            break
        end = after
    return end


def _without_runner(stack: str) -> str:
    """A thread's stack without the frames outside of the repository that called it."""
    lines = stack.strip("\n").splitlines()
    own = [place for place, line in enumerate(lines) if (found := _FRAME.fullmatch(line)) and _is_own(found[1] or "")]
    kept = own[-1] + 1 if own else min(len(lines), MOST_FOREIGN)
    rest = f"\n  ({len(lines) - kept} frames that called these)" if kept < len(lines) else ""
    return "\n" + "\n".join(lines[:kept]) + rest


def _is_own(file: str) -> bool:
    return file.startswith(f"{ROOT}/") and not _INSTALLED.search(file)
