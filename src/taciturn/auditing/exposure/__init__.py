"""Exposure: exact ranks of planted secrets among all that could have stood in their place."""
