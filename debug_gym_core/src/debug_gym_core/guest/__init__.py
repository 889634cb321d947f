"""What runs inside a sandbox: standard library only, Python 3.6 and newer, one file a program, nothing of ours imported."""
