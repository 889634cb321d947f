"""JSON as the standard has it: without NaN and the infinities, which Python reads and writes and nobody else takes."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn


def loads(text: str | bytes) -> Any:
    """Read JSON.

    Args:
        text: the JSON

    Raises:
        ValueError: it is none, or has a number that is none or too large
        RecursionError: it is nested too deeply
    """
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def is_finite(value: Any) -> bool:
    """Whether all numbers in a value of JSON types can be written as JSON."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    return not isinstance(value, list | tuple) or all(map(is_finite, value))


def finite(value: Any) -> Any:
    """The value with text in place of the numbers that cannot be written as JSON."""
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, list | tuple) else value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits:.40} is too large")
    return number
