"""recipes: uedp."""
