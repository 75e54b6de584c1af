"""recipes: crt."""
