"""Adapting an encoder to one's own text: questions from the text itself, and a verdict."""
