"""The files of one task.

`snapshot` is the pristine copy on the host, `files` the workspace as tools see it: `paths` says where a path may lead,
`rules` (`.debugignore`, `.debugreadonly`) what may be seen and edited, `listing` lists. `following` watches what
anybody does to the files, `readonly` puts back after each step what must not change. `changes` finds what is different,
`patch` makes a diff of it and `patching` applies one; `program_changes` tells what programs did behind the tools'
backs. `lines` and `edits` are files as lines.
"""
