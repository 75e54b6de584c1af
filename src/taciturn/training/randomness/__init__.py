"""training: randomness."""
