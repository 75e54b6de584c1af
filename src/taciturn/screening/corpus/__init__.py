"""A screened corpus on disk: its pieces, its store and manifest, and how the rest of taciturn reads it."""
