"""DCLR: Debiased Contrastive Learning of Unsupervised Sentence Representations (ACL 2022)."""
