"""What a service of models says when it fails, and what that means."""

from __future__ import annotations

import email.utils
import math
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from debug_gym_core.errors import ContextOverflow, LLMError, LLMRefused, LLMRejected, LLMUnavailable, ToolsRefused
from debug_gym_core.models.chat_format import mapping, text_of
from debug_gym_core.redaction import MASK, is_key

LONGEST = 300
"""Characters of what a service says that an error repeats."""

_SHORT = 4
"""Characters from which on a short key is masked as a word."""

CROWDED = (429, 529)
ASK_AGAIN = (408, 409, 425)
REFUSED = (401, 402, 404)
"""Not what is wrong with one request, but with all: the key, the account's credit, the model or address."""

_OVERFLOW_CODES = ("context_length_exceeded", "exceed_context_size_error", "string_above_max_length")
_OVERFLOW_WORDS = re.compile(
    r"context (length|window|size|limit)|longer than the maximum model length"
    r"|(prompt|input) is too long|inputs` tokens \+ `max_new_tokens|`inputs` must have less than"
    r"|input token count .* exceeds the maximum|maximum prompt length is",
    re.IGNORECASE,
)
_ANSWER_TOO_LONG = re.compile(r"tokens'? is too large: (\d+).*maximum context length is (\d+)", re.IGNORECASE)
"""An answer may not be as long as the setting says, and the conversation with it."""
_TOO_LARGE = re.compile(r"request too large", re.IGNORECASE)
"""More than a minute's share, so that no waiting helps; a request that only comes too soon is told its size as well."""
_NO_MONEY = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")

_WRONG = ("invalid_prompt", "invalid_request_error")

_REMEDIES = {
    400: "look at its settings and generate_kwargs in llm.yaml",
    401: "look at api_key in llm.yaml, and at the variable that it takes",
    402: "the account has no credit",
    403: "the account or the key may not use it",
    404: "look at model and endpoint in llm.yaml (most endpoints end in /v1, Anthropic's do not)",
}
_COMPLETION_TOKENS = "leave max_tokens out and set generate_kwargs: {max_completion_tokens: ...} in llm.yaml"
_NO_TOOLS = re.compile(
    r"(n't|not) support (tools|(tool|function) (use|calls?|calling))\b"  # Ollama, DeepSeek, Bedrock
    r"|that support tool use"  # OpenRouter
    r"|(?<!parallel )(tools?|(tool|function) (use|calling))`? (is|are) not (supported|enabled)"  # TGI, Groq, Gemini
    r"|enable-auto-tool-choice|tools param requires --jinja|unsupported param: tools",  # vLLM, llama.cpp
    re.IGNORECASE,
)
_IN_TEXT = "it is asked for actions in text (function_calling: false in its entry in llm.yaml does so from the start)"
_STARTED = re.compile(r"enable-auto-tool-choice|--jinja")


def failure(
    model: str, status: int | None, said: str, code: str | None = None, headers: Mapping[str, str] | None = None
) -> LLMError:
    """The error for a service's refusal.

    Args:
        model: how errors name it
        status: of HTTP; None: it failed after it had begun to answer
        said: the service's words, without secrets
        code: its name for what is wrong
        headers: of its answer, by name in lower case
    """
    told = f"{model}: {shortened(said) or 'the service says nothing'}"
    number = "" if status is None else f" ({status})"
    most = _ANSWER_TOO_LONG.search(said)
    if most and int(most[1]) >= int(most[2]):
        return LLMRejected(f"{told}{number}; lower max_tokens (or that of generate_kwargs) in llm.yaml")
    large = status == 429 and _TOO_LARGE.search(said)
    if large or is_overflow(status, said, code):
        return ContextOverflow(f"{told}{number}")
    if code in _NO_MONEY:
        return LLMRefused(f"{told}{number}; {_REMEDIES[402]}")
    if status not in (*CROWDED, 401, 402, 403) and _NO_TOOLS.search(said):
        start = "start its server with that; until then " if _STARTED.search(said) else ""
        return ToolsRefused(f"{told}{number}; {start}{_IN_TEXT}")
    if status is None and code in _WRONG:
        status = 400
    crowded = status in CROWDED or code in ("rate_limit_exceeded", "overloaded_error")
    if crowded or status is None or status in ASK_AGAIN or status >= 500:
        return LLMUnavailable(f"{told}{number}", retry_after=retry_after(headers or {}), crowded=crowded)
    kind = LLMRefused if status in REFUSED else LLMRejected
    return kind(f"{told}{number}; {_remedy(status, said, code)}")


def is_overflow(status: int | None, said: str, code: str | None) -> bool:
    """Whether a refusal means that the conversation is too long, by its code or, else, the words of known servers."""
    if status == 413 or code in _OVERFLOW_CODES:
        return True
    return status in (None, 400, 422) and bool(_OVERFLOW_WORDS.search(said))


def _remedy(status: int, said: str, code: str | None) -> str:
    if code == "content_filter":
        return "the service's filter refuses the conversation"
    if "max_completion_tokens" in said:
        return _COMPLETION_TOKENS
    return _REMEDIES.get(status, _REMEDIES[400])


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a service asks to wait: in milliseconds, seconds or as a date; None: it does not say."""
    milliseconds = _float(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    seconds = _float(given)
    if seconds is not None or not given:
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(given).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _float(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def words_of(body: Any) -> tuple[str, str | None]:
    """What a service says in the body of an error, and its code.

    Args:
        body: JSON, or text of another kind
    """
    fields = mapping(body)
    inner = fields.get("error")
    if isinstance(inner, Mapping):
        return words_of(inner)
    said = text_of(fields.get("message")) or text_of(inner) or text_of(fields.get("detail"))
    code = text_of(fields.get("code")) or text_of(fields.get("type")) or None
    return said or ("" if not body else str(body)), code


def shortened(text: str) -> str:
    """The text on one line, bounded."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def hide(text: str, secrets: Iterable[str]) -> str:
    """The text with `***` where a secret stands.

    What is short for a key is masked where it is a word by itself; a letter or two, or a placeholder such as `ollama`,
    nowhere: the service's own words would be taken apart.
    """
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        if is_key(secret):
            text = text.replace(secret, MASK)
        elif is_key(secret, _SHORT):
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", MASK, text)
    return text
