"""A place to run what nobody trusts.

`terminal` is what a backend implements, and the settings that all have; `session` is what everyone uses: commands and
programs (`process`, `spawn`), files (`file_requests`, `search`), over one `connection` to the `guest` in the sandbox.
`shipping` is how packages of ours travel there: the guest, the `zygote` for `warm` starts, the runner of tests, the
debugger.

`pythons` chooses the task's Python, `probing` asks it what it is, `interpreter` is what came of that. `ownership` and
`supervision` see to it that nothing is left when a process was killed; `images` and `kept_setups` are what is made
once.
"""
