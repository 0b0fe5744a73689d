"""InfoCSE: contrastive sentence embeddings by intra-document clustering."""
