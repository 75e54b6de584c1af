"""Extraction: secrets and personal data that a model gives away, asked with what stood before them."""
