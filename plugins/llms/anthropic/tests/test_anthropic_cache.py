"""What is marked for the service's cache, and what a service with one would read and write for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from debug_gym_core import LLMError, Message
from debug_gym_core.testing.llm import WEATHER
from debug_gym_core.testing.messages_server import PromptCache, answer, call, error, marks
from debug_gym_llm_anthropic.conversation import request

if TYPE_CHECKING:
    from conftest import Service

    from debug_gym_core.testing.model_server import Reply, Request

TOOLS = [dict(WEATHER)]
RULES = "# Rules\n" + "Look before you change.\n" * 40
FILES = "# Files\n" + "module.py\n" * 100
STEPS = 8

Figures = list[tuple[int, int, int]]
"""Of each request: its marks, and of its characters in percent how many were read from the cache, and written to it."""


def played(service: Service, system: Callable[[int], str], after: str = "") -> tuple[Figures, float]:
    """A conversation with an agent that makes its system prompt anew for each step, and says more at the end.

    Returns:
        the figures, and what the prompts cost as a part of what they would without a cache
    """
    cache = PromptCache()
    figures: Figures = []
    costs: list[float] = []
    sizes: list[int] = []

    def reply(asked: Request) -> Reply:
        tokens = cache.take(asked.body)
        plain, read, written = (
            tokens[name] for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        )
        sizes.append(plain + read + written)
        costs.append(plain + 0.1 * read + 1.25 * written)
        figures.append((marks(asked.body), 100 * read // sizes[-1], 100 * written // sizes[-1]))
        return answer(call("weather", {"place": "Bern"}, f"toolu_{len(sizes)}"), tokens=tokens)

    llm = service.asking(reply)
    history: list[Message] = [Message("user", "Fix it.")]
    for step in range(STEPS):
        prompt = [Message("system", system(step)), *history, *([Message("user", after)] if after else [])]
        said = llm.ask(prompt, TOOLS).message
        history += [said, Message("tool", f"Result {step}. " * 20, call_id=said.calls[0].id)]
    return figures, sum(costs) / sum(sizes)


def test_a_conversation_that_only_grows_is_read_from_the_cache(service: Service) -> None:
    figures, cost = played(service, lambda step: RULES + FILES)
    assert figures[0] == (3, 0, 100) and [marked for marked, _, _ in figures[1:]] == [3] * (STEPS - 1)
    assert all(read + written >= 99 and read >= 85 for _, read, written in figures[1:])
    assert cost < 0.35


@pytest.mark.parametrize("after", ["", "Call one tool."])
def test_what_stands_behind_a_change_is_not_marked(service: Service, after: str) -> None:
    """Nothing of it could ever be read, and to write it costs a quarter more than to send it."""
    figures, cost = played(service, lambda step: f"Step {step}.\n{RULES}{FILES}", after=after)
    assert [marked for marked, _, _ in figures] == [3, *[1] * (STEPS - 1)]
    assert all(written == 0 for _, _, written in figures[2:])
    assert all(read > 0 for _, read, _ in figures[2:]), "the tools"
    assert cost < 1


def test_the_sections_of_a_prompt_before_the_first_that_changes_are_read_from_the_cache(service: Service) -> None:
    figures, cost = played(service, lambda step: f"{RULES}\n\n{FILES}\n\n# Now\nStep {step}.", after="Call one tool.")
    assert [marked for marked, _, _ in figures] == [3, *[2] * (STEPS - 1)]
    assert all(written == 0 and read > 40 for _, read, written in figures[2:])
    assert cost < 0.8


def test_words_behind_a_history_that_grows_leave_it_readable(service: Service) -> None:
    figures, cost = played(service, lambda step: RULES + FILES, after="Call one tool.")
    assert all(marked == 2 and read > 60 for marked, read, _ in figures[3:])
    assert cost < 0.5


def test_a_section_that_changes_once_is_read_again_afterwards(service: Service) -> None:
    figures, _ = played(service, lambda step: f"{RULES}\n\n{FILES}{'new.py' * (step > 3)}\n\n# Now\nStep {step}.")
    read, written = [read for _, read, _ in figures], [written for _, _, written in figures]
    assert 0 < read[4] < read[5] < read[6] and read[6] > 2 * read[4]
    assert written[2:4] == [0, 0] == written[6:] and min(written[4:6]) > 0


def test_a_history_that_was_made_shorter_is_read_again_afterwards(service: Service) -> None:
    llm = service.llm(answer(call("weather", None, None)))
    start = [Message("system", RULES), Message("user", "One?")]
    turns = [turn for n in range(5) for turn in (Message("assistant", f"{n}."), Message("user", f"Result {n}. " * 20))]
    for messages in ([*start, *turns[:4]], [*start, *turns[4:6]], [*start, *turns[4:8]], [*start, *turns[4:]]):
        llm.ask(messages, TOOLS)
    assert [marks(body) for body in service.bodies] == [3, 2, 3, 3]
    cache = PromptCache()
    *_, after, last = [cache.take(body) for body in service.bodies]
    assert after["cache_read_input_tokens"] > 1000 and after["input_tokens"] == last["input_tokens"] == 0
    assert last["cache_read_input_tokens"] > after["cache_read_input_tokens"]


def test_a_new_conversation_is_marked_as_the_first_one_was(service: Service) -> None:
    llm = service.llm(answer(call("weather")))
    for _ in range(2):
        llm.ask([Message("system", RULES), Message("user", "One?")], TOOLS)
        llm.ask([Message("system", FILES), Message("user", "Two?")], TOOLS)
    assert [marks(body) for body in service.bodies] == [3] * 4


def test_a_request_that_failed_says_nothing_of_what_the_cache_has(service: Service) -> None:
    """Nor does one that only has its tokens counted."""
    said = [Message("assistant", "One."), Message("user", "Two?")]
    asked: list[Any] = [Message("system", RULES), Message("user", "One?")]
    llm = service.llm(answer(call("weather")), error(400, "invalid_request_error", "no"), answer(call("weather")))
    llm.ask(asked, TOOLS)
    with pytest.raises(LLMError):
        llm.ask([Message("system", FILES), *asked[1:], *said], TOOLS)
    llm.ask([*asked, *said], TOOLS)
    assert [marks(body) for body in service.bodies] == [3, 1, 3]


def test_a_prompt_in_sections_says_the_same() -> None:
    text = f"Fix it.\n\n{RULES}\n## Not parted\n\n{FILES}\n\n### Now\n#hashtag\n\n#1 is no heading"
    body = request([Message("system", text), Message("user", "Hi")], TOOLS)
    assert "".join(block["text"] for block in body["system"]) == text and len(body["system"]) > 3
    assert len(request([Message("system", text), Message("user", "Hi")], TOOLS, cache=False)["system"]) == 1
