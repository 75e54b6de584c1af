"""screening: corpus."""
