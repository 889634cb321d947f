"""An agent on many tasks: episodes, their journals, a run's directory."""
