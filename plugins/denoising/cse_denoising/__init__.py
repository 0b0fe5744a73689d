"""TSDAE: an augmenter that deletes words, and the loss of a decoder that rebuilds the sentence."""
