"""Types of settings, strict: where a number is meant, a text that looks like one is wrong."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Count = Annotated[int, Field(strict=True, ge=0)]
Positive = Annotated[int, Field(strict=True, ge=1)]
Seconds = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Dollars = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]
