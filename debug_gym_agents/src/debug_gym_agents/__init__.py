"""The agents of debug-gym.

`debug_agent` and its kin and `tool_agent` play by asking a model, in one `loop`; `solution` plays the known fix, `noop`
nothing at all. What they say to models is in `templates/`.
"""
