"""Measuring training on this machine: speed, the floor under it, where the time of a step goes.

In goes a composition with its data, out comes a ``BenchReport``; nothing is written.
"""
