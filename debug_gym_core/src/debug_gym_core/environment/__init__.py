"""One task made live.

`env` is `RepoEnv`, a `gymnasium.Env`; `spaces` are its spaces, `settings` the section `env` of a config, `parts` what
a caller named and what it became. `backend` chooses the sandbox, `sandboxes` fills fresh ones, `setting_up` runs what
a task installs once, `recovery` replaces a sandbox that is lost; `image_repositories` are repositories that lie in
images.
"""
