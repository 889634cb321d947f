"""Calls of a model in an episode: recorded, counted, within the budget, and none paid for twice."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core.components.component import Settings
from debug_gym_core.errors import ContextOverflow, LLMError, PluginError, ToolsRefused, UsageError
from debug_gym_core.models.llm import LLM, Completion, Message, WrappedLLM, completed
from debug_gym_core.models.service import ServiceLLM, ServiceSettings
from debug_gym_core.redaction import redacted
from debug_gym_core.runs.json_lines import JsonLines, read_lines
from debug_gym_core.runs.ledger import CallTooDear, Limits, OutOfBudget
from debug_gym_core.runs.model_record import answering, recorded
from debug_gym_core.runs.trajectory import Event
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.usage import NOTHING, Usage

if TYPE_CHECKING:
    from debug_gym_core.runs.recorder import Recorder


class RecordedLLM(WrappedLLM):
    """A model whose calls are recorded, counted and paid for; everything else is the model's own."""

    name = "recorded"

    def __init__(self, inner: LLM, name: str, episode: Recorder, kept: KeptAnswers) -> None:
        """Wrap a model.

        Args:
            inner: the model
            name: what the config calls it
            episode: keeps the events
            kept: answers of an earlier attempt at this episode
        """
        super().__init__(inner)
        self._name, self._episode, self._kept = name, episode, kept
        self._last: tuple[Sequence[Message], Usage] | None = None
        bounds = inner.settings if isinstance(inner, ServiceLLM) else ServiceSettings(model="")
        self._limits = Limits(bounds.max_task_cost, bounds.max_task_tokens)
        self._call_limit = bounds.max_call_cost

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """Ask the model, or take the answer that it gave to the same question before the episode was interrupted."""
        return self.complete_as(messages, tools, lambda completion: completion)

    def complete_as(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], read: Callable[[Completion], Completion]
    ) -> Completion:
        """See `WrappedLLM`: what is recorded as called is what is understood."""
        run = self._episode.run
        run.stop_if_asked()
        question = digest(messages, tools, self._inner.settings) if self._inner.replayable else ""
        known = self._kept.next(question) if question else None
        completion, seconds = known if known is not None else self._pay(question, messages, tools)
        self._last = [*messages, completion.message], completion.usage
        understood = completion
        try:
            understood = read(completion)
        finally:  # it is paid for
            kept: dict[str, Any] = {"finish": completion.finish}
            if run.verbose:
                kept["prompt"] = [dataclasses.asdict(message) for message in messages]
                kept["tools"] = [tool["name"] for tool in tools]
            calls = [call.name for call in understood.message.calls]
            if run.verbose or (question and not calls):  # no step tells of an answer without a call
                kept["answer"] = dataclasses.asdict(completion.message)
            usage = completion.usage + completion.wasted
            self._episode(Event.llm_call(model=self._name, usage=usage, seconds=seconds, calls=calls, **kept))
        return understood

    def _pay(
        self, question: str, messages: Sequence[Message], tools: Sequence[dict[str, Any]]
    ) -> tuple[Completion, float]:
        """Ask the model when the budget has room for it, and keep what it answers.

        Returns:
            its answer, and the seconds that it took
        """
        run = self._episode.run
        estimate: object = self._inner.estimate(messages, tools, self._last)
        if not isinstance(estimate, Usage):
            raise PluginError(f"llm {self._inner.name}: estimate() must return a Usage, not {estimate!r:.80}")
        if self._call_limit is not None and estimate.cost > self._call_limit:
            most = f"more than llm.max_call_cost (${self._call_limit:g})"
            refusal = CallTooDear(f"the call would cost about ${estimate.cost:.4f}, {most}")
            if question:
                self._kept.refuse(question, refusal)
            raise refusal
        if not self._limits.lets_begin(self._episode.usage, estimate):
            raise OutOfBudget("the episode has spent what it may")
        bounded = not isinstance(self._inner, ServiceLLM) or self._inner.bounds_answers
        reservation = run.ledger.reserve(estimate, run.stop_if_asked, bounded=bounded)
        usage = NOTHING
        started = time.monotonic()
        try:
            completion = completed(self._inner, self._inner.complete(messages, tools))
            usage = completion.usage + completion.wasted
            seconds = time.monotonic() - started
            if question:
                self._kept.add(question, completion, seconds)
        except LLMError as error:
            usage = estimate if error.charged is None else error.charged
            if usage != NOTHING:
                about: dict[str, Any] = {"seconds": time.monotonic() - started, "calls": [], "failed": str(error)}
                self._episode(Event.llm_call(model=self._name, usage=usage, **about))
            if isinstance(error, ContextOverflow | ToolsRefused) and question:
                self._kept.refuse(question, error)
            raise
        except KeyboardInterrupt:  # from whoever answers, not from a signal: those come to the main thread
            run.end_run()
        finally:
            run.ledger.settle(reservation, usage)
        return completion, seconds


