"""What an agent can do, and what it hears."""
