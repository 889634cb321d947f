"""What programs that start warm are forked from; it travels (see `sandbox.shipping`)."""
