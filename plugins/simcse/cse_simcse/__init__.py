"""SimCSE: Simple Contrastive Learning of Sentence Embeddings (Gao, Yao and Chen, EMNLP 2021)."""
