"""What runs a task's tests in the sandbox and reports them; it travels (see `sandbox.shipping`)."""
