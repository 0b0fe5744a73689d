"""Sharing of trained models on the Hugging Face hub."""
