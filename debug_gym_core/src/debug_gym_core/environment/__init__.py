"""One task made live.

`env` is `RepoEnv`, a `gymnasium.Env`: steps and rewards over a `live_task`, which is what tools see. `dispatch` takes
an action to its tool and back; `file_events` looks after each step what tools and programs did to the files, and makes
events of it; `counted_tests` knows the tests that count, how they stand and what they are graded; `instructions` is
what an agent is told first.

`live_sandbox` holds the sandbox of the moment: `backend` chooses one, `sandbox_factory` fills fresh ones, `setting_up`
runs what a task installs once, `recovery` replaces one that is lost, `image_repositories` are repositories that lie in
images. `spaces` are Gymnasium's spaces, `settings` the section `env` of a config, `parts` what a caller named and what
it became.
"""
