"""The card of a trained model."""
