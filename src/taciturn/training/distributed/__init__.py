"""training: distributed."""
