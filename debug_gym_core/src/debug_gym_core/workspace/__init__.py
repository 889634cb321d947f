"""The files of one task.

`snapshot` is the pristine copy on the host, `files` the workspace as tools see it: `paths` says where a path may lead
and refuses edits of what is read-only, `rules` (`.debugignore`, `.debugreadonly`) what that is, `listing` lists.
`following` watches what anybody does to the files, and `restoring` puts back after each step what must not change.
`changes` finds what is different, `patch` makes a diff of it and `patching` applies one; `program_changes` tells what
programs did behind the tools' backs. `lines` and `edits` are files as lines.
"""
