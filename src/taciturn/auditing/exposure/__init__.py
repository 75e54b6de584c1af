"""auditing: exposure."""
