"""training: updates."""
