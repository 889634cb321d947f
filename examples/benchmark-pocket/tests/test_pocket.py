from acme_benchmark_pocket import Pocket

from debug_gym_core.testing import BenchmarkContract


class TestPocket(BenchmarkContract):
    benchmark = Pocket
    validated = ("cache", "median", "roman")
