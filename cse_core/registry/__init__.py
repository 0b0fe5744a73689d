"""Which plugins are installed, what became of each, and the parts that they bring."""
