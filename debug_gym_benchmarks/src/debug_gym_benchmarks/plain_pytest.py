"""Tasks whose tests need pytest and nothing that other packages install into it."""

from __future__ import annotations

from collections.abc import Mapping

ENVIRONMENT: Mapping[str, str] = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Variables of such a task: to load those plugins takes most of the time of a run that is as small as theirs."""
