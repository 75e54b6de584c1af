"""training: state."""
