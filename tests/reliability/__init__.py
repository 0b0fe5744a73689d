"""Reliability: tables of inputs, damages, kills and machine troubles, and what comes of each."""
