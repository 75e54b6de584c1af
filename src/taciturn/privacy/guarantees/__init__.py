"""Guarantees: what a mechanism may claim, what the claim rests on, and what the papers claimed."""
