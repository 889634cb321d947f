"""Which tests pass, and whether to believe it."""
