"""ESimCSE: Enhanced Sample Building Method for Contrastive Learning (Wu et al., COLING 2022)."""
