"""Texts to ragged tokens: the tokenizer, token tables, the rows of a round."""
