"""The engine by itself: a toy backend, a list of strings, and no library of models or tables."""