class KeptAnswers:
    """The answers of a model in an episode that has no result yet, in their order: what was paid for is used again.

    They fit as long as the same is asked; from the first other question on the model is asked anew, and from an answer
    on in which a secret had to be masked.
    """

    def __init__(self, path: Path) -> None:
        """Know where they are; what an attempt that was interrupted left is read when it is first needed.

        Args:
            path: the file; made with the first answer
        """
        self._path = path
        self._next = 0
        self._lines: JsonLines | None = None

    def begin(self) -> None:
        """The episode begins anew.

        Raises:
            UsageError: the file is damaged
        """
        self._next = 0
        try:
            for line in self._known:
                if "refused" in line:
                    _refusal(line)
                else:
                    _completion(line["answer"]), float(line["seconds"])
                str(line["question"])
        except (KeyError, TypeError, ValueError, AttributeError):
            wrong = f"{self._path}: a line is no answer of a model; without the file they are asked anew"
            raise UsageError(wrong) from None

    @functools.cached_property
    def _known(self) -> list[dict[str, Any]]:
        return list(read_lines(self._path))

    def next(self, question: str) -> tuple[Completion, float] | None:
        """The answer to a question, and the seconds that it took; None when something else was asked at this point.

        Raises:
            ContextOverflow: the answer was that the conversation is too long
            ToolsRefused: it was that the model takes no tools
        """
        if self._next >= len(self._known):
            return None
        line = self._known[self._next]
        if line["question"] != question or line.get("masked"):
            self._forget()
            return None
        self._next += 1
        if "refused" in line:
            raise _refusal(line)
        return _completion(line["answer"]), line["seconds"]

    def add(self, question: str, completion: Completion, seconds: float) -> None:
        """Keep a new answer."""
        self._append({"question": question, "answer": dataclasses.asdict(completion), "seconds": round(seconds, 6)})

    def refuse(self, question: str, error: ContextOverflow | ToolsRefused) -> None:
        """Keep that the model takes no such conversation, or no tools: an answer, too."""
        self._append({"question": question, "refused": str(error), "kind": type(error).__name__})

    def _append(self, line: dict[str, Any]) -> None:
        known = self._known  # which reads the file
        if self._lines is None:
            self._lines = JsonLines(self._path)
        self._lines.append(_marked(line))
        known.append(json.loads(json.dumps(line)))
        self._next += 1

    def close(self) -> None:
        """Close the file."""
        if self._lines is not None:
            self._lines.close()
            self._lines = None

    def _forget(self) -> None:
        """Drop what comes after this point."""
        self.close()
        del self._known[self._next :]
        JsonLines.anew(self._path, map(_marked, self._known)).close()


def _marked(line: dict[str, Any]) -> dict[str, Any]:
    """A line as it is written: one in which a secret is masked says so, as it is not what the model has said."""
    masked = json.dumps(redacted(line), default=str) != json.dumps(line, default=str)
    return {**line, "masked": True} if masked else line


def remove_answers(path: Path) -> None:
    """The episode has its result: its answers are needed no more."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def digest(messages: Sequence[Message], tools: Sequence[dict[str, Any]], settings: Settings) -> str:
    """What tells one question from another: the conversation, the tools, and what makes the answer another one.

    Args:
        messages: the conversation
        tools: as `LLM.complete`
        settings: the model's; what makes its answers others counts, its key and address do not
    """
    model = answering(recorded(settings))
    asked = [[dataclasses.asdict(message) for message in messages], list(tools), model]
    text = json.dumps(asked, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


_REFUSALS = {kind.__name__: kind for kind in (ContextOverflow, CallTooDear, ToolsRefused)}


def _refusal(line: Mapping[str, Any]) -> ContextOverflow | ToolsRefused:
    return _REFUSALS[line.get("kind", ContextOverflow.__name__)](line["refused"])


def _completion(data: Mapping[str, Any]) -> Completion:
    message = dict(data["message"])
    calls = tuple(ToolCall(**call) for call in message.pop("calls"))
    usage, wasted = Usage(**data["usage"]), Usage(**data.get("wasted", {}))
    return Completion(**{**data, "message": Message(calls=calls, **message), "usage": usage, "wasted": wasted})
