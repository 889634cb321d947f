"""What every pluggable class is: a name, a help text, typed settings."""
