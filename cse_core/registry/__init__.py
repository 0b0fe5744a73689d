"""Which parts plugins bring: each is found by its kind and name.

Nothing heavy is imported: a record names its code, ``cse_core.loading`` imports it.
"""
