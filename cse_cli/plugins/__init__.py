"""Which plugins are installed, loading them, and what they bring."""
