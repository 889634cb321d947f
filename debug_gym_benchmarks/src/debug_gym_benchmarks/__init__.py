"""The benchmarks of debug-gym."""
