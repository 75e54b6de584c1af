"""screening: measuring."""
