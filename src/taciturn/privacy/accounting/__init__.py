"""privacy: accounting."""
