"""What one step does with the gradients of what it drew."""
