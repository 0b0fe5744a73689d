"""A Hugging Face encoder on rows lying end to end, without work on padding."""
