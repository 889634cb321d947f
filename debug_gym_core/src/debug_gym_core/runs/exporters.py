"""The formats that core brings, registered through the same door as anyone's: conversations, as training data."""

from __future__ import annotations

import abc
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from debug_gym_core.components.catalogue import installed
from debug_gym_core.components.component import Settings
from debug_gym_core.components.values import Flag
from debug_gym_core.errors import FULL, DebugGymError, UsageError
from debug_gym_core.runs.jobs import Exporter
from debug_gym_core.runs.provenance import absent_files, file_options

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.models.llm import Message
    from debug_gym_core.runs.conversations import Conversation

log = logging.getLogger("debug_gym")


class ConversationSettings(Settings):
    """Which conversations are written.

    Attributes:
        resolved: only those of episodes that were resolved
        prompts: only those that the model was given word for word (runs with `-vv`), none that is made of the steps
    """

    resolved: Flag = False
    prompts: Flag = False


class ConversationExporter(Exporter):
    """Writes the conversations of a run's episodes, a JSON object a line.

    Episodes without a result, and those that infrastructure failed, are left out.
    """

    Settings: ClassVar[type[Settings]] = ConversationSettings
    settings: ConversationSettings
    _absent: Sequence[str] = ()

    @abc.abstractmethod
    def line(self, conversation: Conversation, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What a line has of a conversation.

        Args:
            conversation: of an episode
            tools: those that the model was offered: `name`, `description`, `parameters`
        """

    def export(self, run: Path, target: Path) -> None:
        """Write the conversations; see `Exporter`."""
        from debug_gym_core.runs.replacing import replaced
        from debug_gym_core.runs.run import read_record

        if not run.is_dir():
            raise UsageError(f"{run}: there is no such directory")
        self._absent = absent_files(read_record(run), self._installed())
        try:
            with replaced(target) as path, path.open("w", encoding="utf-8", errors="backslashreplace") as file:
                for line in self._lines(run):
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError as error:
            if error.errno in FULL:
                raise OSError(error.errno, error.strerror, str(target)) from error
            raise UsageError(f"{target}: {error.strerror}") from error

    def _installed(self) -> Plugins:
        return self.plugins or installed()

    def _schemas(self, names: Sequence[str], known: dict[str, Mapping[str, Any] | None]) -> list[Mapping[str, Any]]:
        """What models are told of tools; a tool that is not installed is left out, and told once."""
        for name in names:
            if name not in known:
                try:
                    known[name] = self._installed().get("tools", name).schema()
                except DebugGymError as error:
                    known[name] = None
                    mend = f"; the run was played with{file_options(self._absent)}" if self._absent else ""
                    log.warning("the description of tool %s is left out: %s%s", name, error, mend)
        return [schema for name in names if (schema := known[name]) is not None]

    def _lines(self, run: Path) -> Iterator[dict[str, Any]]:
        """The lines of a run, in the order of its results."""
        from debug_gym_core.runs.conversations import conversations
        from debug_gym_core.runs.reading import read_trajectory
        from debug_gym_core.runs.trajectory import read_results

        known: dict[str, Mapping[str, Any] | None] = {}
        results = {(one.task, one.repeat): one for one in read_results(run / "results.jsonl")}
        for (task, repeat), result in results.items():
            place = run / task if repeat is None else run / task / str(repeat)
            path = place / "trajectory.jsonl"
            if result.status == "error" or (self.settings.resolved and not result.resolved):
                continue
            if not place.resolve().is_relative_to(run.resolve()) or not path.is_file():
                log.warning("%s: there is no trajectory; it is left out", task)
                continue
            trajectory = read_trajectory(path)
            for text in trajectory.remarks:
                log.warning("%s: %s", path, text)
            found = conversations(trajectory)
            if self.settings.prompts:
                found = [one for one in found if one.source == "prompts"]
            for part, conversation in enumerate(found, 1):
                several = {} if len(found) == 1 else {"part": part, "parts": len(found)}
                about = {"task": task, "repeat": repeat, "agent": result.agent, "llm": result.llm}
                about |= {"resolved": result.resolved, "score": result.score, "max_score": result.max_score}
                about |= {"ended": result.ended, "steps": result.steps, "source": conversation.source, **several}
                yield {**self.line(conversation, self._schemas(conversation.tools, known)), **about}


class Messages(ConversationExporter):
    """Conversations as those of OpenAI's Chat Completions, a JSON object a line: `messages` and `tools`.

    With them stand the task, who played, whether it was resolved and its score. What fine-tuning with OpenAI, TRL and
    most other trainers take. Episodes without a result, and those that infrastructure failed, are left out.
    """

    name = "messages"

    def line(self, conversation: Conversation, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The conversation as the request of one call, with its answer."""
        from debug_gym_core.models.chat_format import to_messages, to_tools

        found: dict[str, Any] = {"messages": to_messages(conversation.messages)}
        return {**found, "tools": to_tools(tools)} if tools else found


class ShareGPT(ConversationExporter):
    """Conversations in ShareGPT's form, a JSON object a line: `conversations` of `from` and `value`.

    As Hermes has it: calls stand in the value of `gpt` between <tool_call> tags, what they showed in that of `tool`
    between <tool_response> tags; `tools` is JSON text. Axolotl, LLaMA-Factory and others take it. Episodes without a
    result, and those that infrastructure failed, are left out.
    """

    name = "sharegpt"
    speakers: ClassVar[Mapping[str, str]] = {"system": "system", "user": "human", "assistant": "gpt", "tool": "tool"}

    def line(self, conversation: Conversation, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The conversation, where one who speaks again goes on with what was said."""
        from debug_gym_core.models.chat_format import to_tools

        turns: list[dict[str, str]] = []
        names = {call.id: call.name for message in conversation.messages for call in message.calls}
        for message in conversation.messages:
            speaker, value = self.speakers.get(message.role, message.role), _value(message, names)
            if turns and turns[-1]["from"] == speaker:
                turns[-1]["value"] += f"\n{value}"
            else:
                turns.append({"from": speaker, "value": value})
        found: dict[str, Any] = {"conversations": turns}
        return {**found, "tools": json.dumps(to_tools(tools), ensure_ascii=False)} if tools else found


def _value(message: Message, names: Mapping[str | None, str]) -> str:
    """A message with its calls, or what a call showed, in Hermes' tags."""
    from debug_gym_core.models.chat_format import clean

    if message.role == "tool":
        shown = {"name": names.get(message.call_id, "tool"), "content": message.content}
        return clean(f"<tool_response>\n{json.dumps(shown, ensure_ascii=False)}\n</tool_response>")
    said = [message.content] if message.content else []
    said += [f"<tool_call>\n{json.dumps(call.as_json(), ensure_ascii=False)}\n</tool_call>" for call in message.calls]
    return clean("\n".join(said))
