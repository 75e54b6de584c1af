"""Text that a certified model writes, as a corpus to share, and how good it is.

A corpus is a function of the model, a seed and what the user gives (settings.py): post-processing, so every statement of the
model's certificate holds for it (claims.py). Nothing here but quality/ opens private text.
"""
