"""How a backend tells what a service refuses, and whether it is worth asking again."""

from __future__ import annotations

import email.utils
import json
import time
import traceback
from collections.abc import Sequence

import pytest

from debug_gym_core.errors import ContextOverflow, LLMRefused, LLMUnavailable, UsageError
from debug_gym_core.testing.chat_server import error_reply
from debug_gym_core.testing.chat_service import KEY, ChatTests, Service
from debug_gym_core.testing.model_server import Reply

OVERFLOWS = (
    (400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens."),
    (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
    (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"),
    (400, "the request exceeds the available context size, try increasing it"),
    (400, "Your input exceeds the context window of this model. Please adjust your input and try again."),
    (400, "Prompt is too long: 210000 tokens."),
    (413, "Input is too long for requested model."),
    (422, "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000"),
    (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 60000."),
)
"""How servers say that a conversation is too long, without a code for it."""

SHARES = (
    "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2500. Try again in 3s.",
    "This would exceed the limit of 20,000 input tokens per minute; reduce the maximum tokens requested, or wait.",
)
"""How services say that a minute's tokens are used up."""

PATIENCE: Sequence[tuple[dict[str, str], float | None]] = (
    ({}, None),
    ({"retry-after": "7"}, 7),
    ({"retry-after": "0.5"}, 0.5),
    ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "nan"}, None),
    ({"retry-after": "-5"}, 0),
    ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
)
"""How services ask to wait, and the seconds."""

REMEDIES = {400: "generate_kwargs", 401: "api_key", 403: "may not", 404: "model and endpoint", 422: "settings"}


class RefusalTests(ChatTests):
    """Errors say in one line what is wrong and what to do, and never repeat the key."""

    def test_what_is_wrong_for_good(self, service: Service) -> None:
        """One line: the model, what the service says, bounded and without the key, and what to do."""
        for number, (status, remedy) in enumerate(REMEDIES.items(), 1):
            error = service.refused(error_reply(status, f"Bad\n{'x' * 280} {KEY} {'x' * 400}", "wrong"))
            assert not isinstance(error, LLMUnavailable | ContextOverflow)
            assert isinstance(error, LLMRefused) is (status in (401, 404)), status
            assert str(error).startswith("served: Bad xxx") and f"({status})" in str(error) and remedy in str(error)
            assert len(str(error)) < 500 and KEY[:8] not in str(error) and "***" in str(error)
            assert len(service.server.requests) == number

    def test_an_account_without_credit(self, service: Service) -> None:
        """It says 429, and waiting does not help."""
        error = service.refused(error_reply(429, "You exceeded your current quota.", "insufficient_quota"))
        assert isinstance(error, LLMRefused) and "credit" in str(error)

    def test_what_may_pass(self, service: Service) -> None:
        """It is not asked again by the SDK, which the caller does."""
        for number, status in enumerate((408, 409, 425, 500, 502, 503, 504), 1):
            error = service.refused(error_reply(status, f"Try later, {KEY}", headers={"retry-after": "3"}))
            assert isinstance(error, LLMUnavailable), status
            assert (error.crowded, error.retry_after) == (False, 3), status
            assert len(service.server.requests) == number

    def test_a_share_that_is_used_up(self, service: Service) -> None:
        """Waiting helps, and a shorter conversation does not, though its size is told."""
        for words in SHARES:
            error = service.refused(error_reply(429, words, "rate_limit_exceeded"))
            assert isinstance(error, LLMUnavailable) and error.crowded, words

    @pytest.mark.parametrize("status", [429, 529])
    def test_crowds(self, service: Service, status: int) -> None:
        """The time that a service asks for is read."""
        for number, (headers, seconds) in enumerate(PATIENCE, 1):
            error = service.refused(error_reply(status, "Too many requests", headers=headers))
            assert isinstance(error, LLMUnavailable) and error.crowded
            assert error.retry_after == seconds, headers
            assert len(service.server.requests) == number

    def test_a_date_to_come(self, service: Service) -> None:
        """As Retry-After may be."""
        date = email.utils.formatdate(time.time() + 600, usegmt=True)
        error = service.refused(error_reply(429, "Too many requests", headers={"retry-after": date}))
        assert isinstance(error, LLMUnavailable) and error.retry_after is not None and 0 < error.retry_after <= 600

    def test_too_long_by_words(self, service: Service) -> None:
        """As servers say it that have no code for it."""
        for status, words in OVERFLOWS:
            assert isinstance(service.refused(error_reply(status, words, "BadRequestError")), ContextOverflow), words

    def test_too_long_by_code(self, service: Service) -> None:
        """As OpenAI, and llama.cpp, say it."""
        for code in ("context_length_exceeded", "string_above_max_length", "exceed_context_size_error"):
            error = service.refused(error_reply(400, "Too much.", code))
            assert isinstance(error, ContextOverflow) and "Too much." in str(error)

    def test_answers_that_are_none(self, service: Service) -> None:
        """JSON of another kind, or none."""
        for body in (b"", b"<p>" + KEY.encode(), b'{"choices": [', b"[1, 2]", b"null", b"[" * 5000):
            error = service.refused(Reply(body))
            assert isinstance(error, LLMUnavailable) and "the service's answer" in str(error), body[:20]

    def test_answers_that_are_empty(self, service: Service) -> None:
        """No choices, no output, neither words nor why there are none."""
        empty: list[Reply] = [Reply({"choices": [], "output": []}), Reply({"choices": None}), Reply({})]
        empty += [Reply({"choices": [{"message": None}], "output": [None]}), Reply({"choices": [{"message": {}}]})]
        for reply in empty:
            assert isinstance(service.refused(reply), LLMUnavailable)

    def test_an_error_as_an_answer(self, service: Service) -> None:
        """There are gateways that send one with status 200, whole or as an event of a stream."""
        wrong = {"error": {"message": f"Overloaded {KEY}", "code": 429}}
        reply = Reply(events=[f"data: {json.dumps(wrong)}"]) if service.stream else Reply(wrong)
        error = service.refused(reply)
        assert isinstance(error, LLMUnavailable) and error.crowded and "Overloaded ***" in str(error)
        wrong["error"] = {"message": "Too much.", "code": "context_length_exceeded"}
        reply = Reply(events=[f"data: {json.dumps(wrong)}"]) if service.stream else Reply(wrong)
        assert isinstance(service.refused(reply), ContextOverflow)

    def test_a_key_that_cannot_be_sent(self) -> None:
        """The SDK's error would repeat it."""
        with pytest.raises(UsageError, match="characters that no key has") as caught:
            self.make("http://127.0.0.1:9", {"api_key": f"{KEY}\u2014"})
        assert KEY not in "".join(traceback.format_exception(caught.value))

    def test_an_address_that_is_none(self) -> None:
        """It is said when the settings are read."""
        with pytest.raises(UsageError, match="begins with http"):
            self.make("", {"endpoint": "localhost:8000"})
