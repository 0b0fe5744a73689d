"""A branch with bottleneck adapters, and an augmenter that leaves frequent words out."""
