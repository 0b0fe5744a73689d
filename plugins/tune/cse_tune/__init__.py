"""Which composition, and which encoder, is best for one's own texts, and how sure that is."""
