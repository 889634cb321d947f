"""Which tests pass, and whether to believe it.

`measure` runs the tests in a sandbox: `reported_run` under a `runner` of ours, which travels there, anything else by
its exit status. `reported_run` also says why a report is not believed; in the `runner`, `canary` has a test that must
fail and `tampering` sees what was replaced. `collect` finds the tests that count, `starting` whether an entrypoint can
start.

`grade` measures in a fresh sandbox, from the pristine repository with the agent's changes, of which `infrastructure`
(with `pytest_sections` and `pytest_plugins`) leaves out what decides how tests are run: conftest files, settings and
plugins of pytest, modules in the place of others; `given` says which modules are loaded as they are before any tested
code runs. `masking` makes what pytest prints about itself equal from run to run; `written_names` knows which names of
temporary files it has to leave. What a run's results are worth in points is in `tasks.results`.
"""
