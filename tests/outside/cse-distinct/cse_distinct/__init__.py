"""A negative store without near-duplicates, and the metric IsoScore."""
