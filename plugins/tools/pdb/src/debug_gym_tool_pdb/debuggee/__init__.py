"""The debugger inside the debugged process.

Standard library only, Python 3.6 and newer. The package travels (see `debug_gym_core.sandbox.shipping`): the host
starts it with `python -c` and a descriptor. Over that descriptor, never over the program's own streams, go JSON
messages (4 bytes big-endian length, then the message). The first message of the host is the configuration: what to
run, the breakpoints. From then on the program sends one message at each prompt, and the host answers with a command.

- `channel`: messages, and functions bound before the program can replace them
- `report`: where the program stopped, in JSON types
- `backends`: finds breakpoints while the program runs freely, and calls `Debugger.reached(frame)`
- `commands`: `pdb.Pdb` with other ears and another mouth; commands and what they print stay pdb's own
- `debugger`: where the program stops and how it goes on: steps, interrupts, post-mortem, threads
- `programs`: run the target as `python target` would
"""
