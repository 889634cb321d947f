"""The typed config of a run."""
