"""An agent on many tasks.

`run` is a run's directory, gone on with by the same config and model (`same_config`, `model_record`) and noting what
played it (`provenance`); `experiment` plays its `jobs`, several at once, by an executor (`local`). `episode` is one
of them: of the `parts` that the config names, in its own environment (`episode_env`), with the model that was chosen
(`chosen_model`); a `recorder` keeps what it leaves behind, its journal (`trajectory`, in `json_lines`) and what people
read (`transcript`). `asking` records and pays for what the model is asked, from the budget in `ledger`; `predictions`
is what a benchmark's own harness takes. `replaying` plays such an episode again, of the same parts.
"""
