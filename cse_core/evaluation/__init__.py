"""Which dev sets training is scored on; nothing here imports torch."""
