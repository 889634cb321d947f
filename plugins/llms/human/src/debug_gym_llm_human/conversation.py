"""The talk with a person: what happened is shown, what is typed becomes a tool call, help and mistakes cost no step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from debug_gym_core import ActionError, DebugGymError, ToolCall
from debug_gym_core.tools import action as actions
from debug_gym_llm_human import layout, usage
from debug_gym_llm_human.completion import Completion
from debug_gym_llm_human.words import COMMANDS, OTHER_WORDS, PDB_COMMANDS

if TYPE_CHECKING:
    from debug_gym_core import RepoEnv

WELCOME = "Type a tool's name and press Tab for a form to fill in; help explains. Ctrl-D ends and grades."
PLAIN_WELCOME = "Type a tool call on a line; help lists the tools, help TOOL explains one. Ctrl-D ends and grades."
STOP = (
    "Ctrl-C again stops the run: the patch is kept, nothing is graded, and going on starts this task anew.\n"
    "quit (or Ctrl-D) ends the episode, keeps the patch and grades it."
)
LINES = "Each line is a {} command; Ctrl-D comes back."
LEAVING = frozenset(("q", "quit", "exit"))
BELOW = re.compile(
    r"(?:pdb[ \t]+)?(?P<head>(?P<word>commands|interact)(?:[ \t]+\d+)?)[ \t]*(?:<<<[ \t]*\n(?P<body>.*?)^>>>)?",
    re.DOTALL | re.MULTILINE,
)
"""What the debugger takes lines below for: a person's call goes on to the next line only between `<<<` and `>>>`."""


class Prompt(Protocol):
    """Where a person reads and types.

    Attributes:
        width: columns that there are for text
        keys: what can be pressed, and what it does
        interrupted: whether the run is being stopped from elsewhere
    """

    @property
    def width(self) -> int:
        """Columns that there are for text."""

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """What can be pressed, and what it does."""

    interrupted: bool

    def begin(self, completion: Completion) -> None:
        """An episode begins, whose tools, files and breakpoints can be completed."""

    def show(self, fragments: layout.Fragments) -> None:
        """Show styled text."""

    def read(self, mode: str) -> str:
        """Let the person type; a block between `<<<` and `>>>` is read to its end.

        Args:
            mode: the tool whose command every line is; empty: none

        Raises:
            EOFError: there is no more
            KeyboardInterrupt: Ctrl-C with nothing typed, or the run is being stopped
        """

    def where(self) -> str:
        """What to say before a complaint about the last line read: its number, where it was not typed here."""

    def interrupt(self) -> None:
        """Let `read` end at once, from another thread."""


