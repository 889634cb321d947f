"""The benchmarks keep what every benchmark promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from debug_gym_benchmarks.mini_nightmare import MiniNightmare
from debug_gym_benchmarks.repo import Repo
from debug_gym_core.testing import BenchmarkContract, write_sample


class TestMiniNightmare(BenchmarkContract):
    benchmark = MiniNightmare
    validated = ("counter",)


class TestRepo(BenchmarkContract):
    benchmark = Repo

    @pytest.fixture
    def made(self, tmp_path: Path) -> Repo:
        return Repo(path=write_sample(tmp_path / "shop"))
