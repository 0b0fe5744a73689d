"""Texts that commands read, fetch and write."""
