"""The typed config of a run.

`model` has a class for each section; `loading` puts a config together of `layers` (files, defaults, options),
`checks` holds it against what is installed, `spellings` answers the original's keys. `text` and `schema` are `debug-
gym config show` and `schema`; `llm_yaml` is the file of a person's models.
"""
