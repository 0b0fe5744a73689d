"""An additive angular margin in the contrastive loss (Zhang et al., ACL 2022)."""
