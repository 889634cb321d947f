"""A place to run what nobody trusts.

`terminal` is what a backend implements; `session` is what everyone uses: files, commands, programs, over one
`connection` to the `guest` in the sandbox. `interpreter` finds the task's Python, `patterns` says which files are
meant, `ownership` and `supervision` see to it that nothing is left when a process was killed.
"""
