"""Several vectors of a text: of its tokens, scored by MaxSim, and of its chunks."""
