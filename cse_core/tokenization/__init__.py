"""Texts to ragged tokens: the tokenizer, token tables, the rows of a round.

In: texts of a corpus, or the pairs that a miner found.
Out: ``TokenBatch``, rows of content tokens that the tokenizer wraps in special tokens and prompts,
looked up in tables that are made once; and which rows each step takes.
"""
