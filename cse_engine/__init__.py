"""The engine: from a recipe to a plan, a training step, a run.

It knows encoders, tokenizers and training texts by the protocols of ``cse_core`` and imports
nothing else of the toolkit: what reads models and texts is handed to it.
"""
