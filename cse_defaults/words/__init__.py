"""Words of texts: what counts as one, their stems, and ranking by them."""
