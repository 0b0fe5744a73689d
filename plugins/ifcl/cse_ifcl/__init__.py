"""IFCL: Identical and Fraternal Twins (Xiao, Li and Chen, arXiv 2307.10932, 2023)."""
