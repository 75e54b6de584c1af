"""privacy: guarantees."""