class Conversation:
    """Shows an episode to a person and asks what to do."""

    def __init__(self, prompt: Prompt) -> None:
        """Talk at a prompt.

        Args:
            prompt: where the person reads and types
        """
        self._prompt = prompt
        self._env: RepoEnv | None = None
        self._completion: Completion | None = None
        self._shown = -1
        self._stop = ""
        self._mode = ""
        self._last = ""

    def begin(self, env: RepoEnv) -> None:
        """An episode begins.

        Args:
            env: it was reset
        """
        self._env, self._shown, self._stop, self._mode = env, -1, "", ""
        self._completion = Completion(env)
        self._prompt.begin(self._completion)

    def show(self, text: str) -> None:
        """Show the news: the environment's last observation, or a text where no environment is known.

        Args:
            text: what the agent says, for the case that there is no environment
        """
        env, prompt = self._env, self._prompt
        if env is None:
            prompt.show([("", f"{line}\n") for line in map(layout.printable, text.split("\n"))])
            return
        if env.steps == self._shown:
            return
        spoken = env.last_observations
        prompt.show(layout.observation(spoken, prompt.width))
        if self._shown < 0:
            completes = any(key == "Tab" for key, _ in prompt.keys)
            lines = layout.wrapped(WELCOME if completes else PLAIN_WELCOME, prompt.width)
            prompt.show([("", "\n"), *(("strong", f"{line}\n") for line in lines)])
        self._stop = layout.stopped_at(spoken, self._stop)
        if self._mode == "pdb" and any(one.data.get("ended") for one in spoken):
            self._mode = ""
            self._say("pdb has ended; a line is a call again.", "strong")
        self._shown = env.steps

    def ask(self) -> ToolCall | None:
        """Let the person choose what to do; None when the episode is to end.

        Raises:
            KeyboardInterrupt: the run is to be stopped
        """
        warned = False
        while True:
            if self._env is not None:
                self._prompt.show([("", "\n"), *layout.status(self._env, self._stop, self._prompt.width)])
            try:
                text = self._prompt.read(self._mode)
            except EOFError:
                if not self._mode:
                    return None
                self._mode = ""
                continue
            except KeyboardInterrupt:
                if warned or self._prompt.interrupted:
                    raise
                warned = not self._mode
                if warned:
                    self._say(STOP, "strong")
                self._mode = ""
                continue
            warned = False
            if not text.strip():
                if self._mode != "pdb" or not self._last:
                    continue
                text = self._last  # as pdb does
            if not self._mode and OTHER_WORDS.get(text.strip(), text.strip()) == "quit" and "quit" not in self._tools:
                return None
            call = self._understand(text)
            if call is not None:
                return call

    @property
    def _tools(self) -> dict[str, usage.ToolClass]:
        return self._completion.tools if self._completion else {}

    def _understand(self, text: str) -> ToolCall | None:
        """The call that a line means; None when it is answered here, at no cost."""
        tools = self._tools
        if self._completion is None:
            return ToolCall(text)  # the environment, which knows the tools, will understand it
        line = text.strip()
        action: str | ToolCall = text
        debugging = "pdb" in tools and (self._mode == "pdb" or (not self._mode and line.startswith("pdb")))
        below = BELOW.fullmatch(line) if debugging else None
        if below and below["body"] is None:
            self._say(f"{below['word']} takes lines: {below['head']} <<<, the lines, and >>> on a line of its own")
            return None
        if below:
            action = ToolCall("pdb", {"command": f"{below['head']}\n{below['body']}"})
            self._last = line
        elif self._mode:
            # As it was typed: in a line that is nothing but the command, no quotes and no names are the grammar's.
            block = line.partition("\n")[0].endswith("<<<")
            action = f"{self._mode} {line}" if block else ToolCall(self._mode, {"command": line})
            self._last = line
            if line in LEAVING:
                self._mode = ""
        elif line in tools and usage.is_raw(tools[line]):
            self._mode, self._last = line, ""
            self._say(LINES.format(line), "strong")
            return None
        elif self._is_answered(line):
            return None
        try:
            call = actions.parse(action, tools)
            tools[call.name].check(call.arguments)
        except ActionError as error:
            self._explain(line, str(error))
            return None
        return call

    def _is_answered(self, line: str) -> bool:
        """Answer what is no action: help, the patch."""
        word, _, topic = line.partition(" ")
        if line.endswith("?") and (line[:-1].strip() in self._tools or line[:-1].strip() in COMMANDS):
            word, topic = "help", line[:-1]
        word = OTHER_WORDS.get(word, word)
        if word in self._tools or word not in COMMANDS:
            return False
        if word == "help":
            self._help(topic.strip())
        elif word == "patch" and not topic:
            self._patch()
        else:
            self._say(f"{word} stands alone on its line", "error")
        return True

    def _help(self, topic: str) -> None:
        if not topic:
            self._say(usage.overview(self._tools, COMMANDS, self._prompt.keys))
        elif topic in self._tools:
            self._say(usage.tool_help(self._tools[topic]))
        elif topic in COMMANDS:
            self._say(f"{topic}: {COMMANDS[topic]}")
        else:
            self._say(f"there is no help about {topic!r}; help lists the tools", "error")

    def _patch(self) -> None:
        assert self._env is not None
        try:
            data = self._env.patch
        except DebugGymError as error:
            self._say(str(error), "error")
            return
        self._prompt.show(layout.patch(data)) if data else self._say("Nothing is changed.")

    def _explain(self, line: str, error: str) -> None:
        """Say what is wrong with a line; it was not sent."""
        name = self._mode or line.split()[0]
        self._say(f"{self._prompt.where()}{error.partition(chr(10))[0]}", "error")
        if self._mode:
            self._say(LINES.format(name))
            return
        tool = self._tools.get(name)
        if tool is not None:
            example = usage.example(tool)
            self._say(f"usage: {usage.usage(tool)}" + (f"\n{layout.EXAMPLE}{example}" if example else ""))
        elif self._stop and (name in PDB_COMMANDS or name.startswith("!")):
            self._say("for the debugger say pdb and the command; pdb alone takes every line as one")
        elif self._env is not None and name in self._env.plugins.tools:
            self._say(f"{name} is installed, but not one of this episode's tools; add it to `tools` in the config")

    def _say(self, text: str, style: str = "") -> None:
        lines = layout.prose(text, self._prompt.width)
        self._prompt.show([(style, f"{layout.printable(line)}\n") for line in lines])
