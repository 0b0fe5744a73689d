"""Measuring training on this machine: speed, the bound of its products, where a step's time goes.

In goes a composition with its data (``measure``), out comes a ``BenchReport``; nothing is written.
"""
