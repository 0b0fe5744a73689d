"""Parts that belong to no paper, registered as those of any plugin.

Options and a ``Setup`` go in; poolers, a head, the InfoNCE loss and branches come out.
"""
