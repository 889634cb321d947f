"""What an agent can do, and what it hears.

`tool` is what an author writes; `environment` is what a tool may use of the environment it is in. `action` is a call
and its text form, `blocks` the texts between `<<<` and `>>>` in it, `observation` an answer. `events` are what tools
tell each other, `queue` how, `event_checks` whether a method fits. `editing` is what tools that edit files have in
common.
"""
