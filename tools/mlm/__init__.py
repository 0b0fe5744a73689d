"""Masked language modelling for tools/pretrain.py."""
