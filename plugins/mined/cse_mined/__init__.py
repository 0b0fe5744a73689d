"""Hard negatives that the model in training mines between rounds."""
