"""What the SDK raises, as errors of ours: what may be asked again, what is too long, what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

import anthropic
import httpx
import pydantic

from debug_gym_core.components.component import explain
from debug_gym_core.errors import ContextOverflow, LLMError, LLMRefused, LLMUnavailable
from debug_gym_core.models.chat_errors import REFUSED, retry_after

LONGEST = 300
"""Characters of the service's words in an error."""

STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status of each kind of error, else 500: one in the middle of a stream has the stream's own, 200."""

TOO_LONG = re.compile(
    r"prompt is too long|input is too long|exceeds? (the |your )?(model's )?(maximum )?context (limit|window|length)",
    re.IGNORECASE,
)

NO_CREDIT = "credit balance is too low"

MEND = {
    400: "the request is refused (400): {said}; check the settings of this model in llm.yaml",
    401: "the key is refused (401): {said}; check `api_key` of this model in llm.yaml",
    402: "it is not paid for (402): {said}; check the account's billing",
    403: "the key may not use it (403): {said}; choose another model or key in llm.yaml",
    404: "the service does not know it (404): {said}; check `model` and `endpoint` (without /v1) in llm.yaml",
}


class Translator:
    """Makes errors of ours.

    Attributes:
        model: how errors name the model
        timeout: seconds that an attempt may take
        secrets: what no error may say
    """

    def __init__(self, model: str, timeout: float, secrets: Iterable[str | None]) -> None:
        self.model, self.timeout = model, timeout
        self.secrets = [secret for secret in secrets if secret]

    def error(self, error: Exception) -> LLMError:
        """What an exception of the SDK, of its HTTP client or of reading an answer comes to."""
        if isinstance(error, ContextOverflow):
            return ContextOverflow(self.line(str(error)))
        if isinstance(error, LLMUnavailable):
            return LLMUnavailable(self.line(str(error)))
        if isinstance(error, anthropic.APIStatusError):
            return self._refused(error)
        if isinstance(error, anthropic.APITimeoutError | httpx.TimeoutException):
            return LLMUnavailable(self.line(f"no answer within {self.timeout:g} s (the setting `timeout`)"))
        if isinstance(error, anthropic.APIConnectionError | httpx.HTTPError):
            cause = error.__cause__ or error
            mend = "; check `endpoint` of this model in llm.yaml" if isinstance(cause, httpx.ConnectError) else ""
            return LLMUnavailable(self.line(f"the connection failed: {self._said(cause)}{mend}"))
        if isinstance(error, ValueError):  # no JSON, or JSON of another form
            return LLMUnavailable(self.line(f"the answer cannot be understood: {self._said(error)}"))
        return LLMError(self.line(self._said(error)))

    def line(self, text: str) -> str:
        """A line about the model."""
        return f"{self.model}: {text}"

    def _refused(self, error: anthropic.APIStatusError) -> LLMError:
        said = self._said(error)
        status = error.status_code
        if status == 200:
            status = STATUS.get(_field(error.body, "type"), 500)
        if status == 413 or (status == 400 and TOO_LONG.search(said)):
            return ContextOverflow(self.line(f"the conversation is too long ({status}): {said}"))
        if status in (429, 529):
            text = self.line(f"too many requests ({status}): {said}")
            return LLMUnavailable(text, retry_after=retry_after(error.response.headers), crowded=True)
        if status in (408, 409) or status >= 500:
            text = self.line(f"the service failed ({status}): {said}")
            return LLMUnavailable(text, retry_after=retry_after(error.response.headers))
        if status == 400 and NO_CREDIT in said:
            status = 402
        kind = LLMRefused if status in REFUSED else LLMError
        return kind(
            self.line(MEND.get(status, "the service refused ({status}): {said}").format(status=status, said=said))
        )

    def _said(self, error: BaseException) -> str:
        """The service's words, bounded."""
        if isinstance(error, pydantic.ValidationError):
            text = explain(error)
        else:
            text = _field(getattr(error, "body", None), "message") or str(error) or type(error).__name__
        line = self._hide(text)
        return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"

    def _hide(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return " ".join(text.split())


def _field(body: object, name: str) -> str:
    """A field of the error that a body tells of."""
    error = body.get("error") if isinstance(body, Mapping) else None
    value = error.get(name) if isinstance(error, Mapping) else error
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)
