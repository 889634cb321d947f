"""Who plays.

`agent` is what an author writes, `history` the conversation that is kept and made shorter, `prompts` its templates.
"""
