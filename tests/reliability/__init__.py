"""Reliability: tables of bad inputs, damages, kills and troubles of the machine, and their outcome."""
