"""PromptBERT (Jiang et al., EMNLP 2022) and CoT-BERT (Zhang, Lan and He, ICANN 2024)."""
