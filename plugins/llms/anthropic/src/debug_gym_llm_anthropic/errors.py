"""What the SDK raises, as errors of ours: what may be asked again, what is too long, what is wrong."""

from __future__ import annotations

from collections.abc import Iterable

import anthropic
import httpx
import pydantic

from debug_gym_core.components.component import explain
from debug_gym_core.errors import ContextOverflow, LLMError, LLMUnavailable
from debug_gym_core.models.chat_errors import failure, hide, shortened, words_of

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

NO_CREDIT = "credit balance is too low"
"""Is said with the status of a wrong request."""


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
        said, kind = words_of(error.body)
        status = error.status_code
        if status == 200:
            status = STATUS.get(kind or "", 500)
        if status == 400 and NO_CREDIT in said:
            status = 402
        return failure(self.model, status, hide(said, self.secrets), kind, error.response.headers)

    def _said(self, error: BaseException) -> str:
        """The words of an exception, on a line and bounded."""
        text = explain(error) if isinstance(error, pydantic.ValidationError) else str(error)
        return shortened(hide(text or type(error).__name__, self.secrets))
