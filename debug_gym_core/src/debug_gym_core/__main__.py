"""`python -m debug_gym_core` is `debug-gym`."""

from debug_gym_core.cli import main

if __name__ == "__main__":
    main()
