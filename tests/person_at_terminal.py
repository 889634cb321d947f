"""A person at a real terminal: keys go into a PTY, what is seen comes out of it."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pexpect
from support import COMMAND

TAB, ENTER, CTRL_C, CTRL_D, CTRL_R, UP = "\t", "\r", "\x03", "\x04", "\x12", "\x1b[A"
TASK = "mini_nightmare/counter"


class Player:
    """Somebody at a terminal who plays."""

    def __init__(self, directory: Path, *arguments: str, columns: int = 80, **environment: str) -> None:
        self.directory = directory
        self.run = directory / "run"
        kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
        self.screen = io.StringIO()
        self.child: pexpect.spawn[str] = pexpect.spawn(
            str(COMMAND),
            [*(arguments or ("play", TASK)), "-o", str(self.run)],
            cwd=str(directory),
            env={**kept, "TERM": "xterm-256color", "XDG_STATE_HOME": str(directory / "state"), **environment},
            dimensions=(24, columns),
            encoding="utf-8",
            timeout=120,
        )
        self.child.logfile_read = self.screen

    def type(self, keys: str, until: str) -> str:
        """Press keys and wait for what they bring about; what was seen before it."""
        self.child.send(keys)
        self.child.expect(until)
        return str(self.child.before) + str(self.child.after)

    def interrupt(self) -> None:
        """Press Ctrl-C until there is something that it stops."""
        self.child.send(CTRL_C)
        while self.child.expect(["interrupted; if it goes on, Ctrl-C again stops the run", "; else wait for the tool"]):
            self.child.send(CTRL_C)

    def prompt(self, step: int) -> str:
        """Wait for the prompt after a step."""
        self.child.expect(rf"step {step}/\d+ \|[^\r]*\r")
        status = str(self.child.after)
        self.child.expect("debug-gym[^>]*>")
        return status

    def end(self) -> int:
        """Wait for the end; the exit status."""
        self.child.expect(pexpect.EOF)
        self.child.close()
        return int(self.child.exitstatus if self.child.exitstatus is not None else -1)

    def actions(self, name: str = "trajectory.jsonl") -> list[dict[str, Any]]:
        """What the environment was asked to do."""
        lines = (self.run / TASK / name).read_text().splitlines()
        events = [json.loads(line) for line in lines]
        return [event["action"] for event in events if event["kind"] == "step" and event["step"]]


Play = Callable[..., Player]


def playing(directory: Path) -> Iterator[Play]:
    """Starts players, who leave at the end.

    Args:
        directory: where they play
    """
    players: list[Player] = []

    def start(*arguments: str, **options: Any) -> Player:
        players.append(Player(directory, *arguments, **options))
        return players[-1]

    yield start
    for player in players:
        player.child.close(force=True)


def called(action: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return action["name"], action["arguments"]
