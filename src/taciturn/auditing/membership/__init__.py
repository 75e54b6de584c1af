"""auditing: membership."""
