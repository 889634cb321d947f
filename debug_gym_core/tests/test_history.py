"""A conversation is made shorter by whole steps, whatever is in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core.agents.history import History
from debug_gym_core.models.llm import Message
from debug_gym_core.tools.action import ToolCall

NOTE = len("\n\n[The 999 oldest steps are left out.]")

OPENING = (Message("system", "Fix it."), Message("user", "The task."))


def size(messages: object) -> int:
    return sum(len(message.content) + 1 for message in messages)  # type: ignore[attr-defined]


def filled(steps: int, *, calls: int = 1, memory_size: int | None = None, length: int = 10) -> History:
    history = History(OPENING, memory_size)
    for step in range(steps):
        made = tuple(ToolCall("view", {}, f"{step}-{number}") for number in range(calls))
        history.append(Message("assistant", f"step {step}", made))
        for call in made:
            history.append(Message("tool", "x" * length, call_id=call.id))
    return history


def check(history: History) -> None:
    """The opening stands, and each result follows the message that called for it."""
    messages = history.messages
    assert messages[0] == OPENING[0] and messages[1].content.startswith(OPENING[1].content)
    open_calls: list[str | None] = []
    for message in messages[2:]:
        if message.role == "assistant":
            open_calls = [call.id for call in message.calls]
        elif message.role == "tool":
            open_calls.remove(message.call_id)
    answered = {message.call_id for message in messages if message.role == "tool"}
    assert all(call.id in answered for message in messages[:-1] for call in message.calls)


OPERATIONS = st.one_of(
    st.tuples(st.just("step"), st.integers(0, 4)),
    st.tuples(st.just("user"), st.just(0)),
    st.tuples(st.just("shrink"), st.just(0)),
    st.tuples(st.just("keep"), st.integers(0, 5)),
    st.tuples(st.just("trim"), st.integers(0, 400)),
)


@given(st.lists(OPERATIONS, max_size=40), st.none() | st.integers(1, 6), st.floats(0.1, 1.0))
def test_no_result_is_ever_without_its_call(
    operations: list[tuple[str, int]], memory_size: int | None, share: float
) -> None:
    history = History(OPENING, memory_size)
    made = gone = 0
    for name, number in operations:
        before = len(history)
        if name == "step":
            made += 1
            calls = tuple(ToolCall("view", {}, f"{made}-{one}") for one in range(number))
            history.append(Message("assistant", "thinking", calls))
            for call in calls:
                history.append(Message("tool", "seen " * number, call_id=call.id))
        elif name == "user":
            history.append(Message("user", "go on"))
        elif name == "shrink":
            assert history.shrink() is (before > 1)
        elif name == "keep":
            history.keep(number)
        else:
            history.trim(number, size, share=share)
            assert len(history) == min(before, 1) or size(history.messages) <= number
        gone = made - len(history)
        assert history.left_out == gone
        if memory_size is not None:
            assert len(history) <= memory_size
        check(history)


def test_what_was_left_out_is_said_in_the_first_user_message() -> None:
    history = filled(5)
    assert history.messages[:2] == list(OPENING)
    history.keep(4)
    assert history.messages[1].content == "The task.\n\n[The oldest step is left out.]"
    assert history.shrink()
    assert history.messages[1].content == "The task.\n\n[The 3 oldest steps are left out.]"
    assert [message.content for message in history.messages if message.role == "assistant"] == ["step 3", "step 4"]


def test_a_note_stands_alone_where_no_user_spoke() -> None:
    history = History([OPENING[0]])
    for number in range(2):
        history.append(Message("assistant", str(number)))
    history.keep(1)
    assert [message.role for message in history.messages] == ["system", "user", "assistant"]


def test_the_memory_is_that_many_steps_with_all_their_results() -> None:
    history = filled(30, calls=3, memory_size=20)
    assert len(history) == 20 and history.left_out == 10
    assert len(history.messages) == 2 + 20 * 4


def test_trimming_leaves_what_fits_alone() -> None:
    history = filled(5)
    assert history.trim(size(history.messages), size) == 0
    assert history.left_out == 0


def test_trimming_leaves_out_no_more_than_it_must() -> None:
    history = filled(50)
    limit = size(history.messages) // 2
    history.trim(limit, size)
    assert size(history.messages) <= limit
    assert size(filled(50).steps[50 - len(history) - 1]) + size(history.messages) > limit


def test_what_fits_to_the_last_token_is_kept() -> None:
    shorter = filled(50)
    shorter.keep(30)
    history = filled(50)
    assert history.trim(size(shorter.messages), size) == 20 and history.messages == shorter.messages


def test_a_share_trims_in_large_pieces_so_that_the_next_turns_need_none() -> None:
    history = filled(50)
    limit = size(history.messages) - 1
    assert history.trim(limit, size, share=0.5) > 20
    assert size(history.messages) <= (limit + size([*OPENING, *history.steps[-1]])) / 2 + NOTE


def long_opening(*lengths: int, opening: int = 600) -> History:
    history = History([Message("user", "o" * (opening - 1))])
    for length in lengths:
        history.append(Message("assistant", "s" * (length - 1)))
    return history


@pytest.mark.parametrize(
    ("lengths", "limit", "kept"),
    [
        ([50] * 8, 980, 3),  # beside 600, the note's 36 and the newest 50 there are 294; two have half of that
        ([20] * 9 + [200], 970, 4),  # beside those and the newest 200 there are 134, half of which three have
        ([50] * 40, 2500, 19),
        ([50] * 8, 710, 1),  # none but the newest fits
        ([50] * 8, 650, 1),
    ],
)
def test_the_share_is_of_what_older_steps_can_have(lengths: list[int], limit: int, kept: int) -> None:
    """However long the opening is, or the newest step, which stay: as many older ones stay as have their share."""
    history = long_opening(*lengths)
    assert history.trim(limit, size, share=0.5) == len(lengths) - kept
    stays = size(long_opening(lengths[-1]).messages) + NOTE - 2
    assert size(history.messages) <= stays + max(0, limit - stays) / 2


@given(st.integers(0, 900), st.lists(st.integers(1, 200), min_size=2, max_size=30), st.integers(1, 2500))
def test_a_share_leaves_out_all_older_steps_only_where_not_even_one_has_it(
    opening: int, lengths: list[int], limit: int
) -> None:
    history = long_opening(*lengths, opening=opening + 1)
    if history.trim(limit, size, share=0.5) == len(lengths) - 1:
        alone, before = size(history.messages), lengths[-2]
        assert before > (limit - alone) / 2 - 1


def test_the_newest_step_stays_however_long_it_is() -> None:
    history = filled(3, length=1000)
    assert history.trim(5, size) == 2
    assert len(history) == 1 and not history.shrink()


def test_results_of_the_newest_step_are_shortened_when_it_is_too_long_by_itself() -> None:
    history = filled(2)
    history.append(Message("assistant", "", (ToolCall("view", {}, "a"), ToolCall("bash", {}, "b"))))
    history.append(Message("tool", "short", call_id="a"))
    history.append(Message("tool", "".join(f"line {n}\n" for n in range(5000)), call_id="b"))
    before = history.steps[-1]
    assert history.trim(6000, size) == 2 and len(history) == 1
    text = history.messages[-1].content
    assert text.startswith("line 0\nline 1\n") and text.endswith("line 4998\nline 4999\n")
    assert text.count("characters left out") == 1 and size(history.messages) <= 6000 < size([*OPENING, *before])
    left_out = int(text.partition("[... ")[2].partition(" ")[0])
    assert len(before[-1].content) == len(text) + left_out - len(f"[... {left_out} characters left out ...]\n")
    assert history.messages[-2].content == "short"
    check(history)
    lengths = []
    while history.shrink():
        lengths.append(len(history.messages[-1].content))
    assert lengths == sorted(lengths, reverse=True) and 900 < lengths[-1] < 2100
    history.append(Message("assistant", "next"))
    history.append(Message("user", "y" * 3000))
    assert history.shrink() and history.messages[-1].content == "y" * 3000, "the older step goes first"
    assert history.shrink() and "1500 characters left out" in history.messages[-1].content


def test_counting_is_done_seldom_since_it_may_cost_a_request() -> None:
    history = filled(200)
    asked = []

    def count(messages: object) -> int:
        asked.append(messages)
        return size(messages)

    history.trim(100, count)
    assert len(asked) <= 10


def test_a_result_that_answers_nothing_is_refused() -> None:
    history = filled(1)
    with pytest.raises(ValueError, match="answers no call"):
        history.append(Message("tool", "?", call_id="elsewhere"))
