"""training: units."""
