"""screening: cleaning."""
