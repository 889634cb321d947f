"""What debuggers share inside of the process that they debug.

Standard library only, Python 3.6 and newer. Its modules travel with the packages that import them (see
`debug_gym_core.sandbox.shipping`), each under its full name.

- `process`: what the process was before anything of the program ran, and functions bound before it can replace them
- `limits`: a limit in time for what is called of the program's
- `marks`: what an object consists of, and whether it is what it was
- `monitoring`: which of the tools of `sys.monitoring` a debugger is
- `programs`: scripts, modules and code, run as `python` runs them
- `pytests`: pytest, run as `python -m pytest` runs it
- `signals`: exceptions that a handler of a signal raises while we run
- `sets`: elements of sets, in order where that asks none of them
- `texts`: texts of values that are the same in each run
- `quiet`: no warnings while what the program compiles is compiled beside it
"""
