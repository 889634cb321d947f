"""What is to be solved.

`task` is a task and the benchmark that it comes from, `entrypoint` how its code is started, `selection` which tasks a
person means. `results` is what a run of its tests showed and what that is worth, and `judge` runs the tests of tasks
whose results cannot be had from pytest or unittest.
"""
