"""IS-CSE (He et al., AAAI 2023): positives smoothed over what is near them in a buffer."""
