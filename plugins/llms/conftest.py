"""What the tests of all backends share: their services are on loopback, and speak plain HTTP."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client reads the certificates of all authorities when it is made, which takes longer than most of the tests."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", "/nonexistent")
