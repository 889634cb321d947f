"""An agent on many tasks.

`run` is a run's directory, `experiment` plays its jobs, several at once, by an executor (`local`); `episode` is one
of them, `trajectory` its journal. `asking` records and pays for what the model is asked, from the budget in `ledger`;
`predictions` is what a benchmark's own harness takes.
"""
