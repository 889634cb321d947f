"""What runs a task's tests in the sandbox and reports them; it travels (see `sandbox.shipping`).

`main` begins, on a `channel` to the host, and `start` makes the process what `python -m` makes it. `with_pytest` and
`with_unittest` run the tests and `describe` what failed; `stuck` where a run is that does not end; `canary`,
`tampering` and `hooks` see whether the tested code plays tricks.
"""
