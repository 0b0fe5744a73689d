"""Texts to vectors: the sentence encoder of a run.

In: a tokenizer, a ``PackedEncoder`` and parts made by ``part_factory``, of a run or as a model's
folder names them.
Out: ``SentenceEncoder``, from texts or wrapped rows to ``[N, D]`` vectors by level.
"""
