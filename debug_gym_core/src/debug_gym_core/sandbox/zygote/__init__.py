"""What programs that start warm are forked from; it travels (see `sandbox.shipping`).

`main` begins: `noting` remembers which module imports which, the `nursery` loads what is `wanted` and `installed`, the
`shelf` hands it out to programs as they import it, `stamps` tell whether it is still what lies in its files. `serving`
forks a program at each request, and `beginning` makes the fork what a fresh interpreter is.
"""
