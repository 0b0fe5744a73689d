"""Scores of an encoder: semantic textual similarity, geometry, lexical baselines.

An encoder is a function from texts to an array ``[N, D]``; nothing here imports torch.
"""
