"""Canaries: random secrets in a template, what they are spelt in, and how they are planted in a corpus."""
