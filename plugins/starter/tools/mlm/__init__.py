"""Masked language modelling for plugins/starter/tools/pretrain.py."""
