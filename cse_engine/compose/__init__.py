"""From a recipe and the command line to a checked plan; imports no torch.

The name of a recipe, flags and settings go in (``compose.resolve``); a ``Composition`` comes out:
typed parts and settings, the views and encoder passes, and what a user should know. ``draft`` is
the recipe as written, ``composition`` as typed; ``checks`` yields problems.
"""
