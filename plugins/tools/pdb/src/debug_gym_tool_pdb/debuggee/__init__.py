"""The debugger inside the debugged process.

Standard library only, Python 3.6 and newer. The package travels (see `debug_gym_core.sandbox.shipping`): the host
starts it with `python -c` and a descriptor. Over that descriptor, never over the program's own streams, go JSON
messages (4 bytes big-endian length, then the message). The first message of the host is the configuration: what to
run, the breakpoints. From then on the program sends one message at each prompt, and the host answers with a command.

The debugger is one object, of `pdb.Pdb` and these classes on top of each other. Commands and what they print stay
pdb's own, but for what a method `do_...` changes; a new command is one more of them.

- `conversation`: pdb with other ears and another mouth
- `looking`: commands that look: help, the stack, source, values
- `breaking`: commands that set breakpoints, and change them
- `running`: commands that run code: steps, jumps, restart and end, statements
- `tracing`: how breakpoints and steps are found, and how each thread goes on
- `stopping`: where the program stops: lines, exceptions, interrupts, `breakpoint()`
- `debugger`: the program's life, in each of its processes
- `rewinding`: commands that go back to stops, where a session keeps them

What they talk with:

- `channel`: messages, and functions bound before the program can replace them
- `vocabulary`: what a word is: a command, a name
- `meaning`: what a line means that is none of pdb's
- `locations`: where a breakpoint is wanted
- `hints`: what would be right, after an error
- `guide`: what the debugger says of itself
- `stop`: why the program stops
- `report`: where it stopped, in JSON types
- `groups`: what is in exception groups
- `values`: values in a few words, within a time
- `shown`: what was shown of which frame, while the frame is there
- `remembered`: breakpoints in JSON types, for the host and for other processes

What they know of the program:

- `files`: the repository's files, how they are called
- `places`: lines and functions of files, without running them
- `modules`: installed modules and their functions, without importing them
- `statements`: where each statement starts, and what may stand before it
- `jumps`: where a jump goes to, and whether the interpreter survives it
- `frames`: what a frame tells of itself
- `signals`: its signals and its timer, held back while it is stopped
- `tracers`: trace functions of its own
- `family`: its processes: whose turn it is to talk, what they start
- `copies`: copies of it that wait at stops, to go on from there
- `outside`: what it has outside of its memory, which no copy has of its own

How breakpoints are found while the program runs freely:

- `finder`: each by the cheapest means that is right for it
- `settrace`: by a trace function
- `insertion`, `instrument`: by calls that are compiled into the program
- `unseen`: what is compiled in has no line, for what the program traces itself with
- `monitoring`: by `sys.monitoring`
- `conditions`: whether one stops where it is reached

What is run:

- `programs`: scripts, modules and code, as `python` runs them
- `pytests`, `unittests`: tests, with a stop at each that fails
- `main`: begins here
"""
