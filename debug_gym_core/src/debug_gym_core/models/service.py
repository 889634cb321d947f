"""Language models behind a service: their settings, prices, and how they are asked until they answer."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Annotated, Any, ClassVar, Self, TypeVar

import pydantic
from pydantic import Field

from debug_gym_core.components.component import Settings, named
from debug_gym_core.components.values import Count, Dollars, Flag, Seconds
from debug_gym_core.errors import DebugGymError, LLMError, LLMUnavailable, RequirementError, cause_of, place_of
from debug_gym_core.models.answer_bounds import bounds_said
from debug_gym_core.models.gate import LOOK, STOPPED, Gate, pause
from debug_gym_core.models.llm import LLM, AnswerSettings, Completion, Message, completed
from debug_gym_core.models.stopping import Stopping
from debug_gym_core.names import begins_with
from debug_gym_core.redaction import QUERY, remember
from debug_gym_core.usage import NOTHING, Usage

log = logging.getLogger("debug_gym")

T = TypeVar("T")

PATIENCE = 3600.0
"""Seconds for which a call is refused for too many requests until it counts as failed."""

SILENCE = 5.0
"""Seconds that a call is repeated before somebody who looks on is told why nothing happens."""

MARGIN = 1.2
"""By which an estimated number of tokens may be too low."""

CHARACTERS = 3.5
"""Of English text and code a token, for estimates: rather too few, so that an estimate is rather too high."""


class Prices(Settings):
    """What a model costs, in dollars a million tokens.

    Attributes:
        prompt: of tokens that it is given
        completion: of tokens that it answers
        cached: of tokens that the provider had kept; null: as prompt
        written: of tokens that the provider puts into its cache; null: as prompt
    """

    prompt: Dollars
    completion: Dollars
    cached: Dollars | None = None
    written: Dollars | None = None

    def cost(self, usage: Usage) -> float:
        """Dollars for the tokens of a call."""
        cached = self.prompt if self.cached is None else self.cached
        written = self.prompt if self.written is None else self.written
        plain = usage.prompt - usage.cached - usage.written
        total = plain * self.prompt + usage.cached * cached + usage.written * written
        return (total + usage.completion * self.completion) / 1e6


class ServiceSettings(AnswerSettings):
    """A model's entry in llm.yaml; the `llm` section of a config may set any of it but the key.

    Attributes:
        model: what the service calls it
        api_key: the key; in llm.yaml `${VARIABLE}` takes it from the environment
        endpoint: the service's address; null: the provider's own
        tags: say which backend talks to it
        context_limit: how much it takes, in thousands of tokens; null: unknown, the service says when it is too much
        tokenizer: name or path of its tokenizer, to count tokens before a call; null: estimated
        prices: dollars a million tokens; null: unknown
        stream: take the answer in pieces; a connection that is cut off is noticed sooner
        timeout: seconds that one attempt may take
        max_retries: attempts after the first when the service fails; being told to wait does not count
        function_calling: whether it takes tools; else it is asked for actions in text
        system_prompt_support: whether it takes a system message; else that is the user's first
        reasoning_end_token: the answer begins after this, where a model thinks aloud
        generate_kwargs: further arguments of the service's call, as they are
        max_call_cost: dollars that one call may cost; null: no bound
        max_task_cost: dollars that an episode may cost; null: no bound. For a run there is run.max_cost
        max_task_tokens: tokens of prompts and answers that an episode may use; null: no bound
        max_run_tokens: tokens that a run may use; null: no bound
        allow_unknown_price: play although a bound in dollars cannot be kept, as the prices are unknown
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model: str
    api_key: pydantic.SecretStr | None = None
    endpoint: str | None = Field(default=None, repr=False)  # a password may stand in it
    tags: tuple[str, ...] = ()
    context_limit: Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)] | None = None
    tokenizer: str | None = None
    prices: Prices | None = None
    stream: Flag = False
    timeout: Seconds = 300.0
    max_retries: Count = 8
    function_calling: Flag = True
    system_prompt_support: Flag = True
    reasoning_end_token: str | None = None
    generate_kwargs: Mapping[str, Any] = Field(default_factory=dict)
    max_call_cost: Dollars | None = None
    max_task_cost: Dollars | None = None
    max_task_tokens: Count | None = None
    max_run_tokens: Count | None = None
    allow_unknown_price: Flag = False
    _references: Mapping[tuple[str, ...], str] = pydantic.PrivateAttr(default_factory=dict)

    @pydantic.field_validator("endpoint")
    @classmethod
    def _has_no_query(cls, endpoint: str | None) -> str | None:
        if endpoint is not None and ("?" in endpoint or "#" in endpoint):
            raise ValueError(f"ends with the path, without ? and #; {QUERY}")
        return endpoint

    @property
    def references(self) -> Mapping[tuple[str, ...], str]:
        """What llm.yaml has in the place of what came from the environment, by the path of that in these settings."""
        return self._references

    def came_from(self, references: Mapping[tuple[str, ...], str]) -> None:
        """Tell what came from there, by the paths of keys and indices in what these settings were made from."""
        self._references = {named(type(self), path): written for path, written in references.items()}

    @property
    def answer_bounds(self) -> Mapping[str, Any]:
        """What bounds an answer, by where that is said: one thing at most."""
        return bounds_said(self.max_tokens, self.generate_kwargs)

    @pydantic.model_validator(mode="after")
    def _is_bounded_once(self) -> Self:
        if len(self.answer_bounds) > 1:
            raise ValueError(f"say only one of {', '.join(self.answer_bounds)}: each bounds the answer")
        return self

    @pydantic.field_validator("generate_kwargs")
    @classmethod
    def _check_extras(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        for name in ("extra_headers", "extra_query", "extra_body"):
            if not isinstance(given.get(name, {}), Mapping | None):
                raise ValueError(f"{name} names values, as in {{{name}: {{name: value}}}}")
        return given


class ServiceLLM(LLM):
    """A model behind a service: a backend sends one request and reads its answer, the rest is done here.

    Attributes:
        tags: an entry of llm.yaml with one of these tags is this backend's
        answer_guess: tokens of an answer, besides thinking, where nothing bounds it
        gate: where its calls wait while the service has too many
        entry: the entry of llm.yaml that it was made from; None: from settings alone
        stopping: whether somebody still waits for an answer
        note: is told what weakens the count of its tokens, which a run tells once; alone, a backend warns of it
    """

    Settings: ClassVar[type[Settings]] = ServiceSettings
    settings: ServiceSettings
    tags: ClassVar[Sequence[str]] = ()
    replayable: ClassVar[bool] = True
    answer_guess: ClassVar[int] = 8192
    entry: str | None = None

    def __init__(self, **settings: Any) -> None:
        """Check the settings; nothing is loaded or connected before the first request.

        Args:
            settings: fields of `Settings`

        Raises:
            UsageError: a setting is unknown or wrong
        """
        super().__init__(**settings)
        if self.settings.api_key is not None:
            remember(self.settings.api_key.get_secret_value())
        self.stopping = Stopping()
        self.gate = Gate()
        self.note: Callable[[str], None] = log.warning

    @abc.abstractmethod
    def ask(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """Send one request, once; the service's SDK must not repeat it.

        Args:
            messages: the conversation
            tools: as `complete`

        Returns:
            the answer; `usage` holds the provider's tokens, its `cost` is filled in here

        Raises:
            LLMUnavailable: it may answer when asked again, or has charged an answer that is of no use
            ContextOverflow: the conversation is too long; RequirementError: the SDK, or a key, is missing
            LLMRefused: no request would be answered: the key is refused, there is no such model; a run ends with it
            LLMRejected: the request is wrong; ToolsRefused: it has tools, which the model does not take
            LLMError: anything else: the answer cannot be understood
        """

    @property
    def title(self) -> str:
        """How errors name the model: by its entry, which a person can mend, and as the service calls it."""
        model = self.settings.model
        return model if self.entry in (None, model) else f"{self.entry} ({model})"

    @contextlib.contextmanager
    def making_client(self) -> Iterator[None]:
        """In its block the SDK's client is made.

        Raises:
            RequirementError: the HTTP library refuses what the settings or the environment say
        """
        try:
            yield
        except (ImportError, ValueError) as error:
            mend = "look at `endpoint`, and at HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
            raise RequirementError(f"{self.title}: no client can be made: {error} ({mend})") from error

    def prepare(self) -> None:
        """Find what the first request needs, and ask nobody: the SDK, and the key.

        Raises:
            RequirementError: it is missing
        """

    def count(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> int:
        """Tokens of a prompt before it is sent: an estimate, unless a backend can count.

        Nothing is downloaded for it.
        """
        characters = sum(
            len(message.content)
            + sum(len(call.name) + len(json.dumps(call.arguments, default=str)) for call in message.calls)
            for message in messages
        )
        return int((characters + len(json.dumps(list(tools)))) / CHARACTERS) + 8 * len(messages)

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """Ask until there is an answer; see `LLM`.

        What is wrong with the request is raised at once. A service that fails is asked `max_retries` times more; one
        that asks for patience is given it, however often, for an hour. An answer that says nothing may be a slip of the
        service's: it is asked once more. The next one is what the model has to say, be it nothing again.
        """
        completion = self._answered(messages, tools, NOTHING)
        if not _says_nothing(completion):
            return completion
        log.info("%s: the answer is empty; it is asked again", self.title)
        return self._answered(messages, tools, completion.usage + completion.wasted)

    def _answered(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], wasted: Usage) -> Completion:
        """The next answer of the service, however often it fails before.

        Args:
            messages: the conversation
            tools: as `complete`
            wasted: what was charged before, for answers that were of no use
        """
        failures, began = 0, time.monotonic()
        while True:
            try:
                entered = self.gate.enter(self.stopping.begun)
            except LLMError as error:
                error.charged = wasted
                raise
            refusal, answered = None, False
            try:
                completion = self._asked(messages, tools)
                answered = True
                return dataclasses.replace(self.priced(completion), wasted=wasted)
            except LLMUnavailable as error:
                wasted += self.priced_usage(error.charged or NOTHING)
                refusal = error if error.crowded else None
                failures += not error.crowded
                if failures > self.settings.max_retries:
                    often = "once" if failures == 1 else f"{failures} times"
                    raise LLMError(f"{error}; it was asked {often}", charged=wasted) from error
                if error.crowded and (error.retry_after or 0.0) + time.monotonic() - began > PATIENCE:
                    text = f"{error}; it has had too many requests for {PATIENCE / 60:g} minutes"
                    raise LLMError(text, charged=wasted) from error
                if error.retry_after is not None and error.retry_after > PATIENCE:
                    text = f"{error}; it asks to wait for {error.retry_after:.0f} s"
                    raise LLMError(text, charged=wasted) from error
                seconds = 0.0 if error.crowded else pause(failures - 1, error.retry_after)
                late = time.monotonic() - began + seconds > SILENCE and self.gate.may_tell()
                level = logging.WARNING if late else logging.INFO
                log.log(level, "%s; it is asked again%s", error, f" in {seconds:.1f} s" if seconds else "")
            except LLMError as error:
                if error.charged is not None:
                    error.charged = wasted + self.priced_usage(error.charged)
                elif wasted != NOTHING:
                    error.charged = wasted + self.estimate(messages, tools)
                raise
            finally:
                self.gate.leave(entered, refusal, answered=answered)
            if self.stopping.begun.wait(seconds):
                raise LLMError(STOPPED, charged=wasted)

    def _asked(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """What `ask` returns or raises; it is left alone when the run is being stopped and no answer comes.

        Raises:
            LLMError: it was, or `ask` raises it or what it must not; the text names the model
        """
        return self.waited_for(lambda: completed(self, self.ask(messages, tools), "ask"), self.stopping.is_over)

    def waited_for(self, ask: Callable[[], T], over: Callable[[], bool]) -> T:
        """What is got from the service while somebody waits for it.

        Args:
            ask: gets it, in a thread of its own
            over: whether nobody waits any more

        Raises:
            LLMError: nobody does, or `ask` raises it or what it must not; the text names the model
        """
        answer: Future[T] = Future()

        def asking() -> None:
            try:
                answer.set_result(ask())
            except BaseException as error:
                answer.set_exception(error)

        threading.Thread(target=asking, name="debug-gym-model", daemon=True).start()
        while not wait([answer], LOOK).done:
            if over():
                raise LLMError(STOPPED, charged=None)
        error = answer.exception()
        if over() and isinstance(error, LLMUnavailable):
            raise LLMError(STOPPED, charged=None if error.charged == NOTHING else error.charged) from error
        if isinstance(error, LLMError) and not begins_with(str(error), self.title, self.settings.model):
            error.args = (f"{self.title}: {error}",)
        elif isinstance(error, Exception) and not isinstance(error, DebugGymError):
            said = f"{cause_of(error)} ({place_of(error)})"
            raise LLMError(f"{self.title}: the backend {self.name} failed: {said}") from error
        return answer.result()

    def estimate(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]],
        last: tuple[Sequence[Message], Usage] | None = None,
    ) -> Usage:
        """What a call will cost at most; see `LLM`. Of a conversation that goes on only what is new is estimated."""
        before = list(last[0]) if last else []
        if last and before and list(messages[: len(before)]) == before:
            prompt = last[1].prompt + last[1].completion + int(self.count(messages[len(before) :], ()) * MARGIN)
        else:
            prompt = int(self.count(messages, tools) * MARGIN)
        return self.priced_usage(Usage(prompt, self.longest_answer))

    @property
    def longest_answer(self) -> int:
        """Tokens that an answer may have at most, to set aside what it may cost; a guess unless `bounds_answers`."""
        return self._answer_bound or self.answer_guess + self.thinking_budget

    @property
    def thinking_budget(self) -> int:
        """Tokens of an answer that may go into thinking, where a backend bounds that."""
        return 0

    @property
    def bounds_answers(self) -> bool:
        """Whether it is known how long an answer may be at most."""
        return self._answer_bound is not None

    @property
    def _answer_bound(self) -> int | None:
        given = self.settings.answer_bounds.values()
        return next((one for one in given if type(one) is int and one > 0), None)

    def priced(self, completion: Completion) -> Completion:
        """An answer with what it cost, where the price is known."""
        return dataclasses.replace(completion, usage=self.priced_usage(completion.usage))

    def priced_usage(self, usage: Usage) -> Usage:
        """Tokens with what they cost, where the price is known."""
        prices = self.settings.prices
        return usage if prices is None else dataclasses.replace(usage, cost=prices.cost(usage))

    def interrupt(self) -> None:
        """End a wait for the service; an answer that is under way has some seconds to come, as it is paid for."""
        self.stopping.begin()


def _says_nothing(completion: Completion) -> bool:
    """Whether an answer is complete, and empty."""
    message = completion.message
    return completion.finish == "stop" and not (message.content.strip() or message.calls or completion.reasoning)
