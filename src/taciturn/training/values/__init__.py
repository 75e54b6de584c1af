"""What stands behind masks: counted once with noise, and put back into skeletons (docs/guarantees.md §3.7)."""
