"""The command ``cse eval``."""
