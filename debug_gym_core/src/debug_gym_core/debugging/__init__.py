"""What a debugger keeps on the host."""
