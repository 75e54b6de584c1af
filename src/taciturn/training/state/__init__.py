"""What a run carries from step to step, and what it leaves behind: checkpoints, released steps, metrics."""
