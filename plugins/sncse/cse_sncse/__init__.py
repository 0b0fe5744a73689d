"""SNCSE: Contrastive Learning with Soft Negative Samples (Wang and Dou, ICIC 2023)."""
