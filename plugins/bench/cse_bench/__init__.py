"""Measuring training on this machine: speed, the floor under it, where the time of a step goes.

``machine``, ``kept`` and ``expected`` import no torch, so that a plan can use what was measured.
"""
