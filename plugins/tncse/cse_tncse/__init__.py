"""TNCSE: two encoders whose vectors of a text agree in direction and in norm."""
