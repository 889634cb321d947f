"""A place to run what nobody trusts: backends, the guest in them, files, commands, interpreters."""
