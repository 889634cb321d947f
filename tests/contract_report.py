"""A pytest plugin that tells, as JSON in the file that CONTRACT_REPORT names, which contract tries which component.

With CONTRACT_BROKEN set it runs only the tests that a broken component must fail, and tells their outcomes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.testing.component import ComponentContract

TOLD: list[dict[str, Any]] = []


def contract_of(item: pytest.Item) -> type[ComponentContract] | None:
    cls = getattr(item, "cls", None)
    return cls if isinstance(cls, type) and issubclass(cls, ComponentContract) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "CONTRACT_BROKEN" in os.environ:
        items[:] = [one for one in items if one.name.partition("[")[0] in getattr(contract_of(one), "broken", ())]
        return
    seen = {}
    for item in items:
        if contract := contract_of(item):
            component = contract.component()
            seen[contract] = {
                "kind": contract._kind,
                "component": f"{component.__module__}:{component.__qualname__}",
                "file": str(item.path),
            }
    TOLD.extend(seen.values())


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "CONTRACT_BROKEN" in os.environ and (report.when == "call" or report.outcome != "passed"):
        TOLD.append({"test": report.nodeid.partition("::")[2], "outcome": report.outcome, "text": report.longreprtext})


def pytest_sessionfinish() -> None:
    Path(os.environ["CONTRACT_REPORT"]).write_text(json.dumps(TOLD), encoding="utf-8")
