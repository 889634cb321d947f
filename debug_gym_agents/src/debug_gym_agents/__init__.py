"""The agents of debug-gym."""
