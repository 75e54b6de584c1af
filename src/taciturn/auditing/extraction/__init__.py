"""auditing: extraction."""
