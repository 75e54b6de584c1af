"""auditing: lower_bounds."""
