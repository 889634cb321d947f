"""The benchmarks of debug-gym.

Each is a module, or a package where it has more to say: `mini_nightmare` and `repo`; `aider`, `quixbugs` and
`bugsinpy`, from `checkouts` (`clones`, `git`) in the `cache`; `swebench`, `swesmith` and `r2egym`, from `rows` of data
sets (`hub`).
"""
