"""Names of files as property tests draw them, and how many examples such tests try."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

# A name is any bytes but NUL and the slash; those that are no UTF-8 are strings with lone surrogates in Python.
names = (
    st.binary(min_size=1, max_size=60)
    .map(lambda data: data.replace(b"\0", b"_").replace(b"/", b"_").decode("utf-8", "surrogateescape"))
    .filter(lambda name: name not in (".", ".."))
)
