"""Who screens the pieces: this process, several processes here, or Ray."""
