"""What a debugger keeps on the host: `breakpoints`, over its restarts, moved over edits (`Breakpoints.moved`).

The debugger itself is the tool `pdb`, a plugin: it is told of edits (`on_file_changed`) and moves them.
"""
