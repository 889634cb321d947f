"""One task made live: RepoEnv and its parts."""
