"""Low-rank adapters (LoRA) for large encoders."""
