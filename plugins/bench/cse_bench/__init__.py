"""Measuring training on this machine: speed, memory and what limits a step; nothing is written."""
