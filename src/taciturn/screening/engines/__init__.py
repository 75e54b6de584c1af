"""screening: engines."""
