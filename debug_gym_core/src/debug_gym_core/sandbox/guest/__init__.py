"""What runs inside a sandbox: standard library only, Python 3.6 and newer, nothing of ours imported."""
