"""HiCL: Hierarchical Contrastive Learning of Unsupervised Sentence Embeddings."""
