"""CARDS: Contrastive Learning with Augmented and Retrieved Data (Wang et al., SIGIR 2022)."""
