"""privacy: certificates."""
