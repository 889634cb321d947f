"""What debuggers share on the host.

`breakpoints`, kept over the debugger's restarts and moved over edits (`Breakpoints.moved`); `target`, the program of
Python behind an entrypoint (through `wrappers`, and `recipes` of make and tox); `boot`: how our code gets into it, and
`inside` what of that the debuggers share; `shown_texts`: what it says, as it may be shown.

The debuggers are tools, plugins: `pdb`, which is told of edits (`on_file_changed`) and moves the breakpoints, `trace`.
"""
