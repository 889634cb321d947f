"""What follows one call of a function, inside the process that runs it.

Standard library only, Python 3.6 and newer. The package travels (see `debug_gym_core.sandbox.shipping`): the host
starts it with `python -c` and a descriptor, over which go JSON messages (4 bytes big-endian length, then the message).
The host's first and only message says what to run and what to follow; what was seen comes back as it is seen.

- `channel`: messages, and functions bound before the program can replace them
- `telling`: how often the host is told
- `values`: values in a few words, within a time
- `scope`: the variables that a frame has, and which of them changed
- `source`: where statements, loops and functions are in a file
- `files`: the repository's files
- `story`: what is kept of a call: its steps, loops folded, and the calls that it made
- `frames`: what a frame tells of itself
- `watching`: which call is followed, and what becomes of each event of it
- `backend`: where the events come from
- `settrace`, `monitoring`: backends, by a trace function or by `sys.monitoring` (Python 3.12 on)
- `programs`, `pytests`: what is run, as `python` runs it
- `main`: begins here
"""
