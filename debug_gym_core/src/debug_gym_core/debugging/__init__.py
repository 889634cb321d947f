"""What a debugger keeps on the host: `breakpoints`, over its restarts, moved over edits.

The debugger itself is the tool `pdb`, a plugin.
"""
