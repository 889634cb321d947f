"""The files of one task.

`snapshot` is the pristine copy on the host, `files` the workspace as tools see it, under the `rules` (`.debugignore`,
`.debugreadonly`), which `readonly` enforces after each step. `changes` finds what is different, `patch` makes a diff
of it, `program_changes` tells what programs did behind the tools' backs. `lines` and `edits` are files as lines.
"""
