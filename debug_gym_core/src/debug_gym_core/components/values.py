"""Types of settings, strict: where a number is meant, a text that looks like one is wrong."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

Count = Annotated[int, Field(strict=True, ge=0)]
Positive = Annotated[int, Field(strict=True, ge=1)]
LONGEST = 1e8
"""Seconds, three years: with more, the system's clocks overflow."""
Seconds = Annotated[float, Field(strict=True, gt=0, le=LONGEST, allow_inf_nan=False)]
TimeLimit = Annotated[float, Field(strict=True, ge=0, le=LONGEST, allow_inf_nan=False)]
"""Seconds after which something ends; 0: as soon as may be."""
Dollars = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Processors = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
"""Processors' worth of time."""
Flag = Annotated[bool, Field(strict=True)]


def _size(text: str) -> str:
    if re.fullmatch(SIZE, text) is None:
        raise ValueError(f"{text!r} is no size; write it as in 512m or 4g")
    return text


SIZE = "^[1-9][0-9]*[bkmgBKMG]?$"
Size = Annotated[str, AfterValidator(_size), Field(json_schema_extra={"pattern": SIZE})]
"""Bytes, or with a letter 1024 (or a power of it) of them."""
