"""False negatives that a guide finds, removed under every contrastive loss (GISTEmbed)."""
