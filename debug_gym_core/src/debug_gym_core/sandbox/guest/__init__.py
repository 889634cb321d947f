"""The guest: the processes of ours in a sandbox that serve one host over one byte stream.

    host <== frames on standard input and output ==> supervisor <== frames on socket pairs ==> worker, keepers

The *supervisor* only passes frames on, starts the others and replaces them when they die. The *worker* does file
operations; a search in files has a worker of its own, which can be killed. Each command has a *keeper*: it is the
subreaper of the command, so that it knows and ends everything that the command started; it bounds the output, enforces
the timeout, and relays messages of programs that have a channel. A worker or keeper that dies costs the one request
that it was serving.

The host's first frame is `start`, answered by `hello`. Every further request has an `id`, which its replies repeat; the
last reply is of a type in `supervisor.FINAL`. Frames with `of` belong to the request of that id.

The package travels (see `debug_gym_core.sandbox.shipping`): standard library only, Python 3.6 and newer; started by
`python -I -S -c BOOT`, which reads it from standard input (see `debug_gym_core.sandbox.connection`).

- `main`: what the first process does before it becomes the supervisor
- `supervisor`, `children`, `nursery`: who does what; keepers that have a zygote
- `keeper`, `streams`, `family`: one command: its time, what goes in and out, its processes
- `spawn`, `terminals`, `zygotes`: how a program is started
- `worker`, `tree`, `files`, `walks`, `watch`: operations on files, none of which leaves the workspace
- `search`, `matching`, `declared`, `tar`: those that are longer
- `frames`, `loop`, `system`, `surroundings`: what all of them use
"""
