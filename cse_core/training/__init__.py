"""A run: rounds, checkpoints, the chosen model."""
