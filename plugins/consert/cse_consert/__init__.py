"""ConSERT: Contrastive Self-Supervised Sentence Representation Transfer (Yan et al., ACL 2021)."""
