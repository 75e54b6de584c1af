"""recipes: jft."""
