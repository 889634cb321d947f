"""Breakpoints as data: kept over restarts by the host, as aliases are, and shared by the processes of one session."""

import bdb
import os

from .family import Blackboard, merge
from .hints import MOST_NAMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pdb import Pdb
    from typing import Any, Dict, List, Optional, Set, Tuple

    from .files import Files

    Json = Dict[str, Any]


class Remembered:
    """The breakpoints of a debugger, in JSON types."""

    def __init__(self, debugger: "Pdb", files: "Files") -> None:
        """Know the breakpoints of a debugger."""
        self._debugger = debugger
        self._files = files
        self._blackboard = Blackboard()
        self._agreed: "Json" = {"list": [], "next": 1}
        self._sent: "Optional[Json]" = None
        self._aliases: "Dict[str, str]" = {}

    def dump(self) -> "Json":
        """All breakpoints and the next number."""
        found = []
        for one in bdb.Breakpoint.bpbynumber:
            if one is None:
                continue
            commands = list(self._debugger.commands.get(one.number, ()))
            if commands and getattr(self._debugger, "commands_silent", {}).get(one.number):
                commands.insert(0, "silent")
            found.append(
                {
                    "number": one.number,
                    "file": self._files.path(one.file),
                    "line": one.line,
                    "condition": one.cond or None,
                    "temporary": bool(one.temporary),
                    "ignore": getattr(one, "given", one.ignore),  # each run counts from the beginning
                    "enabled": bool(one.enabled),
                    "commands": commands,
                    "function": one.funcname,
                }
            )
        return {"list": found, "next": bdb.Breakpoint.next}

    def never_reached(self) -> "List[Json]":
        """A few of the breakpoints that did not stop in this run, and why that may be."""
        found = []
        for one in bdb.Breakpoint.bpbynumber:
            if one is not None and one.enabled and not one.hits:
                why = "its condition did not hold, or its line was not reached" if one.cond else "it was not reached"
                why = getattr(one, "passed", why)
                found.append({"number": one.number, "file": self._files.path(one.file), "line": one.line, "why": why})
        return found[:MOST_NAMED]

    def restore(self, state: "Json") -> "List[Json]":
        """Set breakpoints as they were dumped, under their numbers; returns those that cannot be set and why."""
        lost = []
        for one in state["list"]:
            _skip_numbers(one["number"])
            name = os.path.join(self._files.root, one["file"])
            problem = self._debugger.set_break(name, one["line"], one["temporary"], one["condition"], one["function"])
            if problem:
                lost.append(dict(one, why="the file has no such line any more"))
                continue
            made = bdb.Breakpoint.bpbynumber[one["number"]]
            assert made is not None
            made.ignore = made.given = one["ignore"]
            made.enabled = one["enabled"]
            if one["commands"]:
                self._set_commands(one["number"], one["commands"])
        _skip_numbers(state["next"])
        return lost

    def _change(self, old: "Json", new: "Json") -> None:
        """Make the breakpoints, of which `old` is the dump, what `new` says."""
        before = {one["number"]: one for one in old["list"]}
        for number in set(before) - {one["number"] for one in new["list"]}:
            self._debugger.clear_bpbynumber(number)
        fresh = [one for one in new["list"] if one["number"] not in before]
        self.restore({"list": fresh, "next": new["next"]})
        for one in new["list"]:
            was = before.get(one["number"], one)
            if one != was:
                there = bdb.Breakpoint.bpbynumber[one["number"]]
                assert there is not None
                there.cond, there.temporary = one["condition"], one["temporary"]
                there.enabled = one["enabled"]
                if one["ignore"] != was["ignore"]:
                    there.ignore = there.given = one["ignore"]
                self._set_commands(one["number"], one["commands"])

    def _set_commands(self, number: int, commands: "List[str]") -> None:
        debugger = self._debugger
        if not hasattr(debugger, "commands_doprompt"):  # from Python 3.14 on, lines are kept as they are
            debugger.commands[number] = list(commands)
            return
        debugger.commands[number] = []
        debugger.commands_doprompt[number] = True
        debugger.commands_silent[number] = False
        debugger.commands_bnum = number
        for line in commands:
            debugger.handle_command_def(line)

    # ---- who is told

    def add_to(self, message: "Json") -> None:
        """Tell the host with a message of them, and of the aliases, when they are not as it was told last."""
        state = self.dump()
        if state != self._sent:
            self._sent = message["breakpoints"] = state
        if self._debugger.aliases != self._aliases:
            self._aliases = message["aliases"] = dict(self._debugger.aliases)

    def learn(self) -> "Tuple[bool, Set[int]]":
        """Take over what happened to them in other processes.

        Returns:
            whether they changed here, and the numbers of those that are gone
        """
        theirs = self._blackboard.news()
        if theirs is None:
            return False, set()
        mine = self.dump()
        state, gone = merge(self._agreed, mine, theirs)
        self._agreed, self._sent = theirs, None
        if state != mine:
            self._change(mine, state)
        return state != mine, gone

    def share(self) -> None:
        """Leave them for other processes; only in one's turn."""
        state = self.dump()
        if state != self._agreed:
            self._agreed = state
            self._blackboard.write(state)

    def take_over(self, state: "Json") -> None:
        """Have the breakpoints of a process in whose place this one goes on."""
        self._change(self.dump(), state)
        self._agreed, self._sent = state, None
        self._blackboard.write(state)

    def forked(self) -> None:
        """Begin anew in a child, which has told the host nothing."""
        self._sent = None


def _skip_numbers(number: int) -> None:
    """Make `number` the next breakpoint's."""
    bdb.Breakpoint.next = max(number, bdb.Breakpoint.next)
    while len(bdb.Breakpoint.bpbynumber) < bdb.Breakpoint.next:
        bdb.Breakpoint.bpbynumber.append(None)
