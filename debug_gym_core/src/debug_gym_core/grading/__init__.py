"""Which tests pass, and whether to believe it.

`measure` runs the tests in a sandbox under a runner of ours; `grade` does so in a fresh one, from the pristine
repository with the agent's changes, of which `infrastructure` (with `pytest_sections`) leaves out what decides how
tests are run. `masking` makes what pytest prints about itself equal from run to run.
"""
