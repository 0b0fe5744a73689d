"""Which parts plugins bring: each is found by its kind and name.

``load_plugins`` finds and loads what is installed, a ``PluginInfo`` says what became of a plugin.
Nothing heavy is imported: a record names its code, ``cse_core.loading`` imports it.
"""
