"""A training step."""
