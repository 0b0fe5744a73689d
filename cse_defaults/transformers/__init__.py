"""A Hugging Face encoder on rows lying end to end, without work on padding.

In: a folder or a name on the hub; then ``[T, E]`` word embeddings of rows lying end to end, the
place of each token in its row, and where each row begins.
Out: ``encoder.PackedEncoder``, whose call gives ``Hidden``, ``[T, H]`` states of those tokens.
"""
